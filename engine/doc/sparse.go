package doc

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"fenec/engine/fail"
)

// The content of a sparse vector is its number of dimensions, then for each weight its index and the weight itself, by
// ascending index. Each of these takes four bytes, little-endian.
const (
	sparseHeader = 4
	weightSize   = 4 + 4
)

// Weights are the weights of a sparse vector that are not 0, by ascending index.
type Weights []byte

// Weights returns the weights of a sparse vector, none for anything else.
func (v Value) Weights() Weights {
	if v.Kind != Sparse {
		return nil
	}
	return Weights(v.B[sparseHeader:])
}

// Len returns the number of weights.
func (w Weights) Len() int { return len(w) / weightSize }

// At returns weight i with its index, which goes from 1 to the number of dimensions.
func (w Weights) At(i int) (index uint32, weight float32) {
	b := w[weightSize*i : weightSize*i+weightSize]
	return binary.LittleEndian.Uint32(b), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
}

// appendSparse appends v, the text {index:weight,...}/N, encoded as a sparse vector. Weights of 0 are left out.
func (t Type) appendSparse(dst []byte, v Value, what string) ([]byte, error) {
	switch v.Kind {
	case Text, Untyped:
	case Sparse: // with another number of dimensions: Holds has checked
		return nil, t.expected(v, what)
	default:
		return nil, t.wantsSparse(v, what)
	}
	s, ok := scanSparse(v.B)
	if !ok {
		return nil, t.wantsSparse(v, what)
	}
	if s.dim != t.Dim {
		return nil, fail.New(fail.Invalid, "%s: expected %s, got %s, which has %s", what, t, describe(v), counted(s.dim, "dimension"))
	}
	if err := t.sorted(s.weights, what); err != nil {
		return nil, err
	}
	weights := slices.DeleteFunc(s.weights, func(w indexed) bool { return w.weight == 0 })
	dst = appendLength(append(dst, tagSparse), sparseHeader+weightSize*len(weights))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(t.Dim))
	for _, w := range weights {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(w.index))
		dst = appendFloat32Bytes(dst, w.weight)
	}
	return dst, nil
}

func (t Type) wantsSparse(v Value, what string) error {
	return fail.New(fail.Invalid, "%s: expected %s as text {index:weight,...}/%d, got %s", what, t, t.Dim, describe(v))
}

// indexed is one weight as it was read.
type indexed struct {
	index  int64
	weight float32
	text   []byte
}

// sorted checks weights and sorts them in place.
func (t Type) sorted(weights []indexed, what string) error {
	for _, w := range weights {
		switch {
		case w.index < 1 || w.index > int64(t.Dim):
			return fail.New(fail.Invalid, "%s: expected %s, got index %d, which is not from 1 to %d", what, t, w.index, t.Dim)
		case w.weight-w.weight != 0:
			return fail.New(fail.Invalid, "%s: expected %s, got %s at index %d, which is past the range of f32", what, t, short(w.text), w.index)
		}
	}
	slices.SortStableFunc(weights, func(a, b indexed) int { return cmp.Compare(a.index, b.index) })
	for i := 1; i < len(weights); i++ {
		if weights[i].index == weights[i-1].index {
			return fail.New(fail.Invalid, "%s: expected %s, got the index %d twice", what, t, weights[i].index)
		}
	}
	return nil
}

// sparseText is the parsed text of a sparse vector.
type sparseText struct {
	weights []indexed
	dim     int
}

// scanSparse reads {index:weight,...}/N, with optional spaces; ok is false for anything else.
func scanSparse(s []byte) (out sparseText, ok bool) {
	if !utf8.Valid(s) {
		return out, false
	}
	take := func(c byte) bool {
		if s = skipSpaces(s); len(s) == 0 || s[0] != c {
			return false
		}
		s = skipSpaces(s[1:])
		return true
	}
	whole := func() (int64, bool) {
		n, length := shortInt(s)
		s = s[length:]
		return n, length > 0
	}
	if !take('{') {
		return out, false
	}
	for more := len(s) > 0 && s[0] != '}'; more; more = take(',') {
		var w indexed
		if w.index, ok = whole(); !ok || !take(':') {
			return out, false
		}
		f, length := parseFloat32(s)
		if length == 0 {
			return out, false
		}
		w.weight, w.text = f, s[:length]
		s = s[length:]
		out.weights = append(out.weights, w)
	}
	if !take('}') || !take('/') {
		return out, false
	}
	dim, ok := whole()
	out.dim = int(dim)
	return out, ok && len(skipSpaces(s)) == 0
}

// AppendSparse appends the text of a sparse vector, {index:weight,...}/N, each weight the shortest that reads back.
func AppendSparse(dst []byte, v Value) []byte {
	dst = append(dst, '{')
	weights := v.Weights()
	for i := range weights.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		index, weight := weights.At(i)
		dst = append(strconv.AppendUint(dst, uint64(index), 10), ':')
		dst = AppendFloat32(dst, weight)
	}
	return strconv.AppendInt(append(dst, "}/"...), int64(v.Dim()), 10)
}

// compareSparse orders sparse vectors by their dimensions, then as lists of index and weight.
func compareSparse(a, b Value) int {
	if c := cmp.Compare(a.Dim(), b.Dim()); c != 0 {
		return c
	}
	x, y := a.Weights(), b.Weights()
	for i := range min(x.Len(), y.Len()) {
		xi, xw := x.At(i)
		yi, yw := y.At(i)
		if c := cmp.Or(cmp.Compare(xi, yi), cmp.Compare(xw, yw)); c != 0 {
			return c
		}
	}
	return cmp.Compare(x.Len(), y.Len())
}

// validSparse reports whether the content of a sparse vector is encoded as Append would.
func validSparse(content []byte) bool {
	if len(content) < sparseHeader || (len(content)-sparseHeader)%weightSize != 0 {
		return false
	}
	v := Value{Kind: Sparse, B: content}
	dim, last := v.Dim(), uint32(0)
	if dim < 1 || dim > MaxSparseDim {
		return false
	}
	weights := v.Weights()
	for i := range weights.Len() {
		index, weight := weights.At(i)
		if index <= last || int(index) > dim || weight == 0 || weight-weight != 0 {
			return false
		}
		last = index
	}
	return true
}
