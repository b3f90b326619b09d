// Package collation orders text as people do: by the root order of the Unicode Common Locale Data Repository, CLDR
// (UTS 35, part 5), and by what a language changes in it. Punctuation and spaces count like any other characters
// (alternate is non-ignorable, as it is in the root), accents tell texts apart that are otherwise the same, case those that
// accents do not.
//
// The order is that of golang.org/x/text/collate, which is slow; see [Collation.AppendKey] for what is done instead.
//
// Everything here is safe for concurrent use. No goroutine is started.
package collation

// Collation is an order of text. The numbers are part of the file format.
type Collation uint8

const (
	None    Collation = iota // by bytes
	Root                     // und: the root order
	Turkish                  // tr: the root order with the letters of Turkish in their places
)

var names = [...]string{None: "", Root: "und", Turkish: "tr"}

// Parse is the collation of that name; ok is false where there is none.
func Parse(name string) (c Collation, ok bool) {
	for c := Root; int(c) < len(names); c++ {
		if names[c] == name {
			return c, true
		}
	}
	return None, false
}

// String is the collation's name in the language, empty for None and for a number that is no collation.
func (c Collation) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return ""
}
