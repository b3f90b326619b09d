//go:build !race

package query

import (
	"fmt"
	"testing"

	"fenec/engine/doc"
)

// TestRunsAllocateLittle pins what a run allocates once its frame and its answer's buffer have grown. Under
// the race detector the pool of frames forgets some on purpose.
func TestRunsAllocateLittle(t *testing.T) {
	s := newSegment(t, 10_000)
	for _, tc := range []struct {
		name   string
		allocs float64
	}{
		{"get by id", 0},
		{"get by three ids", 0},
		{"count an int filter", 2},
		{"page of an index", 2},
		{"page of a sort", 2},
		{"put", 0},
		{"put a parameter", 0},
		{"set by id", 0},
	} {
		for _, bm := range benchmarked {
			if bm.name != tc.name {
				continue
			}
			p := s.plan(t, bm.text)
			env := &Env{Params: bm.params, Now: testNow}
			dst := make([]byte, 0, 1<<16)
			if n := testing.AllocsPerRun(20, func() {
				if _, err := p.Run(env, s, dst); err != nil {
					t.Fatal(err)
				}
			}); n > tc.allocs {
				t.Errorf("%s allocates %v times, want no more than %v", tc.name, n, tc.allocs)
			}
		}
	}
}

func TestGroupingAllocatesForGroupsAndNotForRows(t *testing.T) {
	allocations := func(rows int64) float64 {
		s := newSegment(t, rows)
		p := s.plan(t, `get c select g, count(*), sum(n), max(s), avg(x) group g`)
		env := &Env{Now: testNow}
		var dst []byte
		return testing.AllocsPerRun(5, func() {
			r, err := p.Run(env, s, dst[:0])
			if err != nil || r.Rows != 100 {
				t.Fatal(r, err)
			}
			dst = r.Body
		})
	}
	if few, many := allocations(200), allocations(4000); many > few+2 {
		t.Errorf("%.0f allocations for 200 rows, %.0f for 4000", few, many)
	}
}

// A search allocates for the run, and for no row and no candidate.
func TestSearchesAllocateLittle(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int @sorted, t text @text, v vector<2> @hnsw, w vector<2>)`)
	for i := range 400 {
		db.must(t, fmt.Sprintf(`put c {n: %d, t: "fox number %d", v: [%d, 1], w: [%d, 1]}`, i, i%7, i, i))
	}
	q := doc.VectorValue([]byte{0, 0, 128, 63, 0, 0, 128, 63})
	for _, statement := range []string{
		`get c near v $1 limit 10`, `get c near w $1 limit 10`, `get c where n < 100 near v $1 limit 10`, `get c where n > 100 near v $1 ef 1 limit 10`,
		`get c match t "fox" rerank w $1 limit 10`, `get c near v $1 match t "fox 3" fuse limit 10`,
	} {
		p, err := db.prepare(statement)
		if err != nil {
			t.Fatal(err)
		}
		env := &Env{Params: []doc.Value{q}, Now: testNow}
		dst := make([]byte, 0, 1<<16)
		if n := testing.AllocsPerRun(20, func() {
			if _, err := p.Run(env, db, dst); err != nil {
				t.Fatal(err)
			}
		}); n > 10 {
			t.Errorf("%s allocates %v times, want no more than 10", statement, n)
		}
	}
}
