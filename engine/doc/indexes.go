package doc

import (
	"strconv"
	"time"

	"fenec/engine/vector"
)

// IndexKind is the kind of index of a field or path, 0 for none. The numbers are part of the file format.
type IndexKind uint8

const (
	IndexHash     IndexKind = iota + 1 // serves = and in
	IndexUnique                        // like IndexHash, and no two documents have the same value
	IndexSorted                        // serves ranges and orders
	IndexTTL                           // like IndexSorted, and defines when a row expires: see Index.Span
	IndexText                          // serves match
	IndexHNSW                          // serves near on vectors
	IndexInverted                      // serves near on sparse vectors
)

var indexNames = [...]string{
	IndexHash: "@hash", IndexUnique: "@unique", IndexSorted: "@sorted", IndexTTL: "@ttl",
	IndexText: "@text", IndexHNSW: "@hnsw", IndexInverted: "@inverted",
}

// Ordered reports whether an index keeps its values in order.
func (k IndexKind) Ordered() bool { return k == IndexSorted || k == IndexTTL }

// String returns the index's name in the language, empty for none.
func (k IndexKind) String() string {
	if int(k) < len(indexNames) {
		return indexNames[k]
	}
	return "unknown index"
}

// Index is the index of a field and its options. The zero Index is none.
type Index struct {
	Kind IndexKind
	Span time.Duration // of IndexTTL: how long a row lives past its time, in whole seconds
	Text TextOptions   // of IndexText
	HNSW HNSWOptions   // of IndexHNSW
}

// TextOptions are the options of `@text(k1=1.2, b=0.75, prefix=0, chars)`.
type TextOptions struct {
	K1, B  float64
	Prefix int  // the longest prefix of a word that is indexed, in letters; 0 for none
	Chars  bool // single characters of scripts without spaces are indexed too
}

// HNSWOptions are the options of `@hnsw(cosine, m=16, ef_construction=200, ef_search=100, quant=int8)`.
type HNSWOptions struct {
	Metric                      vector.Metric
	M, EFConstruction, EFSearch int
	Quant                       vector.Quant
}

// The defaults of an index declared without options.
var (
	DefaultText = TextOptions{K1: 1.2, B: 0.75}
	DefaultHNSW = HNSWOptions{Metric: vector.Cosine, M: 16, EFConstruction: 200, EFSearch: 100}
)

// The bounds of the options.
const (
	MaxK1     = 1000.0
	MinPrefix = 3
	MaxPrefix = 32
	MinM      = 2
	MaxM      = 128
	MaxEF     = 10_000
)

// valid reports whether a schema may hold the options.
func (o TextOptions) valid() bool {
	return o.K1 >= 0 && o.K1 <= MaxK1 && o.B >= 0 && o.B <= 1 && (o.Prefix == 0 || o.Prefix >= MinPrefix && o.Prefix <= MaxPrefix)
}

func (o HNSWOptions) valid() bool {
	return o.Metric.String() != "" && (o.Quant == 0 || o.Quant.String() != "") && o.M >= MinM && o.M <= MaxM &&
		o.EFConstruction >= 1 && o.EFConstruction <= MaxEF && o.EFSearch >= 1 && o.EFSearch <= MaxEF
}

// String returns the index as written in the language, without options that have their default; empty for none.
func (x Index) String() string {
	o := options{b: []byte(x.Kind.String())}
	switch x.Kind {
	case IndexTTL:
		o.word(FormatSpan(x.Span))
	case IndexText:
		o.text(x.Text)
	case IndexHNSW:
		o.hnsw(x.HNSW)
	}
	return o.end()
}

// options builds the text between an index's parentheses.
type options struct {
	b    []byte
	open bool
}

func (o *options) word(s string) {
	if o.open {
		o.b = append(o.b, ", "...)
	} else {
		o.b = append(o.b, '(')
		o.open = true
	}
	o.b = append(o.b, s...)
}

func (o *options) number(name string, n, usual int) {
	if n != usual {
		o.word(name + "=" + strconv.Itoa(n))
	}
}

func (o *options) float(name string, f, usual float64) {
	if f != usual {
		o.word(name + "=" + string(AppendFloat(nil, f)))
	}
}

func (o *options) text(t TextOptions) {
	o.float("k1", t.K1, DefaultText.K1)
	o.float("b", t.B, DefaultText.B)
	o.number("prefix", t.Prefix, DefaultText.Prefix)
	if t.Chars {
		o.word("chars")
	}
}

func (o *options) hnsw(h HNSWOptions) {
	o.word(h.Metric.String())
	o.number("m", h.M, DefaultHNSW.M)
	o.number("ef_construction", h.EFConstruction, DefaultHNSW.EFConstruction)
	o.number("ef_search", h.EFSearch, DefaultHNSW.EFSearch)
	if h.Quant != 0 {
		o.word("quant=" + h.Quant.String())
	}
}

func (o *options) end() string {
	if o.open {
		o.b = append(o.b, ')')
	}
	return string(o.b)
}
