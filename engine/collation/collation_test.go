package collation

import "testing"

func TestNamesAreReadBack(t *testing.T) {
	for _, c := range []Collation{Root, Turkish} {
		got, ok := Parse(c.String())
		if !ok || got != c {
			t.Errorf("Parse(%q) is %v, %v, want %v", c.String(), got, ok, c)
		}
	}
	for _, name := range []string{"", "UND", "de", "tr-TR"} {
		if got, ok := Parse(name); ok {
			t.Errorf("Parse(%q) is %v, want none", name, got)
		}
	}
	if got := Collation(9).String(); got != "" {
		t.Errorf("a number that is no collation is called %q", got)
	}
}
