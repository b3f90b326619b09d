package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/index"
)

func TestAValueThatSharesAHashIsNotAnswered(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (s text @hash)`)
	for _, s := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		db.must(t, `put c {s: $1}`, doc.TextValue([]byte(s)))
	}
	forged := &index.Hash{}
	for id := int64(1); id <= 2; id++ {
		forged.Add(doc.Hash(doc.TextValue([]byte("a"))), id)
	}
	db.tables["c"].hashes["s"] = forged
	for _, statement := range []string{`get c select s where s = "a"`, `get c select s where s in ["a"]`} {
		if got := string(db.must(t, statement).Body); got != `[{"s":"a"}]` {
			t.Errorf("%s answers %s", statement, got)
		}
	}
}

// TestFromTheHighestIDDown walks windows of ids: dense ones, and ones with gaps far wider than a window.
func TestFromTheHighestIDDown(t *testing.T) {
	for name, gap := range map[string]int64{"dense ids": 1, "gaps": 97, "gaps wider than a window": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			db := newMemory()
			db.must(t, `create collection c (n int)`)
			var want []int64
			for i := int64(0); i < 700; i++ {
				db.must(t, `put c {id: $1, n: $2}`, doc.IntValue(1+i*gap), doc.IntValue(i%7))
				want = append(want, 1+i*gap)
			}
			slices.Reverse(want)
			for _, tc := range []struct {
				statement string
				want      []int64
				reads     int // documents at most
			}{
				{`get c select id order id desc`, want, 3000},
				{`get c select id order id desc limit 3 offset 2`, want[2:5], 400},
				{fmt.Sprintf(`get c select id where id >= %d and id < %d order id desc`, want[600], want[90]), want[91:601], 2500},
				{fmt.Sprintf(`get c select id where id <= %d order id desc limit 1`, want[90]), want[90:91], 400},
			} {
				table := db.tables["c"]
				table.reads = 0
				r := db.must(t, tc.statement)
				if got := idsOf(t, r); !slices.Equal(got, tc.want) {
					t.Errorf("%s answers %d ids %v, want %d %v", tc.statement, len(got), got, len(tc.want), tc.want)
				}
				if table.reads > tc.reads {
					t.Errorf("%s read %d documents, want no more than %d", tc.statement, table.reads, tc.reads)
				}
			}
		})
	}
}

// idsOf are the ids of an answer's rows, which show nothing else.
func idsOf(t *testing.T, r Result) []int64 {
	t.Helper()
	var rows []struct{ ID int64 }
	if err := json.Unmarshal(r.Body, &rows); err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// TestAnIndexStopsEarly counts the documents read on the way to an answer.
func TestAnIndexStopsEarly(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int @sorted, s text @hash, m int)`)
	for i := int64(0); i < 1000; i++ {
		db.must(t, `put c {n: $1, s: $2, m: $3}`, doc.IntValue(i*7%1000), doc.TextValue([]byte{byte('a' + i%20)}), doc.IntValue(i))
	}
	for _, tc := range []struct {
		statement string
		reads     int
	}{
		{`get c where id = 5`, 1},
		{`get c where id in [5, 6]`, 2},
		{`get c order n limit 5`, 5},
		{`get c order n desc limit 5 offset 3`, 8},
		{`get c where m >= 500 order n limit 5`, 30},
		{`get c where n >= 990 and n < 995`, 5},
		{`get c where n >= 990 and n < 995 count`, 0},
		{`get c where n > 3 count`, 0},
		{`get c count`, 0},
		{`get c where s = "c" and n > 500`, 50},
		{`get c where s = "c" order n limit 2`, 50},
		{`get c where n > 5 order n limit 2`, 2},
		{`get c limit 3`, 3},
		{`get c where n = 5 or n = 6`, 1000},
	} {
		table := db.tables["c"]
		db.must(t, tc.statement) // builds the indexes
		table.reads = 0
		db.must(t, tc.statement)
		if table.reads > tc.reads {
			t.Errorf("%s read %d documents, want no more than %d", tc.statement, table.reads, tc.reads)
		}
	}
}
