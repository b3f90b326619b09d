package node

import (
	"net/url"
	"testing"
)

func TestLikeMatchesPatternsIgnoringCase(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"a collection", "POST", "/query", `{"query": "create collection c (s text @sorted, u text collate tr, n int, l [text], j json, like text)"}`, 200, `{"message":...`},
		{"documents", "POST", "/c", `[{"s": "Library", "u": "İzmir", "j": {"s": "Lib"}}, {"s": "My library", "u": "Isparta"}, {"s": "calibre"}, {"s": "50% off *now*", "like": "x"},
			{"s": "snake_case"}, {"n": 1, "l": ["Library"], "j": {"s": 5}}]`, 201, `{"inserted":6}`},
	})
	for filter, want := range map[string]string{
		"s=like.LIB":             `[{"id":1},{"id":2},{"id":3}]`,
		"s=like.lib*":            `[{"id":1}]`,
		"s=like.lib%25":          `[{"id":1}]`,
		"s=like.*RY":             `[{"id":1},{"id":2}]`,
		"s=like.%25RY":           `[{"id":1},{"id":2}]`,
		"s=like.*LI*":            `[{"id":1},{"id":2},{"id":3}]`,
		"s=like.y*b":             `[{"id":2}]`,
		"s=like.l*y*":            `[{"id":1}]`,
		"s=like.*a*e":            `[{"id":3},{"id":5}]`,
		"s=like.e_c":             `[{"id":5}]`,
		"s=like.0%5C%25":         `[{"id":4}]`,
		"s=like.%5C*now%5C*":     `[{"id":4}]`,
		"s=like.*now%5C*":        `[{"id":4}]`,
		"s=like.*":               `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]`,
		"s=like.":                `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]`,
		"s=not.like.*lib*":       `[{"id":4},{"id":5}]`,
		"s=like.zzz":             `[]`,
		"u=like.izm*":            `[{"id":1}]`,
		"u=like.ISPARTA":         `[{"id":2}]`,
		"u=like.ı*":              `[{"id":1},{"id":2}]`,
		"j.s=like.l*":            `[{"id":1}]`,
		"j.s=like.5":             `[]`,
		"like=like.X":            `[{"id":4}]`,
		"s=like.lib*&u=like.*r":  `[{"id":1}]`,
		"where=s ~ 'LIBRARY'":    `[{"id":1},{"id":2}]`,
		"where=like(s, 'lib*')":  `[{"id":1}]`,
		"s=like.lib*&where=n=1":  `[]`,
		"s=like.lib*&order=s":    `[{"id":1}]`,
		"s=like.My%20library":    `[{"id":2}]`,
		"s=like.My+library":      `[{"id":2}]`,
		"u=like.i%CC%87zmir":     `[{"id":1}]`,
		"s=eq.like.lib*":         `[]`,
		"s=like.%5C":             `[]`,
		"s=in.(Library)&s=like.": `[{"id":1}]`,
	} {
		if got := r.want(200, "GET", "/c?select=id&"+escapeSpaces(filter), "").body; got != want {
			t.Errorf("%s\n got %s\nwant %s", filter, got, want)
		}
	}
	r.play([]step{
		{"counted", "GET", "/c?s=like.*lib*&count", "", 200, `{"count":3}`},
		{"like on an int", "GET", "/c?n=like.1", "", 400, `{"error":"like: expected text, got field n, which is int"}`},
		{"like on an int, any value", "GET", "/c?n=like.*", "", 400, `{"error":"like: expected text, got field n, which is int"}`},
		{"like on a list", "GET", "/c?l=like.lib*", "", 400, `{"error":"like: expected text, got field l, which is [text]"}`},
		{"like on an unknown field", "GET", "/c?x=like.lib*", "", 404, `{"error":"c has no field x"}`},
		{"groups", "GET", "/c?s=like.*lib*&select=count(*),max(id)", "", 200, `[{"count":3,"max(id)":3}]`},
		{"a change", "PATCH", "/c?s=like.snake*", `{"n": 5}`, 200, `{"updated":1}`},
		{"a deletion", "DELETE", "/c?s=like.SNAKE_CASE", "", 200, `{"deleted":1}`},
	})
}

// escapeSpaces escapes the characters that a request target cannot contain.
func escapeSpaces(s string) string {
	out := ""
	for _, r := range s {
		if r > ' ' && r < 0x7f {
			out += string(r)
		} else {
			out += url.QueryEscape(string(r))
		}
	}
	return out
}

func TestALiveQueryAcceptsLike(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 0)
	r.query("x", "put c [{s: 'Library'}, {s: 'My library'}, {s: 'x'}]")
	w := r.watch("/t/x/c/changes?s=like.lib*&select=s")
	w.expect(`seed 4 [{"id":1,"s":"Library"}]`)
	r.query("x", "set c {s: 'LIBRE'} where s = 'x'")
	w.expect(`change 5 [{"id":3,"s":"LIBRE"}] [] false`)
	r.query("x", "set c {s: 'calibre'} where id = 1")
	w.expect(`change 6 [] [1] false`)
	w.same(r, "/t/x/c?s=like.lib*&select=id,s")
	// A like on an int is refused, a fraction compared with an int is not, and an empty list matches nothing.
	r.want(400, "GET", "/t/x/c/changes?n=like.1", "")
	n := r.watch("/t/x/c/changes?n=not.in.()&n=not.gt.1.5&select=s")
	n.expect(`seed 6 []`)
}
