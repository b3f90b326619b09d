// Package collation orders text as people do: by the root order of the Unicode Common Locale Data Repository, CLDR (UTS
// 35, part 5), with the changes that a language makes to it. Punctuation and spaces count like any other character
// (alternate is non-ignorable, as in the root). Accents decide between texts with the same letters, and case between
// texts with the same accents.
//
// The order is that of golang.org/x/text/collate, which is slow; [Collation.AppendKey] says what is done instead.
//
// Everything here is safe for concurrent use. No goroutine is started.
package collation

// Collation is an order of text. The numbers are part of the file format.
type Collation uint8

const (
	None    Collation = iota // by bytes
	Root                     // und: the root order
	Turkish                  // tr: the root order with the letters of Turkish
)

var names = [...]string{None: "", Root: "und", Turkish: "tr"}

// Parse returns the collation of that name; ok is false if there is none.
func Parse(name string) (c Collation, ok bool) {
	for c := Root; int(c) < len(names); c++ {
		if names[c] == name {
			return c, true
		}
	}
	return None, false
}

// String returns the collation's name in the language, empty for None and for an invalid number.
func (c Collation) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return ""
}
