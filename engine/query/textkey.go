package query

import (
	"bytes"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// textKey is the beginning of the key that a collation makes for a document's text, so that a sort makes the
// key of each document once and its memory has a bound.
type textKey struct {
	prefix [30]byte
	n      uint8
	state  textState
}

type textState uint8

const (
	noText    textState = iota // the value is none
	cutText                    // prefix is the key's first bytes
	wholeText                  // prefix is the key
)

// textKeyOf is that of a value.
func textKeyOf(c collation.Collation, v doc.Value) (t textKey) {
	if v.Kind != doc.Text {
		return t
	}
	var room [160]byte // keys of names and titles fit whole
	key, whole := c.AppendPrefix(room[:0], v.B, len(t.prefix))
	t.n = uint8(copy(t.prefix[:], key))
	t.state = cutText
	if whole {
		t.state = wholeText
	}
	return t
}

// compareTexts is compare of two documents whose values have the text keys s and t.
func (k *orderKey) compareTexts(s, t *textKey, a, b doc.Document) int {
	if s.state == noText || t.state == noText {
		return k.compare(a, b)
	}
	c := bytes.Compare(s.prefix[:s.n], t.prefix[:t.n])
	switch {
	case c == 0 && (s.state == cutText || t.state == cutText):
		return k.compare(a, b)
	case k.desc:
		return -c
	}
	return c
}
