package query

import (
	"context"
	"fmt"
	"testing"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/index/text"
	"fenec/engine/query/syntax"
)

// segment is a table as the engine keeps one: documents one after the other, found by an id index.
type segment struct {
	*memory
	schema *doc.Schema
	bytes  []byte
	ids    index.IDs
	sorted *index.Sorted
	puts   int
}

// benchRows is how many documents benchmarks run over.
const benchRows = 100_000

// newSegment fills a table with documents of about 100 bytes, ids from 1.
func newSegment(t testing.TB, rows int64) *segment {
	s := &segment{memory: newMemory()}
	s.must(t, `create collection c (n int, m int @sorted, x float, s text, b bool, t timestamp, g text)`)
	s.schema = s.tables["c"].schema
	s.memory.tables["c"].schema = s.schema
	var b doc.Builder
	for id := int64(1); id <= rows; id++ {
		b.Reset(s.schema.Slots)
		for slot, v := range []doc.Value{
			doc.IntValue(id * 7919 % rows), doc.IntValue(id * 104729 % rows), doc.FloatValue(float64(id) / 8),
			doc.TextValue(fmt.Appendf(nil, "document number %d of these", id)), doc.BoolValue(id%3 == 0), doc.TimestampValue(1700000000000 + id), doc.TextValue(fmt.Appendf(nil, "group %d", id*31%100)),
		} {
			if err := b.Set(slot, s.schema.Fields[slot].Type, v, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.ids.Set(id, uint64(len(s.bytes)))
		s.bytes = b.AppendTo(s.bytes, id)
	}
	s.sorted = index.NewSorted(collation.None, func(id int64) doc.Value { return s.Get(id).Field(1).Value() })
	s.sorted.Build(int(rows), func(add func(doc.Value, int64)) {
		for id := int64(1); id <= rows; id++ {
			add(s.Get(id).Field(1).Value(), id)
		}
	})
	return s
}

func (s *segment) Table(string) Table                  { return s }
func (s *segment) Schema() *doc.Schema                 { return s.schema }
func (s *segment) Len() int                            { return s.ids.Len() }
func (s *segment) Hash(string) *index.Hash             { return nil }
func (s *segment) Sorted(string) *index.Sorted         { return s.sorted }
func (s *segment) Vectors(string) *hnsw.Graph          { return nil }
func (s *segment) Text(string) *text.Index             { return nil }
func (s *segment) Inverted(string) *index.Inverted     { return nil }
func (s *segment) NextID(string) int64                 { return s.ids.Last() + 1 }
func (s *segment) TakeID(string, int64)                {}
func (s *segment) Put(string, doc.Document) error      { s.puts++; return nil }
func (s *segment) EndStatement(context.Context) error  { return nil }
func (s *segment) Ready(context.Context, string) error { return nil }
func (s *segment) Get(id int64) doc.Document {
	ref, ok := s.ids.Get(id)
	if !ok {
		return nil
	}
	return doc.At(s.bytes, ref)
}

func (s *segment) Ascend(from int64, fn func(doc.Document) bool) {
	s.ids.Ascend(from, func(_ int64, ref uint64) bool { return fn(doc.At(s.bytes, ref)) })
}

func (s *segment) plan(t testing.TB, text string) *Plan {
	st, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(st, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// benchmarked are statements with their parameters and the rows they return or write.
var benchmarked = []struct {
	name, text string
	params     []doc.Value
	rows       int
	scanned    bool // every document is tested
}{
	{"get by id", `get c where id = $1`, []doc.Value{doc.IntValue(5000)}, 1, false},
	{"get by three ids", `get c where id in [$1, 17, 90000]`, []doc.Value{doc.IntValue(5000)}, 3, false},
	{"count an int filter", `get c where n < $1 count`, []doc.Value{doc.IntValue(100)}, 1, true},
	{"count a float filter", `get c where x < $1 count`, []doc.Value{doc.FloatValue(100)}, 1, true},
	{"count a text filter", `get c where s = $1 count`, []doc.Value{doc.TextValue([]byte("document number 70000 of these"))}, 1, true},
	{"count a text search", `get c where s ~ $1 count`, []doc.Value{doc.TextValue([]byte("NUMBER 7000"))}, 1, true},
	{"count two terms", `get c where n < $1 and b count`, []doc.Value{doc.IntValue(50000)}, 1, true},
	{"count arithmetic", `get c where n + 1 < $1 count`, []doc.Value{doc.IntValue(50000)}, 1, true},
	{"filter rows", `get c where n < $1`, []doc.Value{doc.IntValue(100)}, 100, true},
	{"range count", `get c where m < $1 count`, []doc.Value{doc.IntValue(50000)}, 1, false},
	{"page of an index", `get c order m desc limit 20`, nil, 20, false},
	{"page of an index, filtered", `get c where n > $1 order m limit 20`, []doc.Value{doc.IntValue(50000)}, 20, false},
	{"page of a sort", `get c order n desc limit 20`, nil, 20, true},
	{"range of an index", `get c where m >= $1 and m < $2`, []doc.Value{doc.IntValue(50000), doc.IntValue(50020)}, 20, false},
	{"group into 100", `get c select g, count(*), sum(n) group g`, nil, 100, true},
	{"aggregate all", `get c select count(*), sum(n), avg(x), max(s)`, nil, 1, true},
	{"sum of floats by group", `get c select g, sum(x) group g`, nil, 100, true},
	{"ends of an index", `get c select min(m), max(m)`, nil, 1, false},
	{"put", `put c {n: $1, m: 5, x: 2.5, s: $2, b: true}`, []doc.Value{doc.IntValue(5), doc.TextValue([]byte("some text"))}, 1, false},
	{"put a parameter", `put c $1`, []doc.Value{object(`{"n": 5, "m": 5, "x": 2.5, "s": "some text", "b": true}`)}, 1, false},
	{"set by id", `set c {n: n + 1} where id = $1`, []doc.Value{doc.IntValue(5000)}, 1, false},
}

func object(text string) doc.Value {
	raw, err := doc.ParseJSON(nil, []byte(text))
	if err != nil {
		panic(err)
	}
	return doc.Raw(raw).Value()
}

func BenchmarkRun(b *testing.B) {
	s := newSegment(b, benchRows)
	for _, bm := range benchmarked {
		b.Run(bm.name, func(b *testing.B) {
			p := s.plan(b, bm.text)
			env := &Env{Params: bm.params, Now: testNow}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				r, err := p.Run(env, s, dst[:0])
				if err != nil || r.Rows+int(r.Affected) != bm.rows {
					b.Fatal(r, err)
				}
				dst = r.Body
			}
			if bm.scanned {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
			}
		})
	}
}
