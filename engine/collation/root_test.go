package collation

import "testing"

// rootOrder is texts in the order of the CLDR root, each before the next: white space, punctuation, symbols, currency
// signs, digits, then the scripts. Within a script, accents decide between the same letters and case between the same
// accents.
var rootOrder = []string{
	"",
	"\t", "\n", "\r", "\u0085", "\u2028", " ",
	"_", "-", "‐", "–", "—", ",", ";", ":", "!", "¡", "?", "¿", ".", "…", "'", "‘", "’", "\"", "“", "”", "«", "»",
	"(", ")", "[", "]", "{", "}", "§", "¶", "@", "*", "/", "\\", "&", "#", "%", "‰", "†", "•",
	"`", "´", "^", "¯", "¨", "°", "©", "®", "←", "→", "∀", "∑", "+", "±", "÷", "×", "<", "=", ">", "|", "¦", "~", "∞", "─", "■", "☀", "♥",
	"¤", "¢", "$", "£", "¥", "€",
	"0", "٠", "1", "１", "①", "¹", "10", "1a", "2", "²", "9", "９",
	"a", "A", "ª", "á", "Á", "à", "ă", "â", "å", "Å", "ä", "Ä", "ã", "ą", "ā", "aa", "ab", "áb", "ac", "Ac", "áC", "æ", "Æ", "af",
	"b", "B", "c", "C", "ć", "č", "ç", "Ç", "co-op", "coop", "cote", "Cote", "coté", "côte", "Côte", "côté", "Côté",
	"d", "D", "ď", "đ", "ð", "e", "é", "è", "ê", "ë", "ę", "ə", "f", "g", "ğ", "h", "i", "I", "í", "ı", "j", "k", "l", "ł", "Ł", "l·", "la", "ĺa",
	"m", "n", "ñ", "Ñ", "ŋ", "o", "ó", "ö", "Ö", "ő", "ø", "Ø", "œ", "Œ", "of", "p", "q", "r", "ř",
	"s", "S", "š", "Š", "ş", "ss", "SS", "ß", "ssa", "ßa", "st", "t", "u", "ü", "Ü", "v", "w", "x", "y", "ÿ", "z", "Z", "Ž", "ż", "þ",
	"α", "Α", "ά", "Ά", "β", "γ", "λ", "σ", "ς", "τ", "ω", "Ω", "ώ",
	"а", "А", "б", "в", "г", "е", "ё", "Ё", "ж", "и", "й", "Й", "к", "я", "Я",
	"ა", "ա", "Ա", "א", "ב", "ש", "ת", "ا", "ب", "ت", "ي",
	"क", "ক", "ก", "เก", "ข", "แข", "한", "あ", "ア", "い", "カ", "が", "ガ", "ん", "一", "中", "人", "你", "日", "本",
}

func TestTheRootOrder(t *testing.T) {
	for i, a := range rootOrder {
		for j, b := range rootOrder {
			got := Root.Compare([]byte(a), []byte(b))
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q are in places %d and %d, and compare as %d", a, b, i, j, got)
			}
		}
	}
}

func TestTheTurkishOrder(t *testing.T) {
	order := []string{
		"!", "1", "a", "A", "b", "c", "C", "cz", "ç", "Ç", "ça", "d", "e", "é", "f", "g", "gz", "ğ", "Ğ", "h", "hz",
		"ı", "I", "ız", "i", "İ", "iz", "j", "k", "o", "oz", "ö", "Ö", "p", "s", "sz", "ş", "Ş", "t", "u", "uz", "ü", "Ü", "v", "y", "z",
		"ж",
	}
	for i, a := range order {
		for j, b := range order {
			got := Turkish.Compare([]byte(a), []byte(b))
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q are in places %d and %d, and compare as %d", a, b, i, j, got)
			}
		}
	}
}

func TestTextsThatLookAlikeAreEqual(t *testing.T) {
	for _, c := range []struct {
		collation Collation
		a, b      string
	}{
		{Root, "Zoë", "Zoe\u0308"},
		{Root, "\u1e69", "s\u0307\u0323"}, // marks in either order
		{Root, "한", "\u1112\u1161\u11ab"},
		{Root, "a\x01b", "ab"}, // control characters have no weight
		{Root, "soft\u00adly", "softly"},
		{Turkish, "ç", "c\u0327"},
		{Turkish, "İ", "I\u0307"},
		{None, "ç", "ç"},
	} {
		if got := c.collation.Compare([]byte(c.a), []byte(c.b)); got != 0 {
			t.Errorf("%v compares %q with %q as %d, want 0", c.collation, c.a, c.b, got)
		}
	}
	if None.Compare([]byte("ç"), []byte("c\u0327")) <= 0 {
		t.Error("without a collation texts are equal only by bytes")
	}
}
