package index

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawID draws ids that are dense, have gaps, or are anywhere, so that every kind of page occurs.
func drawID(t *rapid.T) int64 {
	return rapid.OneOf(
		rapid.Int64Range(1, 40),
		rapid.Int64Range(1, 2500),
		rapid.Int64Range(1, math.MaxInt64),
		rapid.Just[int64](math.MaxInt64),
	).Draw(t, "id")
}

func TestIDsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x IDs
		model := map[int64]uint64{}
		ref := uint64(0)
		set := func(id int64) {
			ref++
			old, had := x.Set(id, ref)
			if want, wantHad := model[id]; old != want || had != wantHad {
				t.Fatalf("Set(%d) returns %d %t, want %d %t", id, old, had, want, wantHad)
			}
			model[id] = ref
		}
		remove := func(id int64) {
			old, had := x.Delete(id)
			if want, wantHad := model[id]; old != want || had != wantHad {
				t.Fatalf("Delete(%d) returns %d %t, want %d %t", id, old, had, want, wantHad)
			}
			delete(model, id)
		}
		span := func(t *rapid.T) (from, n, step int64) {
			return rapid.Int64Range(1, 2000).Draw(t, "from"), rapid.Int64Range(1, 900).Draw(t, "n"), rapid.Int64Range(1, 3).Draw(t, "step")
		}
		t.Repeat(map[string]func(*rapid.T){
			"set":    func(t *rapid.T) { set(drawID(t)) },
			"delete": func(t *rapid.T) { remove(drawID(t)) },
			"set a run upwards": func(t *rapid.T) {
				from, n, step := span(t)
				for i := range n {
					set(from + i*step)
				}
			},
			"set a run downwards": func(t *rapid.T) {
				from, n, step := span(t)
				for i := range n {
					set(from + (n-i)*step)
				}
			},
			"delete a run": func(t *rapid.T) {
				from, n, step := span(t)
				for i := range n {
					remove(from + i*step)
				}
			},
			"get": func(t *rapid.T) {
				id := drawID(t)
				got, ok := x.Get(id)
				if want, wantOK := model[id]; got != want || ok != wantOK {
					t.Fatalf("Get(%d) returns %d %t, want %d %t", id, got, ok, want, wantOK)
				}
			},
			"clone": func(t *rapid.T) {
				old := x
				x = *old.Clone()
				for id := range model {
					old.Set(id, 0)
				}
			},
			"": func(t *rapid.T) { checkIDs(t, &x, model) },
		})
	})
}

// checkIDs compares x with its model from a few places on, and checks its pages.
func checkIDs(t *rapid.T, x *IDs, model map[int64]uint64) {
	ids := slices.Sorted(maps.Keys(model))
	last := int64(0)
	if len(ids) > 0 {
		last = ids[len(ids)-1]
	}
	if x.Len() != len(ids) || x.Last() != last {
		t.Fatalf("%d ids to %d, want %d to %d", x.Len(), x.Last(), len(ids), last)
	}
	for _, from := range []int64{math.MinInt64, rapid.SampledFrom([]int64{1, 2, 700, 1500, last, math.MaxInt64}).Draw(t, "from")} {
		at, _ := slices.BinarySearch(ids, from)
		want := ids[at:]
		x.Ascend(from, func(id int64, ref uint64) bool {
			if len(want) == 0 || want[0] != id || model[id] != ref {
				t.Fatalf("from %d: got %d at %d, want %v", from, id, ref, want[:min(len(want), 1)])
			}
			want = want[1:]
			return true
		})
		if len(want) > 0 {
			t.Fatalf("from %d: %d ids are missing, the first is %d", from, len(want), want[0])
		}
		var runs []uint64
		x.AscendRefs(from, func(refs []uint64) bool {
			runs = append(runs, refs...)
			return true
		})
		for i, id := range ids[at:] {
			if i >= len(runs) || runs[i] != model[id] {
				t.Fatalf("from %d: the run of refs is %v and lacks %d at %d", from, runs, model[id], i)
			}
		}
		if len(runs) != len(ids)-at {
			t.Fatalf("from %d: %d refs for %d ids", from, len(runs), len(ids)-at)
		}
	}
	asked := slices.Concat([]int64{-1, 0, 1}, ids, []int64{last + 1, math.MaxInt64})
	for range 5 {
		asked = append(asked, rapid.Int64Range(1, 3000).Draw(t, "asked"))
	}
	slices.Sort(asked)
	const none = math.MaxUint64
	refs := make([]uint64, len(asked))
	x.Refs(asked, none, refs)
	for i, id := range asked {
		want, ok := model[id]
		if !ok {
			want = none
		}
		if refs[i] != want {
			t.Fatalf("id %d, asked for among %d, has the ref %d, want %d", id, len(asked), refs[i], want)
		}
	}
	for i := range x.pages {
		p := &x.pages[i]
		if len(p.refs) == 0 || len(p.refs) > pageSize || p.ids != nil && len(p.ids) != len(p.refs) {
			t.Fatalf("page %d has %d refs and %d ids", i, len(p.refs), len(p.ids))
		}
		if p.ids != nil && p.ids[0] != x.firsts[i] {
			t.Fatalf("page %d begins with %d, its directory says %d", i, p.ids[0], x.firsts[i])
		}
	}
}

func TestIDsAtTheEdgesOfPages(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, pageSize - 1, pageSize, pageSize + 1, 2 * pageSize, 2*pageSize + 1} {
		for _, edge := range []int64{1, 2, 3, n / 2, pageSize - 1, pageSize, pageSize + 1, pageSize + 2, n - 2, n - 1, n} {
			if edge < 1 || edge > n {
				continue
			}
			var x IDs
			for id := int64(1); id <= n; id++ {
				x.Set(id, uint64(id))
			}
			if ref, had := x.Delete(edge); !had || ref != uint64(edge) {
				t.Errorf("of %d ids, deleting %d returns %d %t", n, edge, ref, had)
			}
			for id := int64(0); id <= n+1; id++ {
				if ref, ok := x.Get(id); ok != (id >= 1 && id <= n && id != edge) || ok && ref != uint64(id) {
					t.Errorf("of %d ids without %d, %d is found at %d %t", n, edge, id, ref, ok)
				}
			}
			x.Set(edge, 7)
			for i := range x.pages {
				if x.pages[i].ids != nil {
					t.Errorf("of %d ids, page %d keeps its ids after %d came back", n, i, edge)
				}
			}
			if ref, ok := x.Get(edge); !ok || ref != 7 || x.Len() != int(n) {
				t.Errorf("of %d ids, %d comes back at %d %t, with %d", n, edge, ref, ok, x.Len())
			}
		}
	}
}

func TestIDsGiveMemoryBack(t *testing.T) {
	const n = 100_000
	var x IDs
	for id := int64(1); id <= n; id++ {
		x.Set(id, 1)
	}
	full := x.Bytes()
	for id := int64(1); id <= n; id++ {
		if id%100 != 0 {
			x.Delete(id)
		}
	}
	if got := x.Bytes(); got > full/10 {
		t.Errorf("one id in a hundred takes %d bytes, all took %d", got, full)
	}
	for id := int64(1); id <= n; id++ {
		x.Set(id, 1)
	}
	if got := x.Bytes(); got > 9*full/4 { // pages that were split are half full
		t.Errorf("when all ids are back they take %d bytes, at first %d", got, full)
	}
	for id := int64(1); id <= n; id++ {
		x.Delete(id)
	}
	if got := x.Bytes(); got != 0 {
		t.Errorf("no id takes %d bytes", got)
	}
}

func TestWalksOfIDsStopWhenTheCallbackReturnsFalse(t *testing.T) {
	var x IDs
	for id := int64(1); id <= 2000; id++ {
		x.Set(id, uint64(id))
	}
	n := 0
	x.Ascend(100, func(int64, uint64) bool { n++; return n < 7 })
	if n != 7 {
		t.Errorf("walked %d ids, want 7", n)
	}
}

func TestIDsAreFewHeapObjectsAndFewBytes(t *testing.T) {
	const n = 250_000
	r := rand.New(rand.NewPCG(1, 2))
	for name, tc := range map[string]struct {
		id    func(i int64) int64
		bytes int64 // an id
	}{
		"ids handed out in order":  {func(i int64) int64 { return i + 1 }, 9},
		"ids in descending order":  {func(i int64) int64 { return n - i }, 9},
		"every third id":           {func(i int64) int64 { return 3*i + 1 }, 18},
		"ids spread at random":     {func(int64) int64 { return r.Int64() }, 27},
		"dense ids in a bad order": {func(i int64) int64 { return i*7919%n + 1 }, 27},
	} {
		t.Run(name, func(t *testing.T) {
			var x IDs
			objects := heapObjects(func() {
				for i := range int64(n) {
					x.Set(tc.id(i), uint64(i))
				}
			})
			if objects >= n/100 {
				t.Errorf("%d heap objects, want fewer than %d", objects, n/100)
			}
			if got := x.Bytes() / n; got > tc.bytes {
				t.Errorf("%d bytes an id, want %d at most", got, tc.bytes)
			}
		})
	}
}

func BenchmarkIDs(b *testing.B) {
	const n = 1_000_000
	dense, sparse := new(IDs), new(IDs)
	order := make([]int64, 1<<16)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range int64(n) {
		dense.Set(i+1, uint64(i))
		sparse.Set((i+1)*1000+r.Int64N(1000), uint64(i))
	}
	for i := range order {
		order[i] = r.Int64N(n) + 1
	}
	b.Run("get dense", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, ok := dense.Get(order[i&(1<<16-1)]); !ok {
				b.Fatal("missing")
			}
		}
	})
	b.Run("get sparse", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sparse.Get(order[i&(1<<16-1)] * 1000)
		}
	})
	b.Run("set in order", func(b *testing.B) {
		x := new(IDs)
		for i := int64(1); b.Loop(); i++ {
			x.Set(i, uint64(i))
		}
	})
	b.Run("ascend a million", func(b *testing.B) {
		for b.Loop() {
			sum := uint64(0)
			dense.Ascend(1, func(_ int64, ref uint64) bool { sum += ref; return true })
		}
	})
}
