//go:build !race

package query

import (
	"math"
	"testing"

	"fenec/engine/doc"
)

// newVectors fills a table with vectors of 128 dimensions, of f32 and of f16.
func newVectors(t testing.TB, rows int) *segment {
	s := &segment{memory: newMemory()}
	s.must(t, `create collection c (v vector<128>, h vector<128, f16>)`)
	s.schema = s.tables["c"].schema
	var b doc.Builder
	floats := make([]float32, 128)
	for id := int64(1); id <= int64(rows); id++ {
		for i := range floats {
			floats[i] = float32(math.Sin(float64(id*int64(i+1)) * 0.7))
		}
		b.Reset(s.schema.Slots)
		for slot := range 2 {
			if err := b.Set(slot, s.schema.Fields[slot].Type, doc.VectorValue(doc.AppendFloats(nil, floats)), ""); err != nil {
				t.Fatal(err)
			}
		}
		s.ids.Set(id, uint64(len(s.bytes)))
		s.bytes = b.AppendTo(s.bytes, id)
	}
	return s
}

var measured = []string{
	`get c where cosine(v, $1) > 0.99 count`,
	`get c where l2($1, v) < 1 count`,
	`get c where dot(h, $1) > 60 count`,
	`get c where cosine(v, h) < 0.9 count`,
	`get c where norm(v) > 1000 count`,
	`get c where v = $1 count`,
	`get c where cosine(normalize(v), normalize($1)) > 0.99 count`,
}

func queryVector() []doc.Value {
	text := []byte("[")
	for i := range 128 {
		text = append(doc.AppendFloat(text, math.Sin(float64(i+1)*0.7)), ',')
	}
	text[len(text)-1] = ']'
	return []doc.Value{{Kind: doc.Untyped, B: text}}
}

func TestScansByMeasuresAllocateNothingForARow(t *testing.T) {
	for _, text := range measured {
		allocations := func(rows int) float64 {
			s := newVectors(t, rows)
			p := s.plan(t, text)
			env := &Env{Now: testNow}
			if p.params > 0 {
				env.Params = queryVector()
			}
			var dst []byte
			return testing.AllocsPerRun(5, func() {
				r, err := p.Run(env, s, dst[:0])
				if err != nil {
					t.Fatal(err)
				}
				dst = r.Body
			})
		}
		if few, many := allocations(10), allocations(1000); many > few {
			t.Errorf("%s: %.0f allocations for 10 rows, %.0f for 1000", text, few, many)
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	const rows = 10_000
	s := newVectors(b, rows)
	for _, text := range measured {
		b.Run(text, func(b *testing.B) {
			p := s.plan(b, text)
			env := &Env{Now: testNow}
			if p.params > 0 {
				env.Params = queryVector()
			}
			var dst []byte
			for b.Loop() {
				r, err := p.Run(env, s, dst[:0])
				if err != nil {
					b.Fatal(err)
				}
				dst = r.Body
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
