package query

import (
	"bytes"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// textKey is the beginning of the key that a collation makes for a document's text, or of the text where there
// is none: a sort makes it once for each document and looks at the document again only where it does not tell.
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

// compare orders two texts; known is false where that takes more than what was kept of them.
func (t *textKey) compare(u *textKey) (c int, known bool) {
	if t.state == noText || u.state == noText {
		return 0, false
	}
	c = bytes.Compare(t.prefix[:t.n], u.prefix[:u.n])
	return c, c != 0 || t.state == wholeText && u.state == wholeText
}
