package query

import (
	"bytes"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// The tallies of min and max keep the first of equal values.

// extremeTally returns the tally of a min or max.
func (a *aggregate) extremeTally() tally {
	largest := a.name == "max"
	switch typ := a.column.typ; {
	case whole(typ):
		return &wholeTally{column: a.column, max: largest}
	case typ.Kind == doc.TypeFloat:
		return &floatExtremeTally{column: a.column, max: largest}
	}
	return &extremeTally{column: a.column, max: largest, by: a.column.collate}
}

// wholeTally keeps the least or greatest of int64s: the id, ints or timestamps.
type wholeTally struct {
	column *column
	max    bool
	best   []wholeBest
}

type wholeBest struct {
	n     int64
	known bool
}

func (t *wholeTally) bytes() int64 { return bytesOf(t.best) }

func (t *wholeTally) open() {
	t.best = append(t.best, wholeBest{})
}

func (t *wholeTally) add(group int, d doc.Document) {
	n := int64(0)
	if t.column.id {
		n = d.ID()
	} else {
		r := d.Field(t.column.slot)
		var ok bool
		if n, ok = r.Int(); !ok {
			if n, ok = r.Timestamp(); !ok {
				return
			}
		}
	}
	b := &t.best[group]
	if !b.known || n != b.n && n > b.n == t.max {
		b.n, b.known = n, true
	}
}

func (t *wholeTally) value(group int) (doc.Value, bool) {
	b := t.best[group]
	if !b.known {
		return doc.Value{}, true
	}
	return doc.Value{Kind: kindOf(t.column.typ), N: uint64(b.n)}, true
}

// floatExtremeTally keeps the least or greatest float.
type floatExtremeTally struct {
	column *column
	max    bool
	best   []floatBest
}

type floatBest struct {
	x     float64
	known bool
}

func (t *floatExtremeTally) bytes() int64 { return bytesOf(t.best) }

func (t *floatExtremeTally) open() {
	t.best = append(t.best, floatBest{})
}

func (t *floatExtremeTally) add(group int, d doc.Document) {
	x, ok := d.Field(t.column.slot).Float()
	if !ok {
		return
	}
	b := &t.best[group]
	if !b.known || x != b.x && x > b.x == t.max {
		b.x, b.known = x, true
	}
}

func (t *floatExtremeTally) value(group int) (doc.Value, bool) {
	b := t.best[group]
	if !b.known {
		return doc.Value{}, true
	}
	return doc.FloatValue(b.x), true
}

// extremeTally keeps the least or greatest value of any type, as the bytes of a document.
type extremeTally struct {
	column *column
	max    bool
	by     collation.Collation
	best   []doc.Raw // nil if there is none yet
	keys   [][]byte  // of the best, if there is a collation
	keyed  int64     // bytes of keys
	key    []byte    // scratch: the key of a row
}

func (t *extremeTally) bytes() int64 { return bytesOf(t.best) + bytesOf(t.keys) + t.keyed }

func (t *extremeTally) open() {
	t.best = append(t.best, nil)
	if t.by != collation.None {
		t.keys = append(t.keys, nil)
	}
}

func (t *extremeTally) add(group int, d doc.Document) {
	r := d.Field(t.column.slot)
	if r.IsNull() {
		return
	}
	if text, ok := r.Text(); ok && t.by != collation.None {
		t.addText(group, r, text)
		return
	}
	if b := t.best[group]; b != nil {
		if c := compareRaw(r, b); c == 0 || c > 0 != t.max {
			return
		}
	}
	t.best[group] = r
}

// addText is add of a text under a collation.
func (t *extremeTally) addText(group int, r doc.Raw, text []byte) {
	t.key = t.by.AppendKey(t.key[:0], text)
	if t.best[group] != nil {
		if c := bytes.Compare(t.key, t.keys[group]); c == 0 || c > 0 != t.max {
			return
		}
	}
	t.best[group] = r
	t.keyed -= bytesOf(t.keys[group])
	t.keys[group] = append(t.keys[group][:0], t.key...)
	t.keyed += bytesOf(t.keys[group])
}

// compareRaw is doc.Compare of two encoded values, faster if both are texts.
func compareRaw(r, s doc.Raw) int {
	if a, ok := r.Text(); ok {
		if b, ok := s.Text(); ok {
			return bytes.Compare(a, b)
		}
	}
	return doc.Compare(r.Value(), s.Value())
}

func (t *extremeTally) value(group int) (doc.Value, bool) { return t.best[group].Value(), true }
