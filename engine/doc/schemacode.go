package doc

import (
	"encoding/binary"
	"math"
	"time"

	"fenec/engine/collation"
	"fenec/engine/fail"
	"fenec/engine/vector"
)

// The versions of a schema's encoding. A schema is written in the first version that can represent it, so that a
// program that knows only earlier versions, and would return expired rows or order rows wrongly, does not open it.
const (
	schemaVersion       = 1
	schemaTTLVersion    = 2 // has ttls
	schemaSearchVersion = 3 // has vectors, sparse vectors and their indexes, text indexes, and collations
)

// version returns the first version that can represent s.
func (s *Schema) version() byte {
	version := byte(schemaVersion)
	for _, f := range s.Fields {
		switch {
		case f.Index.Kind > IndexTTL || f.Type.Dim > 0 || f.Collate != collation.None:
			return schemaSearchVersion
		case f.Index.Kind == IndexTTL:
			version = schemaTTLVersion
		}
	}
	return version
}

// AppendBinary appends the schema's encoding: a version byte, name, slots, fields, paths. Numbers are uvarints; texts
// are preceded by their length. What only some types and indexes have is after the field: see appendField.
func (s *Schema) AppendBinary(dst []byte) []byte {
	version := s.version()
	dst = append(dst, version)
	dst = AppendKey(dst, s.Name)
	dst = appendLength(dst, s.Slots)
	dst = appendLength(dst, len(s.Fields))
	for i := range s.Fields {
		dst = s.Fields[i].appendBinary(dst, version)
	}
	dst = appendLength(dst, len(s.Paths))
	for _, p := range s.Paths {
		dst = append(AppendKey(dst, p.Path), byte(p.Index))
	}
	return dst
}

// appendBinary appends a field: name, type, element type, required, index, slot. From the third version on these are
// followed by the collation, the dimensions of a vector or sparse vector and whether it is of f16; then by the options
// of the index: a ttl's span in seconds, the k1 and b (8 bytes each), prefix and chars of a text index, the metric, m,
// ef_construction, ef_search and quantisation of a graph.
func (f *Field) appendBinary(dst []byte, version byte) []byte {
	dst = AppendKey(dst, f.Name)
	dst = append(dst, byte(f.Type.Kind), byte(f.Type.Elem), flag(f.Required), byte(f.Index.Kind))
	dst = appendLength(dst, f.Slot)
	if version >= schemaSearchVersion {
		dst = append(dst, byte(f.Collate))
		if f.Type.dimensional() {
			dst = append(appendLength(dst, f.Type.Dim), flag(f.Type.F16))
		}
	}
	switch x := f.Index; x.Kind {
	case IndexTTL:
		dst = appendLength(dst, int(x.Span/time.Second))
	case IndexText:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Text.K1))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Text.B))
		dst = append(dst, byte(x.Text.Prefix), flag(x.Text.Chars))
	case IndexHNSW:
		dst = append(dst, byte(x.HNSW.Metric), byte(x.HNSW.Quant))
		dst = appendLength(dst, x.HNSW.M)
		dst = appendLength(dst, x.HNSW.EFConstruction)
		dst = appendLength(dst, x.HNSW.EFSearch)
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// DecodeSchema decodes a schema, which is all of b.
func DecodeSchema(b []byte) (*Schema, error) {
	if len(b) == 0 {
		return nil, fail.New(fail.Damaged, "a schema is empty")
	}
	if b[0] < schemaVersion || b[0] > schemaSearchVersion {
		return nil, fail.New(fail.Damaged, "a schema has version %d, and this version of fenec reads versions up to %d", b[0], schemaSearchVersion)
	}
	r := schemaReader{b: b[1:], version: b[0]}
	s := &Schema{Name: r.text(), Slots: r.number(MaxSlots)}
	for range r.number(MaxSlots) {
		f := r.field()
		if r.failed || f.Slot >= s.Slots || f.Index.Kind == IndexTTL && s.TTL() != nil {
			return nil, fail.New(fail.Damaged, "a schema has a broken field")
		}
		s.Fields = append(s.Fields, f)
	}
	for range r.number(MaxSlots) {
		p := PathIndex{Path: r.text(), Index: IndexKind(r.byte())}
		if r.failed || p.Index == 0 || p.Index > IndexSorted {
			return nil, fail.New(fail.Damaged, "a schema has a broken index")
		}
		s.Paths = append(s.Paths, p)
	}
	if r.failed || len(r.b) > 0 {
		return nil, fail.New(fail.Damaged, "a schema is cut short or has bytes after its end")
	}
	return s, nil
}

// schemaReader reads the parts of a schema; after the first invalid one every read returns zero.
type schemaReader struct {
	b       []byte
	version byte
	failed  bool
}

// field reads one field.
func (r *schemaReader) field() Field {
	f := Field{Name: r.text()}
	f.Type = Type{Kind: TypeKind(r.byte()), Elem: TypeKind(r.byte())}
	f.Required = r.flag()
	f.Index.Kind = IndexKind(r.byte())
	f.Slot = r.number(MaxSlots)
	if r.version >= schemaSearchVersion {
		f.Collate = collation.Collation(r.byte())
		if f.Type.dimensional() {
			f.Type.Dim = r.number(MaxSparseDim)
			f.Type.F16 = r.flag()
		}
	}
	r.index(&f)
	collated := f.Collate == collation.None || f.Collate.String() != "" && f.Type.Kind == TypeText
	r.failed = r.failed || !f.Type.known() || !collated
	return f
}

// index reads the options of a field's index, which must be allowed for its type.
func (r *schemaReader) index(f *Field) {
	x := &f.Index
	ok := false
	switch x.Kind {
	case 0, IndexHash, IndexUnique, IndexSorted:
		ok = true
	case IndexTTL:
		x.Span = time.Duration(r.number(int(MaxSpan/time.Second))) * time.Second
		ok = r.version >= schemaTTLVersion && f.Type.Kind == TypeTimestamp && x.Span > 0
	case IndexText:
		x.Text = TextOptions{K1: r.float(), B: r.float(), Prefix: int(r.byte()), Chars: r.flag()}
		ok = f.Type.Kind == TypeText && x.Text.valid()
	case IndexHNSW:
		x.HNSW = HNSWOptions{Metric: vector.Metric(r.byte()), Quant: vector.Quant(r.byte())}
		x.HNSW.M, x.HNSW.EFConstruction, x.HNSW.EFSearch = r.number(MaxM), r.number(MaxEF), r.number(MaxEF)
		ok = f.Type.Kind == TypeVector && x.HNSW.valid()
	case IndexInverted:
		ok = f.Type.Kind == TypeSparse
	}
	r.failed = r.failed || !ok
}

func (r *schemaReader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *schemaReader) flag() bool {
	c := r.byte()
	r.failed = r.failed || c > 1
	return c == 1
}

func (r *schemaReader) float() float64 {
	if len(r.b) < 8 {
		r.failed = true
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return f
}

func (r *schemaReader) number(limit int) int {
	n, w := binary.Uvarint(r.b)
	if w <= 0 || n > uint64(limit) {
		r.failed = true
		r.b = nil
		return 0
	}
	r.b = r.b[w:]
	return int(n)
}

func (r *schemaReader) text() string {
	n := r.number(len(r.b))
	if n > len(r.b) {
		r.failed = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
