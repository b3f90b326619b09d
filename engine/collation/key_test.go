package collation

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"pgregory.net/rapid"
)

var tags = map[Collation]language.Tag{Root: language.Und, Turkish: language.Turkish}

// whole returns the key of a text as it is made if a character acts on its neighbours.
func whole(c Collation, text string) []byte { return orders[c]().appendWhole(nil, []byte(text)) }

// texts draws texts whose characters are like those of people's names, and a few that are not.
func texts(t *rapid.T, label string) string {
	alphabets := [][]rune{
		[]rune("abcxyzABCXYZ019 -.'_@&/:,"),
		[]rune("éÉèêëçÇñÑöÖüÜßæÆœøłıİğşåőűžđ"),
		[]rune("αβγΑΒΓάέίЖжийЙёЁѐабвґїאבגדשרلمنبا"),
		[]rune("中文字你好カタガｶﾞあいがー가나다한글กขคเแไลาວເຫ"),
		[]rune("\u0300\u0301\u0306\u0308\u0327\u0328\u0323\u0345\u05b0\u0651\u0e48\u3099\u1161\u11a8"),
		[]rune("·lLļ½①Ⅷﬁ…–—€₽$£😀\U0001f970\u00a0\u200b\u00ad\x00\x01\ufffe\uffff\U0010ffff\U00020000\U0002f800ꪵꪀ"),
	}
	var b strings.Builder
	for range rapid.IntRange(0, 12).Draw(t, label+" length") {
		switch i := rapid.IntRange(0, len(alphabets)+3).Draw(t, label+" alphabet"); {
		case i < len(alphabets):
			b.WriteRune(rapid.SampledFrom(alphabets[i]).Draw(t, label))
		case i == len(alphabets):
			b.WriteRune(rapid.Rune().Draw(t, label))
		default:
			b.WriteRune(rapid.SampledFrom(alphabets[0]).Draw(t, label))
		}
	}
	return b.String()
}

func TestAKeyIsTheOneOfTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Collation{Root, Turkish}).Draw(t, "collation")
		text := texts(t, "text")
		if got, want := c.AppendKey(nil, []byte(text)), whole(c, text); !bytes.Equal(got, want) {
			t.Fatalf("%v key of %q\n got % x\nwant % x", c, text, got, want)
		}
	})
}

func TestKeysOrderAsTheLibraryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Collation{Root, Turkish}).Draw(t, "collation")
		a := texts(t, "a")
		b := texts(t, "b")
		if rapid.Bool().Draw(t, "shared") { // most pairs differ at their first character
			b = a + b
			i := rapid.IntRange(0, len(a)).Draw(t, "cut")
			for i > 0 && !utf8.RuneStart(b[i%len(b)]) {
				i--
			}
			b = strings.ToUpper(b[:i]) + b[i:]
		}
		got := cmp.Compare(c.Compare([]byte(a), []byte(b)), 0)
		if want := collate.New(tags[c]).CompareString(a, b); got != want {
			t.Fatalf("%v compares %q with %q as %d, want %d", c, a, b, got, want)
		}
	})
}

func TestAPrefixIsTheBeginningOfTheKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]Collation{None, Root, Turkish}).Draw(t, "collation")
		text := []byte(texts(t, "text"))
		n := rapid.IntRange(0, 20).Draw(t, "n")
		key := c.AppendKey([]byte("before"), text)
		if !bytes.HasPrefix(key, []byte("before")) {
			t.Fatal("what was there before the key is gone")
		}
		key = key[len("before"):]
		got, all := c.AppendPrefix([]byte("before"), text, n)
		got = got[len("before"):]
		if want := key[:min(n, len(key))]; !bytes.Equal(got, want) || all != (len(key) <= n) {
			t.Fatalf("%v, the first %d bytes of the key of %q: % x, whole %v, want % x of % x", c, n, text, got, all, want, key)
		}
	})
}

// Every rune that has weights of its own is put next to those that may act on it: of its script, and of those that all
// scripts share.
func TestWhatIsWeighedByItselfIsNotActedOn(t *testing.T) {
	const step = 31 // only one in so many neighbours, different ones for each rune
	for c := Root; c <= Turkish; c++ {
		o := orders[c]()
		var runes []rune
		for r := rune(0); r < 0xb000; r++ {
			if !unicode.In(r, unicode.Han, unicode.Hangul, unicode.Yi) && o.weights(r).traits&acts == 0 {
				runes = append(runes, r)
			}
		}
		text := make([]byte, 0, 16)
		for i, r := range runes {
			for j := i % step; j < len(runes); j += step {
				s := runes[j]
				if d := r - s; (d > 0x80 || d < -0x80) && s > 0xc0 {
					continue
				}
				text = utf8.AppendRune(utf8.AppendRune(text[:0], r), s)
				if got, want := c.AppendKey(nil, text), o.appendWhole(nil, text); !bytes.Equal(got, want) {
					t.Fatalf("%v key of %q (%U %U)\n got % x\nwant % x", c, text, r, s, got, want)
				}
			}
		}
	}
}

func TestNoWeightIsLessThanTheCommonOne(t *testing.T) {
	for c := Root; c <= Turkish; c++ {
		o := orders[c]()
		k := o.getCollator()
		for r := range rune(limit) {
			if unicode.In(r, unicode.Han, unicode.Hangul, unicode.Co) {
				continue // there are thousands alike
			}
			_, secondary, tertiary := k.levels(string(r))
			for ; len(secondary) > 0; secondary = secondary[2:] {
				if s := int(secondary[0])<<8 | int(secondary[1]); s < commonSecondary || s >= (0x100-twoBytes)<<8 {
					t.Fatalf("%v: %U has the secondary weight %#x", c, r, s)
				}
			}
			if len(tertiary) > 0 && slices.Min(tertiary) < commonTertiary {
				t.Fatalf("%v: %U has the tertiary weights % x", c, r, tertiary)
			}
		}
		if n := o.top + int(unicode.MaxRune+0x50000)>>16; n > 0xff {
			t.Errorf("%v: the first byte of the last primary weight is %#x", c, n)
		}
	}
}

func TestBytesThatAreNoUTF8CountAsReplacementCharacters(t *testing.T) {
	for _, text := range []string{"a\xff", "\xe4\xb8", "e\u0301\xf0\x9f", "\x80\x80"} {
		replaced := string([]rune(text))
		if c := Root.Compare([]byte(text), []byte(replaced)); c != 0 {
			t.Errorf("%q compares with %q as %d, want 0", text, replaced, c)
		}
	}
}

func TestKeysAreMadeByManyAtOnce(t *testing.T) {
	words := []string{"zebra", "Ärger", "e\u0301toile", "日本", "กระ", "дом", "ıslak"}
	var want [][]byte
	for _, w := range words {
		want = append(want, whole(Turkish, w))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				w := i % len(words)
				if got := Turkish.AppendKey(nil, []byte(words[w])); !bytes.Equal(got, want[w]) {
					t.Errorf("key of %q is % x, want % x", words[w], got, want[w])
				}
			}
		})
	}
	wg.Wait()
}

func TestComparingShortTextsTakesNoMemory(t *testing.T) {
	a, b := []byte("Łukasz Wójcik"), []byte("Lukasz Wojcik")
	if n := testing.AllocsPerRun(100, func() { Root.Compare(a, b) }); n > 0 {
		t.Errorf("comparing two names takes %v allocations, want 0", n)
	}
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "abc", "l·l", "e\u0301\u0327", "เก", "\xff", "\u0438\u0306", "a\u0315\u0300\u05ae\u0300\u0062"} {
		f.Add(s, "abc", 7)
	}
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		for c := Root; c <= Turkish; c++ {
			key := c.AppendKey(nil, []byte(a))
			if want := whole(c, a); !bytes.Equal(key, want) {
				t.Fatalf("%v key of %q\n got % x\nwant % x", c, a, key, want)
			}
			if n >= 0 {
				got, all := c.AppendPrefix(nil, []byte(a), n)
				if !bytes.Equal(got, key[:min(n, len(key))]) || all != (len(key) <= n) {
					t.Fatalf("%v, the first %d bytes of the key of %q: % x, whole %v, want those of % x", c, n, a, got, all, key)
				}
			}
			if !utf8.ValidString(a) || !utf8.ValidString(b) {
				continue
			}
			got := cmp.Compare(c.Compare([]byte(a), []byte(b)), 0)
			if want := collate.New(tags[c]).CompareString(a, b); got != want {
				t.Fatalf("%v compares %q with %q as %d, want %d", c, a, b, got, want)
			}
		}
	})
}

func TestACharacterAfterAPrefixMayActOnIt(t *testing.T) {
	for _, text := range []string{"и\u0306", "abи\u0306c", "l·", "ñn\u0303"} {
		key := Root.AppendKey(nil, []byte(text))
		for n := range len(key) {
			if got, all := Root.AppendPrefix(nil, []byte(text), n); !bytes.Equal(got, key[:n]) || all {
				t.Errorf("the first %d bytes of the key of %q: % x, whole %v, want those of % x", n, text, got, all, key)
			}
		}
	}
}

func TestCommonWeightsTakeNoRoom(t *testing.T) {
	for text, want := range map[string]int{
		"james": 5, "james smith-jones": 17, "James": 5 + 3, "jamés": 5 + 6, "Дом": 6 + 3, "日本": 6,
	} {
		if key := Root.AppendKey(nil, []byte(text)); len(key) != want {
			t.Errorf("the key of %q is % x, of %d bytes, want %d", text, key, len(key), want)
		}
	}
}
