package syntax

import (
	"time"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/vector"

	"pgregory.net/rapid"
)

// drawSearch makes st a get of rows by their scores.
func drawSearch(t *rapid.T, st *Get) {
	near := func() {
		st.Near = &Near{Field: drawNamed(t), Vector: drawVector(t), EF: drawPositive(t), Exact: rapid.Bool().Draw(t, "exact")}
	}
	match := func() {
		text := rapid.SampledFrom([]Expr{&Param{N: 3}, &Literal{Value: doc.TextValue([]byte("two words"))}}).Draw(t, "text")
		st.Match = &Match{Field: drawNamed(t), Text: text}
	}
	switch rapid.IntRange(0, 3).Draw(t, "search") {
	case 0:
		near()
	case 1:
		match()
		st.Order = drawOrder(t)
	case 2:
		match()
		st.Rerank = &Rerank{Field: drawNamed(t), Vector: drawVector(t), Candidates: drawPositive(t)}
	case 3:
		near()
		match()
		st.Fuse = &Fuse{K: drawBound(t), Candidates: drawPositive(t)}
	}
	st.Select, st.Limit, st.Offset = drawSelect(t), drawBound(t), drawBound(t)
}

func drawVector(t *rapid.T) Expr {
	switch rapid.IntRange(0, 2).Draw(t, "vector") {
	case 0:
		return &Param{N: 4}
	case 1:
		return &Literal{Value: doc.TextValue([]byte("{3:0.5}/9"))}
	}
	out := &ListExpr{}
	for range rapid.IntRange(0, 3).Draw(t, "dimensions") {
		out.Items = append(out.Items, rapid.Custom(drawLiteral).Filter(func(l *Literal) bool { return l.Value.IsNumber() }).Draw(t, "number"))
	}
	return out
}

func drawPositive(t *rapid.T) Expr {
	x := drawBound(t)
	if l, ok := x.(*Literal); ok && l.Value.Int() == 0 {
		return &Param{N: 1}
	}
	return x
}

func drawCollation(t *rapid.T) collation.Collation {
	return rapid.SampledFrom([]collation.Collation{collation.None, collation.None, collation.Root, collation.Turkish}).Draw(t, "collation")
}

func drawIndex(t *rapid.T) doc.Index {
	x := doc.Index{Kind: doc.IndexKind(rapid.IntRange(int(doc.IndexHash), int(doc.IndexInverted)).Draw(t, "index"))}
	switch x.Kind {
	case doc.IndexTTL:
		x.Span = time.Duration(rapid.Int64Range(1, int64(doc.MaxSpan/time.Second)).Draw(t, "seconds")) * time.Second
	case doc.IndexText:
		x.Text = doc.TextOptions{K1: rapid.Float64Range(0, doc.MaxK1).Draw(t, "k1"), B: rapid.Float64Range(0, 1).Draw(t, "b"), Chars: rapid.Bool().Draw(t, "chars")}
		if rapid.Bool().Draw(t, "prefixes") {
			x.Text.Prefix = rapid.IntRange(doc.MinPrefix, doc.MaxPrefix).Draw(t, "prefix")
		}
	case doc.IndexHNSW:
		x.HNSW = doc.HNSWOptions{
			Metric:         rapid.SampledFrom([]vector.Metric{vector.Cosine, vector.L2, vector.DotProduct}).Draw(t, "metric"),
			M:              rapid.IntRange(doc.MinM, doc.MaxM).Draw(t, "m"),
			EFConstruction: rapid.IntRange(1, doc.MaxEF).Draw(t, "ef_construction"),
			EFSearch:       rapid.IntRange(1, doc.MaxEF).Draw(t, "ef_search"),
			Quant:          rapid.SampledFrom([]vector.Quant{0, vector.Int8, vector.Bit}).Draw(t, "quant"),
		}
	}
	return x
}
