package syntax

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fenec/engine/fail"

	"pgregory.net/rapid"
)

func TestEveryTreeIsReadBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := drawStatement(t)
		text := st.String()
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if !sameTree(st, got) {
			t.Fatalf("%s\nis read as another tree, that of\n%s", text, got)
		}
	})
}

// checkRead holds for every text: it is refused with a place that is in it, or its canonical
// spelling is read as the same tree and spelled the same again.
func checkRead(t *testing.T, text string) {
	st, err := Parse(text)
	if err != nil {
		checkRefusal(t, text, err)
		return
	}
	canonical := st.String()
	again, err := Parse(canonical)
	if err != nil {
		t.Fatalf("%q is read, but not its canonical spelling %q: %v", text, canonical, err)
	}
	if !sameTree(st, again) {
		t.Fatalf("%q and its canonical spelling %q are read as different trees", text, canonical)
	}
	if third := again.String(); third != canonical {
		t.Fatalf("%q is spelled %q and then %q", text, canonical, third)
	}
}

func checkRefusal(t *testing.T, text string, err error) {
	var e *fail.Error
	if !errors.As(err, &e) {
		t.Fatalf("%q: not one of our errors: %v", text, err)
	}
	if e.Kind != fail.Invalid {
		t.Fatalf("%q: the kind of %v is %v", text, err, e.Kind)
	}
	lines := strings.Split(text, "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
		t.Fatalf("%q: %v is outside the text", text, err)
	}
	if strings.ContainsAny(e.Message, "\n\r") || len(e.Message) > 600 {
		t.Fatalf("%q: the message %q is no sentence", text, e.Message)
	}
}

// seeds are all texts of the data files.
func seeds(t testing.TB) []string {
	files, err := filepath.Glob("testdata/data/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no data files", err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			out = append(out, line, "get c where "+line)
		}
	}
	return out
}

func FuzzParse(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	f.Add("get c where " + strings.Repeat("(", 520))
	f.Add("get c where " + strings.Repeat("not ", 520) + "a")
	f.Add("put c {a: " + strings.Repeat("[", 70))
	f.Add("get c where a = '\xff'")
	f.Add("-- \xff")
	f.Fuzz(func(t *testing.T, text string) {
		checkRead(t, text)
		if _, err := ParseCondition(text); err != nil {
			checkRefusal(t, text, err)
		}
	})
}

// Texts made of the language's own words come further into the grammar than bytes do.
func TestTextsOfRandomWordsAreReadOrRefused(t *testing.T) {
	words := append([]string{
		"(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "@", "*", "=", "!=", "<", "<=", ">", ">=", "~", "+", "-", "/", "%",
		"1", "2.5", "'x'", `"y"`, "$1", "null", "true", "@hash", "int", "text", "compact", "describe", "explain", "put", "insert",
		"del", "create", "drop", "collections", "\n", "-- c\n", "not in", "is not null", "id = 1", "{a: 1}", "[1, 2]", "lower(a)",
		"near a [1, 2]", "match a 'x'", "rerank a [1]", "vector<3>", "sparse<9>", "@text", "@hnsw", "m=3", "collate und",
		"if absent", "else set {a: a + 1}", "returning a", "require 1", "count(distinct a)", "count(*)",
	}, trickyNames...)
	starts := []string{"get c where", "get c", "put c", "insert c {a: 1}", "set c {a: 1}", "del c", "select a", "create collection c (", ""}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(starts).Draw(rt, "start") + " " +
			strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(rt, "words"), " ")
		checkRead(t, text)
	})
}
