package engine

import (
	"math"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// vectorOf encodes a vector of the type of a field.
func vectorOf(t *testing.T, typ doc.Type, text string) doc.Value {
	t.Helper()
	raw, err := typ.Append(nil, doc.TextValue([]byte(text)), "the vector")
	if err != nil {
		t.Fatal(err)
	}
	return doc.Raw(raw).Value()
}

// TestVectorsThatDoNotFitTheirSchemaAreRead runs statements on vectors of other lengths, widths and kinds than their fields,
// and on values that are no vectors.
func TestVectorsThatDoNotFitTheirSchemaAreRead(t *testing.T) {
	v3, h2, s5 := doc.Type{Kind: doc.TypeVector, Dim: 3}, doc.Type{Kind: doc.TypeVector, Dim: 2, F16: true}, doc.Type{Kind: doc.TypeSparse, Dim: 5}
	schema := doc.Schema{Name: "c", Slots: 4, Fields: []doc.Field{
		{Name: "v", Type: v3},
		{Name: "h", Type: h2, Slot: 1},
		{Name: "s", Type: s5, Slot: 2},
		{Name: "i", Type: v3, Index: doc.Index{Kind: doc.IndexHNSW, HNSW: doc.DefaultHNSW}, Slot: 3},
	}}
	short := vectorOf(t, doc.Type{Kind: doc.TypeVector, Dim: 2}, "[1,2]")
	half := vectorOf(t, h2, "[1,2]")
	sparse := vectorOf(t, doc.Type{Kind: doc.TypeSparse, Dim: 9}, "{9:1}/9")
	nan := doc.VectorValue(doc.AppendFloats(nil, []float32{1, float32(math.NaN()), float32(math.Inf(1))}))
	odd := doc.Value{Kind: doc.Vector, B: []byte{1, 2, 3}}
	cut := doc.Value{Kind: doc.Sparse, B: []byte{1, 2}}
	text, list := doc.TextValue([]byte("a")), doc.Raw(mustParse(t, `[1, {"x": [null]}]`)).Value()
	good := vectorOf(t, v3, "[1,2,3]")
	fs := made(t, schemaOp(opCreate, 1, schema),
		putOp(1, short, short, short, short), putOp(2, half, good, half, half), putOp(3, sparse, sparse, sparse, sparse), putOp(4, nan, nan, nan, nan),
		putOp(5, odd, odd, odd, odd), putOp(6, cut, cut, cut, cut), putOp(7, text, list, text, text), putOp(8, list, text, list, list), putOp(9), putOp(10, good, half, vectorOf(t, s5, "{1:1}/5"), good))
	db := reopen(t, Options{FS: fs})
	for _, q := range []string{
		`get c`, `get c where v = [1,2,3]`, `get c where h = [1,2] or s = "{1:1}/5"`, `get c where v in ["[1,2,3]", [3,4,5]]`, `get c where v = i`,
		`get c select v, count(*), count(s) group v`, `get c select s, count(*) group s`, `get c where v in (get c select i)`, `get c select len(v)`,
		`get c select norm(v) where id < 3`, `get c select norm(v) where id = 3`, `get c select norm(v), normalize(v) where id = 4`,
		`get c select norm(v), normalize(h) where id = 5`, `get c select norm(h) where id in [2, 10]`, `get c where cosine(v, [1,2,3]) > 0`, `get c where l2(v, [1,2,3]) > 0 and id = 4`,
		`get c where dot(s, "{1:2,5:1}/5") > 0`, `get c where dot(s, s) > 0`, `get c where dot(v, i) > 0 and id = 1`,
		`get c near v [1,2,3] limit 5`, `get c near h [1,2] limit 5`, `get c near s "{1:1}/5" limit 5`, `get c near i [1,2,3] limit 5`, `get c near i [1,2,3] exact limit 5`,
		`set c {v: i} where id > 8`, `set c {v: i, h: [1,2]}`, `set c {v: [1,2,3]} where id < 5`, `del c where v = [1,2,3]`, `compact`, `del c`,
	} {
		_, err := exec(db, q)
		if kind := fail.KindOf(err); err != nil && kind != fail.Invalid {
			t.Errorf("%s: %v", q, err)
		}
	}
}
