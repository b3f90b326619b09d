package text

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"fenec/engine/index"
)

// joined returns the terms of a text in one line, those that are extra in parentheses.
func joined(o Options, text string) string {
	var all []string
	for _, t := range o.Terms([]byte(text)) {
		if t.Extra {
			t.Text = "(" + t.Text + ")"
		}
		all = append(all, t.Text)
	}
	return strings.Join(all, " ")
}

func TestTerms(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                                     {"", ""},
		"words without punctuation":                   {"Hello, World! (again)", "hello world again"},
		"accents stay":                                {"naïve Café Ångström", "naïve café ångström"},
		"combining marks are composed":                {"e\u0301te\u0301 A\u030angstro\u0308m", "été ångström"},
		"marks that compose with nothing stay":        {"x\u0301y q\u0323\u0307", "x\u0301y q\u0323\u0307"},
		"marks in any order are the same":             {"q\u0307\u0323 q\u0323\u0307", "q\u0323\u0307 q\u0323\u0307"},
		"Turkish i, with a dot and without":           {"İstanbul ISPARTA ısı iSi I\u0307z", "istanbul isparta isi isi iz"},
		"a dot over an i that has a mark more":        {"i\u0307\u0301 í i\u0323\u0307 ị", "í í ị ị"},
		"German sharp s":                              {"Straße STRASSE STRAẞE", "strasse strasse strasse"},
		"Greek sigma, final or not":                   {"Σίσυφος ΣΊΣΥΦΟΣ", "σίσυφοσ σίσυφοσ"},
		"Cyrillic":                                    {"Война И МИР", "война и мир"},
		"ligatures":                                   {"ﬁne oﬃce ĳs", "fine office ijs"},
		"full-width letters and numbers":              {"Ｆｅｎｅｃ１２", "fenec12"},
		"half-width kana":                             {"ﾀﾜｰ ｶﾞｽ", "タワ ワー ガス"},
		"powers, circles and fractions":               {"m² ① ½", "m2 1 1⁄2"},
		"a square with several letters":               {"5㎏ ㍿", "5kg 株式 式会 会社"},
		"numbers":                                     {"3.14 1,000 -42 0x1F 1e9", "3.14 1,000 42 0x1f 1e9"},
		"numbers of other scripts":                    {"٣٫١٤ ๒๕๖๗", "٣٫١٤ ๒๕๖๗"},
		"hyphens part":                                {"state-of-the-art co\u2010op", "state of the art co op"},
		"soft hyphens and joiners do not":             {"co\u00adop zero\u200dwidth\u2060joined", "coop zerowidthjoined"},
		"a zero-width space does":                     {"ab\u200bcd", "ab cd"},
		"apostrophes, whichever":                      {"don't don’t rock'n'roll 'quoted'", "don't don't rock'n'roll quoted"},
		"points and colons within words":              {"example.com a:b 1:2 end. .5", "example.com a:b 1 2 end 5"},
		"underscores":                                 {"snake_case _private ___ a_1", "snake_case _private a_1"},
		"Hebrew, with a quotation mark within a word": {`צה"ל שלום`, `צה"ל שלום`},
		"Arabic":                                {"مرحبا بالعالم", "مرحبا بالعالم"},
		"Hindi":                                 {"हिन्दी में", "हिन्दी में"},
		"Japanese":                              {"東京タワーの高さは333メートル", "東京 京タ タワ ワー ーの の高 高さ さは 333 メー ート トル"},
		"a mark of repetition":                  {"人々", "人々"},
		"a middle dot parts kana":               {"ラ・マ", "ラ マ"},
		"kana with its mark apart":              {"か\u3099く", "がく"},
		"kana with a mark it has no letter for": {"あ\u3099いう", "あ\u3099い いう"},
		"Korean":                                {"한국어 텍스트", "한국 국어 텍스 스트"},
		"Korean in single jamo":                 {"\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"},
		"Chinese":                               {"全文检索", "全文 文检 检索"},
		"a lone Han character":                  {"中 a中b", "中 a 中 b"},
		"Han outside of the first plane":        {"𠮷野家", "𠮷野 野家"},
		"Thai":                                  {"ภาษาไทย", "ภาษ าษา ษาไ าไท ไทย"},
		"Thai that is shorter than a triple":    {"ก กข กขค", "ก กข กขค"},
		"Lao":                                   {"ພາສາລາວ", "ພາສ າສາ ສາລ າລາ ລາວ"},
		"Khmer":                                 {"ភាសា", "ភាស ាសា"},
		"Myanmar":                               {"မြန်မာ", "မြန ြန် န်မ ်မာ"},
		"triples of nothing but marks are left out": {"ភាៗា\u17d2\u17b6\u17b7ក", "ភាៗ ាៗា ៗា\u17d2 \u17b6\u17b7ក"},
		"Thai and Latin in one":                     {"ใช้fenecดี", "ใช้ fenec ดี"},
		"emoji are no words":                        {"👍🏽 ok 👩‍👩‍👧 🇩🇪", "ok"},
		"but what holds a number is":                {"3\ufe0f\u20e3", "3\u20e3"},
		"what is not UTF-8 parts words":             {"ab\xffcd \xe4\xb8 ef\xe4", "ab cd ef"},
		"a NUL parts words":                         {"ab\x00cd", "ab cd"},
		"lines":                                     {"one\ntwo\r\nthree\tfour\u2028five", "one two three four five"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(Options{}, c.text); got != c.want {
				t.Errorf("the terms of %q are %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestExtraTerms(t *testing.T) {
	for name, c := range map[string]struct {
		o          Options
		text, want string
	}{
		"prefixes shorter than the word":        {Options{Prefix: 5}, "international cat", "international (int) (inte) (inter) cat"},
		"no more than the word has":             {Options{Prefix: 9}, "fenec", "fenec (fen) (fene)"},
		"prefixes count letters, not bytes":     {Options{Prefix: 4}, "été été's", "été été's (été) (été')"},
		"no prefixes of what is read in grams":  {Options{Prefix: 5}, "東京都庁 ภาษาไทย", "東京 京都 都庁 ภาษ าษา ษาไ าไท ไทย"},
		"a prefix below 3 is none":              {Options{Prefix: 2}, "fenec", "fenec"},
		"characters":                            {Options{Chars: true}, "東京都", "東京 京都 (東) (京) (都)"},
		"a lone character is a term once":       {Options{Chars: true}, "東 ก", "東 ก"},
		"both characters of a pair":             {Options{Chars: true}, "東京", "東京 (東) (京)"},
		"marks are no characters by themselves": {Options{Chars: true}, "ดีดี", "ดีด ีดี (ด) (ด)"},
		"but stay with what they mark":          {Options{Chars: true}, "あ\u3099い", "あ\u3099い (あ\u3099) (い)"},
		"words have no characters":              {Options{Chars: true}, "fenec", "fenec"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(c.o, c.text); got != c.want {
				t.Errorf("the terms of %q are %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// TestTheShortWayIsTheLongWay compares the terms that are read rune by rune with those that all rules of the annex and
// of normal forms find in the whole text.
func TestTheShortWayIsTheLongWay(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	some := []rune("aZ09_.':,; -\"\n\x00@éß·‘’“—…€\u00a0\u3000．＿Ａ１中東々〇ーがﾀﾞあ\u3099한\u1112\u1161\u11abภีก่กําລາကុမြ๒٣אבقطहिन्İı" +
		"\u0307\u0301\u0323\u200d\u200b\u00ad²½ﬁ👍🇩🇪\u0308𠮷Ωжծღ")
	var short, long scanner
	for range 20_000 {
		var text []byte
		for range r.IntN(10) {
			switch r.IntN(8) {
			case 0:
				text = utf8.AppendRune(text, rune(r.IntN(0x3200)))
			case 1:
				text = utf8.AppendRune(text, rune(r.IntN(0x20000)))
			default:
				text = utf8.AppendRune(text, some[r.IntN(len(some))])
			}
		}
		short.scan(text)
		long.bytes, long.spans = long.bytes[:0], long.spans[:0]
		long.scanComplex(text)
		if got, want := termsOf(&short), termsOf(&long); !slices.Equal(got, want) {
			t.Fatalf("the terms of %q are %q, want %q", text, got, want)
		}
	}
}

func termsOf(s *scanner) []string {
	var terms []string
	for _, t := range s.spans {
		terms = append(terms, string(s.bytes[t.from:t.to]))
	}
	return terms
}

// foldable calls yield for each rune that Unicode's folding or word rules mention, but only for a few of each large
// block of characters that are all alike.
func foldable(yield func(r rune) bool) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		switch {
		case !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C):
			continue
		case r >= 0x3400 && r < 0xa000, r >= 0xac00 && r < 0xf900, r >= 0x12000 && r < 0x1b000, r >= 0x20000:
			if r%199 != 0 {
				continue
			}
		}
		if !yield(r) {
			return
		}
	}
}

func TestFoldingIsItsOwnFolding(t *testing.T) {
	var f folder
	for r := range foldable {
		once := f.appendFolded(nil, []byte("a"+string(r)+"b"))
		if twice := f.appendFolded(nil, once); !bytes.Equal(once, twice) {
			t.Errorf("%U folds to %q and that to %q", r, once, twice)
		}
	}
}

func TestAllCasesFoldToOne(t *testing.T) {
	for r := range foldable {
		s := string(r)
		if upper, lower := joined(Options{}, strings.ToUpper(s)), joined(Options{}, strings.ToLower(s)); upper != lower {
			t.Errorf("%U: the terms of upper case are %q, those of lower case %q", r, upper, lower)
		}
	}
}

func TestManyMarksDoNotMatter(t *testing.T) {
	var f folder
	text := []byte("a" + strings.Repeat("\u0323\u0301", 100) + "b")
	once := f.appendFolded(nil, text)
	if twice := f.appendFolded(nil, once); !bytes.Equal(once, twice) {
		t.Errorf("folded it is %q, folded again %q", once, twice)
	}
}

func FuzzTerms(f *testing.F) {
	for _, text := range vocabulary {
		f.Add([]byte(text), 0, false)
	}
	f.Add([]byte("international 東京タワー ภาษาไทย e\u0301\u0323 \xff İ"), 5, true)
	f.Fuzz(func(t *testing.T, text []byte, prefix int, chars bool) {
		o := Options{K1: 1.2, B: 0.75, Prefix: prefix % 20, Chars: chars}
		var fold folder
		once := fold.appendFolded(nil, text)
		if twice := fold.appendFolded(nil, once); !bytes.Equal(once, twice) {
			t.Fatalf("%q folds to %q and that to %q", text, once, twice)
		}
		terms := o.Terms(text)
		if again := o.Terms(once); !slices.Equal(terms, again) {
			t.Fatalf("the terms of %q are %v, folded they are %v", text, terms, again)
		}
		x := New(o)
		x.Add(1, text)
		x.Add(2, []byte("another document"))
		for _, term := range terms {
			hits := x.Search([]byte(term.Text), 10, nil, nil)
			if !slices.ContainsFunc(hits, func(h index.Hit) bool { return h.ID == 1 }) && (!term.Extra || o.Prefix < minPrefix) {
				t.Fatalf("%q does not find %q, of which it is a term", term.Text, text)
			}
		}
		x.Remove(1, text)
		fresh := New(o)
		fresh.Add(2, []byte("another document"))
		if x.Len() != 1 || x.dict.len() != fresh.dict.len() {
			t.Fatalf("%q leaves %d documents and %d terms behind", text, x.Len()-1, x.dict.len()-fresh.dict.len())
		}
	})
}
