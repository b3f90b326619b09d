package node

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzNearBody posts any body to near. No response is a 500, each row has its score, a response has at most a page of rows,
// and no document is changed.
func FuzzNearBody(f *testing.F) {
	for _, seed := range []string{
		`{"vector": [1, 0], "field": "v"}`, `{"vector": "[0,1]", "field": "h", "limit": 2, "offset": 1, "ef": 5, "exact": true}`,
		`{"vector": "{1:1,9:2}/9", "field": "p", "select": ["n", "meta.a"], "where": "n > 0 and meta.a is null"}`,
		`{"vector": [1, 0], "field": "v", "match": "fox bear", "match_field": "d", "fuse_k": 0, "candidates": 10000, "select": "n,meta.a"}`,
		`{"vector": [1e39, 0], "field": "v"}`, `{"vector": [1, 0], "field": "v", "where": "n in (get c select n limit 1) -- near"}`, `{"vector": null}`,
		`{"vector": [1, 0], "field": "v", "where": "1 = 1) exact limit 3 -- "}`, `{"vector": [1, 0], "field": "v exact", "limit": 9007199254740993.0}`,
		`{"vector": [], "field": "n", "match": 1}`, `[{"vector": [1, 0]}]`, `{"field": "v", "vector": [1, 0], "limit": 0, "match": "", "match_field": "d"}`,
	} {
		f.Add([]byte(seed))
	}
	w := wired(f)
	for _, statement := range []string{
		`create collection near (n int @sorted, v vector<2> @hnsw(l2, m=2), h vector<2, f16>, p sparse<9> @inverted, d text @text, meta json)`,
		`put near [{n: 1, v: [1, 0], h: [1, 2], p: '{1:1}/9', d: 'a fox', meta: {a: 1}}, {n: 2, v: [0, 1], h: [0, 0], p: '{2:1,9:3}/9', d: 'bear and fox'}, {n: 3}]`,
	} {
		body, err := json.Marshal(map[string]string{"query": statement})
		if err != nil {
			f.Fatal(err)
		}
		if status, answer := w.send(f, "POST", "/t/x/query", body); status != 200 {
			f.Fatalf("%s: got %d %s, expected 200", statement, status, answer)
		}
	}
	_, before := w.send(f, "GET", "/t/x/near", nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, answer := w.send(t, "POST", "/t/x/near/near", body)
		checkAnswer(t, string(body), status, answer)
		if status == 200 {
			var rows []struct {
				Score *float32 `json:"_score"`
			}
			if err := json.Unmarshal(answer, &rows); err != nil || len(rows) > 3 {
				t.Fatalf("%s: got %d rows, %v, expected at most 3: %s", body, len(rows), err, answer)
			}
			for _, row := range rows {
				if row.Score == nil {
					t.Fatalf("%s: got a row without its score: %s", body, answer)
				}
			}
		}
		if _, after := w.send(t, "GET", "/t/x/near", nil); !bytes.Equal(before, after) {
			t.Fatalf("%s: changed the documents from %s to %s", body, before, after)
		}
	})
}
