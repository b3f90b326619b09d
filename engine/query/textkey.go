package query

import (
	"bytes"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

// textKey is a prefix of the collation key of a document's text, or of the text if there is no collation. A sort makes
// it once for each document and reads the document again only if the prefix does not decide.
type textKey struct {
	prefix [30]byte
	n      uint8
	state  textState
}

type textState uint8

const (
	noText    textState = iota // the value is not a text
	cutText                    // prefix is the key's first bytes
	wholeText                  // prefix is the key
)

// textKeyOf returns the textKey of a value.
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

// compare orders two texts. known is false if their prefixes do not decide.
func (t *textKey) compare(u *textKey) (c int, known bool) {
	if t.state == noText || u.state == noText {
		return 0, false
	}
	c = bytes.Compare(t.prefix[:t.n], u.prefix[:u.n])
	return c, c != 0 || t.state == wholeText && u.state == wholeText
}
