package index

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fenec/engine/collation"
	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// drawValue draws values of all kinds that often share a key or are equal.
func drawValue(t *rapid.T, label string) doc.Value {
	texts := []string{
		"", "a", "a\x00", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgz", "abcdefg\x00", "b",
		"A", "ä", "a\u0308", "B", "ABCDEFGH", "abcdefgH", "abcdéfgh", "ı", "i", "ç", "c\u0327", "ж", "日本語テキスト",
	}
	numbers := []string{
		"0", "-0.0", "1", "1.0", "1.5", "-1", "1e300", "-1e300", "9007199254740993", "9007199254740992.0", "0.1",
		"0.10000000000000001", "0.100000000000000005551115123125782702", "9223372036854775807", "9223372036854775808", "1e400", "-1e400", "5e-324",
	}
	switch rapid.IntRange(0, 7).Draw(t, label+" kind") {
	case 0:
		return doc.Value{}
	case 1:
		return doc.BoolValue(rapid.Bool().Draw(t, label))
	case 2, 3:
		v, err := doc.ParseNumber([]byte(rapid.SampledFrom(numbers).Draw(t, label)))
		if err != nil {
			t.Fatal(err)
		}
		return v
	case 4, 5:
		return doc.TextValue([]byte(rapid.SampledFrom(texts).Draw(t, label)))
	case 6:
		return doc.TimestampValue(rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64, math.MaxInt64}).Draw(t, label))
	}
	raw, err := doc.ParseJSON(nil, []byte(rapid.SampledFrom([]string{"[]", "[1]", "[1.0]", "[null]", "{}", `{"a":1}`}).Draw(t, label)))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Raw(raw).Value()
}

// sortedTwin is a Sorted and the naive model of it.
type sortedTwin struct {
	x       *Sorted
	collate collation.Collation
	values  map[int64]doc.Value
	keys    map[string]string // of texts, the collation's
}

func newSortedTwin(c collation.Collation) *sortedTwin {
	w := &sortedTwin{collate: c, values: map[int64]doc.Value{}, keys: map[string]string{}}
	w.x = NewSorted(c, func(id int64) doc.Value { return w.values[id] })
	return w
}

// compare is doc.CompareBy, but does not make the keys of two texts again each time.
func (w *sortedTwin) compare(a, b doc.Value) int {
	if a.Kind != doc.Text || b.Kind != doc.Text {
		return doc.Compare(a, b)
	}
	return cmp.Compare(w.key(a), w.key(b))
}

func (w *sortedTwin) key(v doc.Value) string {
	key, ok := w.keys[string(v.B)]
	if !ok {
		key = string(w.collate.AppendKey(nil, v.B))
		w.keys[string(v.B)] = key
	}
	return key
}

func (w *sortedTwin) put(id int64, v doc.Value) {
	if old, ok := w.values[id]; ok {
		w.x.Remove(old, id)
	}
	w.values[id] = v
	w.x.Add(v, id)
}

func (w *sortedTwin) remove(id int64) {
	if old, ok := w.values[id]; ok {
		w.x.Remove(old, id)
		delete(w.values, id)
	}
}

// scan returns what Range must return.
func (w *sortedTwin) scan(lo, hi Bound, desc bool) []int64 {
	var ids []int64
	for id, v := range w.values {
		above := lo.Unbounded || w.compare(v, lo.Value) > 0 || lo.Inclusive && w.compare(v, lo.Value) == 0
		below := hi.Unbounded || w.compare(v, hi.Value) < 0 || hi.Inclusive && w.compare(v, hi.Value) == 0
		if above && below {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int {
		c := w.compare(w.values[a], w.values[b])
		if desc {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a, b))
	})
	return ids
}

func (w *sortedTwin) check(t *rapid.T, lo, hi Bound) {
	if w.x.Len() != len(w.values) {
		t.Fatalf("%d entries, want %d", w.x.Len(), len(w.values))
	}
	desc := rapid.Bool().Draw(t, "desc")
	want := w.scan(lo, hi, desc)
	var got []int64
	w.x.Range(lo, hi, desc, func(id int64) bool { got = append(got, id); return true })
	if !slices.Equal(got, want) {
		t.Fatalf("desc %t from %+v to %+v: got %v, want %v", desc, lo, hi, got, want)
	}
	if n := w.x.Count(lo, hi); n != len(want) {
		t.Fatalf("Count returns %d, want %d", n, len(want))
	}
	if got := w.x.AppendIDs([]int64{-7}, lo, hi); got[0] != -7 || !slices.Equal(got[1:], w.scan(lo, hi, false)) {
		t.Fatalf("AppendIDs from %+v to %+v: got %v", lo, hi, got)
	}
	if page := want[:(len(want)+1)/2]; len(page) > 0 {
		got = got[:0]
		w.x.Range(lo, hi, desc, func(id int64) bool { got = append(got, id); return len(got) < len(page) })
		if !slices.Equal(got, page) {
			t.Fatalf("a page of %d: got %v, want %v", len(page), got, page)
		}
	}
}

func drawBound(t *rapid.T, label string) Bound {
	if rapid.IntRange(0, 3).Draw(t, label+" unbounded") == 0 {
		return Bound{Unbounded: true}
	}
	return Bound{Value: drawValue(t, label), Inclusive: rapid.Bool().Draw(t, label+" inclusive")}
}

func TestSortedAgreesWithAScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSortedTwin(rapid.SampledFrom([]collation.Collation{collation.None, collation.None, collation.Root, collation.Turkish}).Draw(t, "collation"))
		id := func(t *rapid.T) int64 { return rapid.Int64Range(1, 1500).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"put":    func(t *rapid.T) { w.put(id(t), drawValue(t, "value")) },
			"remove": func(t *rapid.T) { w.remove(id(t)) },
			"put many of one value": func(t *rapid.T) {
				from, v := id(t), drawValue(t, "value")
				for i := range rapid.Int64Range(1, 700).Draw(t, "n") {
					w.put(from+i, v)
				}
			},
			"put many that share a key": func(t *rapid.T) {
				from := id(t)
				for i := range rapid.Int64Range(1, 700).Draw(t, "n") {
					w.put(from+i, doc.TextValue(fmt.Appendf(nil, "abcdefg%s%d", []string{"x", "X", "é", "e"}[i%4], i*7919%97)))
				}
			},
			"remove many": func(t *rapid.T) {
				from := id(t)
				for i := range rapid.Int64Range(1, 700).Draw(t, "n") {
					w.remove(from + i)
				}
			},
			"build anew": func(t *rapid.T) {
				w.x.Build(len(w.values), func(add func(doc.Value, int64)) {
					for id, v := range w.values {
						add(v, id)
					}
				})
			},
			"": func(t *rapid.T) {
				w.check(t, drawBound(t, "lo"), drawBound(t, "hi"))
				checkPages(t, &w.x.pairs)
			},
		})
	})
}

// checkPages checks what must be true of pages whatever they hold.
func checkPages(t *rapid.T, x *pairs) {
	n := 0
	for i, page := range x.pages {
		if len(page) == 0 || len(page) > pageSize {
			t.Fatalf("page %d has %d entries", i, len(page))
		}
		if page[0].key != x.firsts[i] {
			t.Fatalf("page %d begins with key %x, its directory says %x", i, page[0].key, x.firsts[i])
		}
		n += len(page)
	}
	if n != x.n || len(x.firsts) != len(x.pages) {
		t.Fatalf("%d entries in %d pages, want %d in %d", n, len(x.pages), x.n, len(x.firsts))
	}
}

func TestSortedTakesATwiceAddedEntryOnce(t *testing.T) {
	w := newSortedTwin(collation.None)
	w.values[7] = doc.IntValue(1)
	w.x.Add(doc.IntValue(1), 7)
	w.x.Add(doc.IntValue(1), 7)
	w.x.Remove(doc.IntValue(2), 7)
	if w.x.Len() != 1 {
		t.Errorf("%d entries, want 1", w.x.Len())
	}
}

func TestSortedAsksForNoValueWhereTheKeyIsExact(t *testing.T) {
	asked := 0
	x := NewSorted(collation.None, func(int64) doc.Value { asked++; return doc.Value{} })
	for i := range int64(5000) {
		x.Add(doc.IntValue(i%50), i+1)
		x.Add(doc.FloatValue(float64(i%50)+0.5), i+10_000)
		x.Add(doc.TimestampValue(1_700_000_000_123+i%50), i+20_000)
		x.Add(doc.TextValue(fmt.Appendf(nil, "t%d", i%50)), i+30_000)
	}
	n := 0
	x.Range(Bound{Unbounded: true}, Bound{Unbounded: true}, true, func(int64) bool { n++; return true })
	if n != 20_000 || asked > 0 {
		t.Errorf("walked %d entries and asked for %d values, want 20 000 and none", n, asked)
	}
}

func TestSortedAsksForEachValueOnceWhenItIsBuilt(t *testing.T) {
	const n = 5000
	asked := 0
	x := NewSorted(collation.None, func(id int64) doc.Value { asked++; return doc.TextValue(longText(id * 7919 % n)) })
	x.Build(n, func(add func(doc.Value, int64)) {
		for id := int64(1); id <= n; id++ {
			add(doc.TextValue(longText(id*7919%n)), id)
		}
	})
	if asked > n {
		t.Errorf("asked for %d values of %d documents", asked, n)
	}
	next := int64(0)
	x.Range(Bound{Unbounded: true}, Bound{Unbounded: true}, false, func(id int64) bool {
		if id*7919%n != next {
			t.Fatalf("document %d comes at place %d", id, next)
		}
		next++
		return true
	})
	if next != n {
		t.Errorf("%d documents, want %d", next, n)
	}
}

func TestSortedWalksDownAPageOfManyEqualValuesAtOnce(t *testing.T) {
	asked := 0
	long := []byte("a text longer than a key holds")
	x := NewSorted(collation.None, func(int64) doc.Value { asked++; return doc.TextValue(long) })
	x.Build(200_000, func(add func(doc.Value, int64)) {
		for id := int64(1); id <= 200_000; id++ {
			add(doc.TextValue(long), id)
		}
	})
	asked = 0
	var got []int64
	x.Range(Bound{Unbounded: true}, Bound{Unbounded: true}, true, func(id int64) bool { got = append(got, id); return len(got) < 3 })
	if !slices.Equal(got, []int64{1, 2, 3}) || asked > 100 {
		t.Errorf("got %v and asked for %d values, want [1 2 3] and fewer than 100", got, asked)
	}
}

func TestHashAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Hash
		model := map[uint64]map[int64]bool{}
		hash := func(t *rapid.T) uint64 {
			return rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64(), rapid.Just[uint64](math.MaxUint64)).Draw(t, "hash")
		}
		add := func(h uint64, id int64) {
			x.Add(h, id)
			if model[h] == nil {
				model[h] = map[int64]bool{}
			}
			model[h][id] = true
		}
		id := func(t *rapid.T) int64 { return rapid.Int64Range(1, 3000).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { add(hash(t), id(t)) },
			"add many": func(t *rapid.T) {
				h, from := hash(t), id(t)
				for i := range rapid.Int64Range(1, 800).Draw(t, "n") {
					add(h, from+i)
				}
			},
			"remove many": func(t *rapid.T) {
				h, from := hash(t), id(t)
				for i := range rapid.Int64Range(1, 800).Draw(t, "n") {
					x.Remove(h, from+i)
					delete(model[h], from+i)
				}
			},
			"build anew": func(t *rapid.T) {
				x.Build(x.Len(), func(add func(uint64, int64)) {
					for h, ids := range model {
						for id := range ids {
							add(h, id)
						}
					}
				})
			},
			"": func(t *rapid.T) {
				checkPages(t, &x.pairs)
				for h, ids := range model {
					want := slices.Sorted(maps.Keys(ids))
					var got []int64
					x.Ascend(h, func(id int64) bool { got = append(got, id); return true })
					if !slices.Equal(got, want) || x.Count(h) != len(want) {
						t.Fatalf("hash %x: got %d ids %v, want %v", h, x.Count(h), got, want)
					}
				}
			},
		})
	})
}

func TestEntriesAreFewHeapObjectsAndFewBytes(t *testing.T) {
	const n = 250_000
	r := rand.New(rand.NewPCG(3, 4))
	values := make([]int64, n)
	for i := range values {
		values[i] = r.Int64()
	}
	for name, fill := range map[string]func() any{
		"distinct hashes": func() any {
			x := new(Hash)
			for i := range values {
				x.Add(doc.Hash(doc.IntValue(values[i])), int64(i+1))
			}
			return x
		},
		"three hashes": func() any {
			x := new(Hash)
			for i := range values {
				x.Add(doc.Hash(doc.IntValue(values[i]%3)), int64(i+1))
			}
			return x
		},
		"values in order": func() any {
			x := NewSorted(collation.None, func(id int64) doc.Value { return doc.IntValue(values[id-1]) })
			for i := range values {
				x.Add(doc.IntValue(values[i]), int64(i+1))
			}
			return x
		},
	} {
		t.Run(name, func(t *testing.T) {
			var x any
			if objects := heapObjects(func() { x = fill() }); objects >= n/100 {
				t.Errorf("%d heap objects, want fewer than %d", objects, n/100)
			}
			if bytes := x.(interface{ Bytes() int64 }).Bytes() / n; bytes > 27 {
				t.Errorf("%d bytes an entry, want 27 at most", bytes)
			}
		})
	}
}

func TestAHashGivesMemoryBack(t *testing.T) {
	const n = 100_000
	var x Hash
	for id := int64(1); id <= n; id++ {
		x.Add(uint64(id), id)
	}
	full := x.Bytes()
	for id := int64(1); id <= n; id++ {
		if id%100 != 0 {
			x.Remove(uint64(id), id)
		}
	}
	if got := x.Bytes(); got > full/10 || x.Len() != n/100 {
		t.Errorf("%d of %d entries take %d bytes, all took %d", x.Len(), n, got, full)
	}
	for id := int64(100); id <= n; id += 100 {
		x.Remove(uint64(id), id)
	}
	if got := x.Bytes(); got != 0 {
		t.Errorf("no entry takes %d bytes", got)
	}
}

func TestAnIndexOfTenDocumentsIsTiny(t *testing.T) {
	var ids IDs
	var hash Hash
	sorted := NewSorted(collation.None, func(id int64) doc.Value { return doc.IntValue(id) })
	for id := int64(1); id <= 10; id++ {
		ids.Set(id, uint64(id))
		hash.Add(uint64(id), id)
		sorted.Add(doc.IntValue(id), id)
	}
	if n := ids.Bytes(); n > 256 {
		t.Errorf("ids take %d bytes, want 256 at most", n)
	}
	if n := max(hash.Bytes(), sorted.Bytes()); n > 512 {
		t.Errorf("an index takes %d bytes, want 512 at most", n)
	}
}

func BenchmarkHash(b *testing.B) {
	const n = 1_000_000
	distinct, three := new(Hash), new(Hash)
	for i := range int64(n) {
		distinct.Add(doc.Hash(doc.IntValue(i)), i+1)
		three.Add(doc.Hash(doc.IntValue(i%3)), i+1)
	}
	b.Run("find one of a million", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			distinct.Ascend(doc.Hash(doc.IntValue(i*7919%n)), func(int64) bool { return false })
		}
	})
	b.Run("replace one of a million", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			k := i * 7919 % n
			distinct.Remove(doc.Hash(doc.IntValue(k)), k+1)
			distinct.Add(doc.Hash(doc.IntValue(k)), k+1)
		}
	})
	b.Run("replace one of three values", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			k := i * 7919 % n
			three.Remove(doc.Hash(doc.IntValue(k%3)), k+1)
			three.Add(doc.Hash(doc.IntValue(k%3)), k+1)
		}
	})
	b.Run("count one of three values", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			three.Count(doc.Hash(doc.IntValue(i % 3)))
		}
	})
}

func BenchmarkSorted(b *testing.B) {
	const n = 1_000_000
	value := func(id int64) doc.Value { return doc.IntValue(id * 7919 % n) }
	x := NewSorted(collation.None, value)
	x.Build(n, func(add func(doc.Value, int64)) {
		for id := int64(1); id <= n; id++ {
			add(value(id), id)
		}
	})
	for _, desc := range []bool{false, true} {
		b.Run(fmt.Sprintf("a page of twenty, desc %t", desc), func(b *testing.B) {
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				left := 20
				lo, hi := Bound{Unbounded: true}, Bound{Unbounded: true}
				at := Bound{Value: doc.IntValue(i * 31 % n), Inclusive: true}
				if desc {
					hi = at
				} else {
					lo = at
				}
				x.Range(lo, hi, desc, func(int64) bool { left--; return left > 0 })
			}
		})
	}
	b.Run("count half", func(b *testing.B) {
		for b.Loop() {
			x.Count(Bound{Value: doc.IntValue(n / 4)}, Bound{Value: doc.IntValue(3 * n / 4)})
		}
	})
	b.Run("replace", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			id := i%n + 1
			x.Remove(value(id), id)
			x.Add(value(id), id)
		}
	})
	b.Run("build a million", func(b *testing.B) {
		for b.Loop() {
			y := NewSorted(collation.None, value)
			y.Build(n, func(add func(doc.Value, int64)) {
				for id := int64(1); id <= n; id++ {
					add(value(id), id)
				}
			})
		}
	})
}
