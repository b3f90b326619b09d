package query

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFoldingMakesLettersEqualThatSimpleFoldingDoes(t *testing.T) {
	for r := rune(0); r < 0x20000; r++ { // no case is told apart beyond
		if !utf8.ValidRune(r) {
			continue
		}
		folded := appendFolded(nil, []byte(string(r)))
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if !bytes.Equal(folded, appendFolded(nil, []byte(string(other)))) {
				t.Errorf("%c and %c fold apart", r, other)
			}
		}
		if !strings.EqualFold(string(folded), string(r)) {
			t.Errorf("%c folds to %s", r, folded)
		}
	}
}

func TestFoldingKeepsBytesThatAreNoText(t *testing.T) {
	for _, s := range []string{"\xff", "A\xf0\x9f", "\u00e4\xe4", "\ufffd"} {
		got := appendFolded([]byte("before "), []byte(s))
		want := "before " + strings.ReplaceAll(strings.ReplaceAll(s, "\u00e4", "\u00c4"), "a", "A")
		if string(got) != want {
			t.Errorf("%q folds to %q, want %q", s, got, want)
		}
	}
}
