package query

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLike holds patterns to a regular expression that says the same.
func FuzzLike(f *testing.F) {
	for _, s := range [][2]string{
		{"Library", "lib*"}, {"calibre", "*re"}, {"a*b", `a\*`}, {"", "*"}, {"İzmir", "ız*İ*"}, {"aXbXc", "a*b*c"}, {"abab", "*ab*ab"}, {"x", `\`}, {"50%", `%\%`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, like string) {
		var p pattern
		p.read([]byte(like))
		got := p.in(appendFolded(nil, []byte(text)))
		if !utf8.ValidString(text) || !utf8.ValidString(like) || strings.ContainsRune(like, dotAbove) {
			return
		}
		if want := fitsNaive(text, like); got != want {
			t.Fatalf("%q fits %q: %v, want %v", text, like, got, want)
		}
	})
}
