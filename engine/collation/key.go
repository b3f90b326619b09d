package collation

import (
	"bytes"
	"sync"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

var collators = [...]sync.Pool{
	Root:    {New: func() any { return collate.New(language.Und) }},
	Turkish: {New: func() any { return collate.New(language.Turkish) }},
}

// AppendKey appends the sort key of a text: bytes.Compare of two keys is the collation of their texts. Texts that the
// collation holds equal have one key. Of None a text is its own key.
func (c Collation) AppendKey(dst, text []byte) []byte {
	if c == None {
		return append(dst, text...)
	}
	collator := collators[c].Get().(*collate.Collator)
	var b collate.Buffer
	dst = append(dst, collator.Key(&b, text)...)
	collators[c].Put(collator)
	return dst
}

// Compare is -1, 0 or 1 as a comes before b, is held equal to it or comes after it.
func (c Collation) Compare(a, b []byte) int {
	return bytes.Compare(c.AppendKey(nil, a), c.AppendKey(nil, b))
}
