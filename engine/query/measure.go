package query

import (
	"math"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/query/syntax"
	"fenec/engine/vector"
)

// measures are the functions of two vectors. Their value is the score of a near with that metric.
var measures = map[string]vector.Metric{"cosine": vector.Cosine, "l2": vector.L2, "dot": vector.DotProduct}

// measuring is the scratch of a run for the functions on vectors.
type measuring struct {
	scorer vector.Scorer
	floats []float32 // of a vector of f16
	normal []float32 // of a normalize
}

// view returns the numbers of a vector, valid until the next view.
func (m *measuring) view(v doc.Value) []float32 {
	m.floats = slices.Grow(m.floats[:0], v.Dim())
	return v.Floats(m.floats)
}

// vectorArgument fails if an argument of a function on vectors cannot be a vector.
func vectorArgument(name string, n node) error {
	return checkKind(name, "a vector", n, doc.Vector, doc.List, doc.Text)
}

// asVector converts a value of the run to a vector. Null stays null.
func (f *frame) asVector(name string, v doc.Value, pos syntax.Pos) doc.Value {
	if v.Kind == doc.Null || v.Kind == doc.Vector {
		return v
	}
	v, err := doc.VectorOf(v, name)
	if err != nil {
		return f.setErr(pos, err)
	}
	return v
}

// measure compiles cosine, l2 or dot. A constant is read as a vector, or as a sparse one, once per run.
func (c *compiler) measure(e *syntax.Call, x, y node) (node, error) {
	if x.kind == doc.Sparse || y.kind == doc.Sparse {
		return c.sparseDot(e, x, y)
	}
	for _, n := range [...]node{x, y} {
		if err := vectorArgument(e.Name, n); err != nil {
			return node{}, err
		}
	}
	if a, b := dimOf(x), dimOf(y); a > 0 && b > 0 && a != b {
		return node{}, errorAt(fail.Invalid, e.Pos, "%s: expected two vectors of one length, got %s and %s", e.Name, x.column.typ, y.column.typ)
	}
	if x.constant && !y.constant {
		x, y = y, x // all measures are symmetric
	}
	out := node{kind: doc.Float, constant: x.constant && y.constant, pos: e.Pos}
	metric := measures[e.Name]
	switch {
	case out.constant:
		out.eval = measureTwo(e, metric, x, y)
		return c.once(out), nil
	case y.constant:
		out.eval = measureAgainst(e, x, c.bind(bindVector(e.Name, metric, x, y)))
	default:
		out.eval = measureTwo(e, metric, x, y)
	}
	return out, nil
}

// dimOf returns how many dimensions the vectors of a field have, or 0 if n is not such a field.
func dimOf(n node) int {
	if n.column == nil {
		return 0
	}
	return n.column.typ.Dim
}

// bindVector prepares the run's operand to score the vectors of x against a constant.
func bindVector(name string, metric vector.Metric, x, constant node) func(*frame, *operand) error {
	given, pos := constant.given(), constant.pos
	typ := doc.Type{Kind: doc.TypeVector, Dim: dimOf(x)}
	return func(f *frame, o *operand) error {
		v := given(f)
		if typ.Dim == 0 {
			v = f.asVector(name, v, pos)
		}
		if err := f.take(); err != nil {
			return err
		}
		if typ.Dim > 0 && (v.Kind != doc.Vector || v.Dim() != typ.Dim) {
			var err error
			if v, err = typ.Convert(v, name); err != nil {
				return placed(pos, err)
			}
		}
		if o.value = v; v.Kind == doc.Null {
			o.null = true
			return nil
		}
		if o.scorer == nil {
			o.scorer = new(vector.Scorer)
		}
		o.scorer.Reset(metric, f.measuring.view(v))
		return nil
	}
}

// measureAgainst returns a function that scores x against operand i.
func measureAgainst(e *syntax.Call, x node, i int) evalFunc {
	eval, name, pos := x.eval, e.Name, e.Pos
	return func(f *frame) doc.Value {
		v := f.asVector(name, eval(f), pos)
		o := &f.operands[i]
		if v.Kind == doc.Null || o.null {
			return doc.Value{}
		}
		if n, m := v.Dim(), o.value.Dim(); n != m {
			return f.unequal(name, n, m, pos)
		}
		return doc.Float32Value(o.scorer.Score(f.measuring.view(v)))
	}
}

// measureTwo returns a function that scores two vectors of the row.
func measureTwo(e *syntax.Call, metric vector.Metric, x, y node) evalFunc {
	a, b, name, pos := x.eval, y.eval, e.Name, e.Pos
	return func(f *frame) doc.Value {
		v := f.asVector(name, a(f), pos)
		w := f.asVector(name, b(f), pos)
		if v.Kind == doc.Null || w.Kind == doc.Null {
			return doc.Value{}
		}
		if n, m := v.Dim(), w.Dim(); n != m {
			return f.unequal(name, n, m, pos)
		}
		s := &f.measuring.scorer
		s.Reset(metric, f.measuring.view(w))
		return doc.Float32Value(s.Score(f.measuring.view(v)))
	}
}

func (f *frame) unequal(name string, n, m int, pos syntax.Pos) doc.Value {
	return f.fail(pos, "%s: expected two vectors of one length, got %s and %s", name, count(n, "number"), count(m, "number"))
}

// sparseDot compiles dot of sparse vectors, one of them a field: the other is too, or a constant.
func (c *compiler) sparseDot(e *syntax.Call, x, y node) (node, error) {
	if e.Name != "dot" {
		return node{}, errorAt(fail.Invalid, e.Pos, "%s: expected vectors, got sparse: of sparse vectors there is dot", e.Name)
	}
	if x.column == nil || x.kind != doc.Sparse {
		x, y = y, x
	}
	if x.column == nil || x.kind != doc.Sparse || y.kind != doc.Sparse && !y.constant {
		return node{}, errorAt(fail.Invalid, e.Pos, "dot of a sparse vector: expected a sparse field and another, or its text")
	}
	typ, a, b := x.column.typ, x.eval, y.eval
	if n := dimOf(y); n > 0 && n != typ.Dim {
		return node{}, errorAt(fail.Invalid, e.Pos, "dot: expected two vectors of one length, got %s and %s", typ, y.column.typ)
	}
	if y.constant {
		i := c.bind(bindSparse(typ, y))
		b = func(f *frame) doc.Value { return f.operands[i].value }
	}
	return node{kind: doc.Float, pos: e.Pos, eval: func(f *frame) doc.Value {
		v, w := a(f), b(f)
		if v.Kind == doc.Null || w.Kind == doc.Null {
			return doc.Value{}
		}
		score, _ := index.SparseDot(v.Weights(), w.Weights())
		return doc.Float32Value(score)
	}}, nil
}

// bindSparse reads a constant as a sparse vector of the type.
func bindSparse(typ doc.Type, constant node) func(*frame, *operand) error {
	given, pos := constant.given(), constant.pos
	return func(f *frame, o *operand) error {
		v := given(f)
		if err := f.take(); err != nil {
			return err
		}
		var err error
		o.value, err = typ.Convert(v, "dot")
		return placed(pos, err)
	}
}

// normFunction compiles norm: the Euclidean length of a vector.
func normFunction(args []node, pos syntax.Pos) (node, error) {
	if err := vectorArgument("norm", args[0]); err != nil {
		return node{}, err
	}
	eval := args[0].given()
	return node{kind: doc.Float, eval: func(f *frame) doc.Value {
		v := f.asVector("norm", eval(f), pos)
		if v.Kind == doc.Null {
			return v
		}
		return doc.Float32Value(vector.Norm(f.measuring.view(v)))
	}}, nil
}

// atLengthOne appends v scaled to length 1, or zeros if its length is 0. Each number is the float32 nearest to the exact
// one, or next to it. vector.Normalize, which indexes use, is faster and a digit less exact.
func atLengthOne(dst, v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	for _, x := range v {
		if length > 0 {
			x = float32(float64(x) / length)
		}
		dst = append(dst, x)
	}
	return dst
}

// normalizeFunction compiles normalize: a vector scaled to length 1. One of length 0 is unchanged.
func normalizeFunction(args []node, pos syntax.Pos) (node, error) {
	if err := vectorArgument("normalize", args[0]); err != nil {
		return node{}, err
	}
	eval := args[0].given()
	return node{kind: doc.Vector, eval: func(f *frame) doc.Value {
		v := f.asVector("normalize", eval(f), pos)
		if v.Kind == doc.Null {
			return v
		}
		m := &f.measuring
		m.normal = atLengthOne(m.normal[:0], m.view(v))
		start := len(f.arena)
		f.arena = doc.AppendFloats(f.arena, m.normal)
		return doc.VectorValue(f.arena[start:len(f.arena):len(f.arena)])
	}}, nil
}
