package syntax

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fenec/engine/fail"
)

// nested is n times open, the middle, and n times closed.
func nested(n int, opening, middle, closing string) string {
	return strings.Repeat(opening, n) + middle + strings.Repeat(closing, n)
}

func TestCeilingsRefuseAtTheFirstCharacterPastThem(t *testing.T) {
	const where = "get c where "
	cases := []struct {
		name        string
		head        string
		build       func(n int) string
		most        int
		first       func(n int) int // characters between the head and the one that is refused
		wantMessage string
	}{
		{
			"parentheses around a comparison", where, func(n int) string { return nested(n, "(", "id = 1", ")") },
			MaxDepth, func(n int) int { return n - 1 }, "an expression nests at most 512 levels of parentheses and operators",
		},
		{
			"parentheses around a name", where, func(n int) string { return nested(n, "(", "a", ")") },
			MaxDepth, func(n int) int { return n - 1 }, "at most 512 levels",
		},
		{
			"not", where, func(n int) string { return strings.Repeat("not ", n) + "a" },
			MaxDepth, func(n int) int { return 4 * (n - 1) }, "at most 512 levels",
		},
		{
			"signs", where, func(n int) string { return strings.Repeat("- ", n) + "a" },
			MaxDepth, func(n int) int { return 2 * (n - 1) }, "at most 512 levels",
		},
		{
			"sums, each the left side of the next", where, func(n int) string { return "a" + strings.Repeat("+a", n) },
			MaxDepth, func(n int) int { return 2*n - 1 }, "at most 512 levels",
		},
		{
			"and in or in and", where, func(n int) string { return nested(n, "(a and b or ", "c", ")") },
			MaxDepth/2 - 1, func(n int) int { return 12*(n-1) + 9 }, "at most 512 levels",
		},
		{
			"calls", where, func(n int) string { return nested(n, "abs(", "a", ")") },
			MaxDepth, func(n int) int { return 4 * (n - 1) }, "at most 512 levels",
		},
		{
			"cases", where, func(n int) string { return nested(n, "case when a then ", "1", " end") },
			MaxDepth, func(n int) int { return 17 * (n - 1) }, "at most 512 levels",
		},
		{
			"lists in a value", "put c {a: ", func(n int) string { return nested(n, "[", "", "]") + "}" },
			MaxNesting, func(n int) int { return n - 1 }, "lists and objects nest at most 64 levels",
		},
		{
			"objects in a value", "put c {a: ", func(n int) string { return nested(n, "{k:", "1", "}") + "}" },
			MaxNesting, func(n int) int { return 3 * (n - 1) }, "lists and objects nest at most 64 levels",
		},
		{
			"parts of a path", where, func(n int) string { return "p" + strings.Repeat(".p", n-1) },
			MaxPath, func(n int) int { return 2 * (n - 1) }, "a path has at most 64 keys below its field",
		},
		{
			"parts of a quoted path", "put c {", func(n int) string { return `"p` + strings.Repeat(".p", n-1) + `": 1}` },
			MaxPath, func(int) int { return 0 }, "a path has at most 64 keys below its field",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			checkRead(t, c.head+c.build(c.most))
			if _, err := Parse(c.head + c.build(c.most)); err != nil {
				t.Fatalf("%d are refused: %v", c.most, err)
			}
			for _, n := range []int{c.most + 1, 20 * c.most} {
				_, err := Parse(c.head + c.build(n))
				var e *fail.Error
				if !errors.As(err, &e) || e.Kind != fail.Invalid || !strings.Contains(e.Message, c.wantMessage) {
					t.Fatalf("%d: %v", n, err)
				}
				if want := len(c.head) + c.first(c.most+1) + 1; n == c.most+1 && e.Column != want {
					t.Errorf("%d: refused at column %d, want %d", n, e.Column, want)
				}
			}
		})
	}
}

func TestAFlatChainIsOneLevelHoweverLong(t *testing.T) {
	for _, word := range []string{" and ", " or "} {
		st, err := Parse("get c where " + nested(MaxDepth-1, "(", "a"+strings.Repeat(word+"a = 1", 100_000), ")"))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(st.(*Get).Where.(*Logic).Terms); n != 100_001 {
			t.Fatalf("%s: %d terms", word, n)
		}
	}
}

func TestListsHaveAnEnd(t *testing.T) {
	list := func(clause string, n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("f%d", i)
		}
		return clause + strings.Join(names, ", ")
	}
	for clause, most := range map[string]int{
		"get c select ": maxSelected, "set c {a: 1} returning ": maxSelected, "get c order ": maxOrdered, "del c limit 1 order ": maxOrdered,
	} {
		if _, err := Parse(list(clause, most)); err != nil {
			t.Errorf("%s: %v", clause, err)
		}
		if _, err := Parse(list(clause, most+1)); fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), "at most 1024") {
			t.Errorf("%sa longer list: %v", clause, err)
		}
	}
}

func TestALongOrderOfOneKeyIsRefusedAtItsSecond(t *testing.T) {
	_, err := Parse("get c order t" + strings.Repeat(",t", 12_000))
	var e *fail.Error
	if !errors.As(err, &e) || e.Message != "order names t twice" || e.Column != 15 {
		t.Fatal(err)
	}
}

func TestManyKeysAreComparedAsFewAre(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		b.WriteString("put c {")
		for i := range 1000 {
			fmt.Fprintf(&b, "f%d: %d, m.k%d: 1, ", i, i, i)
		}
		return b.String() + last + "}"
	}
	if _, err := Parse(many("last: 1, m.last: 2")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"f999: 1", `"f999" is given twice`},
		{"m.k500: 1", `"m.k500" is given twice`},
		{"m: 1", `"m" is given twice`},
		{"m.k3.x: 1", `"m.k3.x" is given together with "m.k3", which contains it`},
		{"f7.x: 1", `"f7.x" is given together with "f7", which contains it`},
	} {
		_, err := Parse(many(c[0]))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

func TestBytesThatAreNotUTF8AreRefusedAtTheirPlace(t *testing.T) {
	for _, text := range []string{
		"get \x80", "get c where a\xff", "get c where a = '\xc3'", "get c where a = \"\xed\xa0\x80\"", "get c -- \xfe",
		"get c where \xf4\x90\x80\x80", "get c where a = 'é\xc0\xaf", "get c where a = \"é\\n\xc0\"", "get c where a = \"\xc0\\x\"",
	} {
		_, err := Parse(text)
		var e *fail.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, "UTF-8") {
			t.Errorf("%q: %v", text, err)
			continue
		}
		bad := []rune(text)[e.Column-1]
		if bad != '\uFFFD' || strings.ContainsRune(string([]rune(text)[:e.Column-1]), '\uFFFD') {
			t.Errorf("%q: the place is column %d", text, e.Column)
		}
	}
}
