package query

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func folded(s string) string { return string(appendFolded(nil, []byte(s))) }

func TestFoldingMakesLettersEqualThatSimpleFoldingDoes(t *testing.T) {
	const i = "iIİı"
	for r := rune(0); r < 0x20000; r++ { // no letter beyond has cases
		if !utf8.ValidRune(r) {
			continue
		}
		f := folded(string(r))
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if f != folded(string(other)) {
				t.Errorf("%c and %c fold apart", r, other)
			}
		}
		if !strings.EqualFold(f, string(r)) && !(strings.ContainsRune(i, r) && f == folded("i")) {
			t.Errorf("%c folds to %s", r, f)
		}
	}
}

func TestAnIIsOneLetterWithAndWithoutItsDot(t *testing.T) {
	for _, s := range []string{"I", "i", "İ", "ı", "I\u0307", "i\u0307", "İ\u0307"} {
		if got, want := folded("d"+s+"z"), folded("DIZ"); got != want {
			t.Errorf("%q folds to %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{"\u0307": "\u0307", "a\u0307": "A\u0307", "i\u0301": "I\u0301", "i\u0301\u0307": "I\u0301\u0307"} {
		if got := folded(s); got != want {
			t.Errorf("%q folds to %q, want %q", s, got, want)
		}
	}
}

func TestATextFoldsAsItsLowerUpperAndTitleCase(t *testing.T) {
	step := rune(1)
	if testing.Short() {
		step = 11
	}
	for r := rune(0); r <= unicode.MaxRune; r += step {
		if !utf8.ValidRune(r) {
			continue
		}
		f := folded(string(r))
		for _, other := range []rune{unicode.ToLower(r), unicode.ToUpper(r), unicode.ToTitle(r)} {
			if f != folded(string(other)) {
				t.Errorf("%c folds to %q, %c to %q", r, f, other, folded(string(other)))
			}
		}
		if f != folded(f) {
			t.Errorf("%c folds to %q, which folds to %q", r, f, folded(f))
		}
	}
}

// checkContains checks what holds of any text: it contains its parts, in whichever case.
func checkContains(t interface {
	Helper()
	Errorf(format string, args ...any)
}, s string, from, to int,
) {
	t.Helper()
	runes := []rune(s)
	from = min(max(from, 0), len(runes))
	to = min(max(to, from), len(runes))
	part := string(runes[from:to])
	if strings.HasPrefix(part, string(dotAbove)) {
		return // of an i before it perhaps
	}
	for _, sub := range []string{part, strings.Map(unicode.ToLower, part), strings.Map(unicode.ToUpper, part), strings.Map(unicode.ToTitle, part)} {
		if !strings.Contains(folded(s), folded(sub)) {
			t.Errorf("%q contains no %q", s, sub)
		}
	}
}

func TestATextContainsItsPartsInEveryCase(t *testing.T) {
	letters := rapid.OneOf(
		rapid.SampledFrom([]rune("iIİı\u0307ßẞſsKkKåÅÅΣσςǅǆǄﬁŉΐᾳᾼꭰᎠաԱΘθϴ")),
		rapid.RuneFrom(nil, unicode.Lu, unicode.Ll, unicode.Lt, unicode.M),
		rapid.Rune(),
	)
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOfN(letters, 0, 12).Draw(rt, "text"))
		checkContains(rt, s, rapid.IntRange(0, 12).Draw(rt, "from"), rapid.IntRange(0, 12).Draw(rt, "to"))
	})
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"İzmir", "ısparta i\u0307", "STRASSE Straße", "ὈΔΥΣΣΕΎΣ ς", "ǅ", "\xff\xc3", "K\u0307"} {
		f.Add(s, uint8(0), uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, from, to uint8) {
		out := appendFolded([]byte("before "), []byte(s))
		if !bytes.HasPrefix(out, []byte("before ")) || len(out) > len("before ")+len(s) {
			t.Fatalf("%q folds to %q", s, out)
		}
		if utf8.ValidString(s) {
			checkContains(t, s, int(from), int(to))
		}
	})
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
