package syntax

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naivePlace counts characters one by one.
func naivePlace(before string) Pos {
	at := Pos{Line: 1, Column: 1}
	for _, r := range before {
		if r == '\n' {
			at = Pos{Line: at.Line + 1, Column: 1}
		} else {
			at.Column++
		}
	}
	return at
}

func TestEveryTokenKnowsItsLineAndColumn(t *testing.T) {
	tokens := []string{
		"a", "été", "東京", "=", "<=", "!=", "(", "[", "-", "1", "2_0.5", "$1", "'x'", "'é\n東'", `"\u00e9é"`, "''''", "ạ", "@", "<", ";",
	}
	gaps := []string{" ", "\n", "\t", "\r\n", "  ", " -- é ' \"\n", " --\n\n"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want, got []Pos
		for _, tok := range rapid.SliceOf(rapid.SampledFrom(tokens)).Draw(t, "tokens") {
			text.WriteString(rapid.SampledFrom(gaps).Draw(t, "gap"))
			want = append(want, naivePlace(text.String()))
			text.WriteString(tok)
			text.WriteString(rapid.SampledFrom(gaps).Draw(t, "gap"))
		}
		want = append(want, naivePlace(text.String()))
		s := newScanner(text.String())
		for {
			tok := s.next()
			if tok.kind == kindBad {
				t.Fatal(s.err)
			}
			got = append(got, tok.pos)
			if tok.kind == kindEnd {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q\n%s", text.String(), diff)
		}
	})
}

func TestNodesKnowTheirPlaces(t *testing.T) {
	st, err := Parse("get c\nwhere é = -3 and not lower(b) in [x,\n $2] or d + 1 is null\norder by e select f as g, 'h'")
	if err != nil {
		t.Fatal(err)
	}
	get := st.(*Get)
	or := get.Where.(*Logic)
	and := or.Terms[0].(*Logic)
	eq := and.Terms[0].(*Binary)
	not := and.Terms[1].(*Unary)
	in := not.X.(*Binary)
	list := in.Y.(*ListExpr)
	null := or.Terms[1].(*Unary)
	got := map[string]Pos{
		"collection": get.Collection.Pos, "or": or.Pos, "and": and.Pos, "=": eq.Pos, "é": eq.X.Position(), "-3": eq.Y.Position(),
		"not": not.Pos, "lower": in.X.Position(), "b": in.X.(*Call).Args[0].Position(), "in": in.Pos, "[": list.Pos,
		"x": list.Items[0].Position(), "$2": list.Items[1].Position(), "is null": null.Pos, "+": null.X.Position(),
		"order": get.Order[0].Expr.Position(), "f": get.Select[0].Pos, "'h'": get.Select[1].Pos,
	}
	want := map[string]Pos{
		"collection": {1, 5}, "or": {3, 6}, "and": {2, 14}, "=": {2, 9}, "é": {2, 7}, "-3": {2, 11},
		"not": {2, 18}, "lower": {2, 22}, "b": {2, 28}, "in": {2, 31}, "[": {2, 34},
		"x": {2, 35}, "$2": {3, 2}, "is null": {3, 15}, "+": {3, 11},
		"order": {4, 10}, "f": {4, 19}, "'h'": {4, 27},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
