package doc

import (
	"math"
	"testing"
)

func TestANumberIsComparedWithNumbersAsItIs(t *testing.T) {
	const past = "9007199254740993"
	for _, tc := range []struct {
		typ  string
		v    Value
		want string
	}{
		{"int", FloatValue(1.5), `1.5`},
		{"int", untyped("1.5"), `1.5`},
		{"int", untyped("2.0"), `2`},
		{"int", decimalOf("99999999999999999999"), `99999999999999999999`},
		{"float", IntValue(1<<53 + 1), past},
		{"float", untyped(past), past},
		{"float", decimalOf("1e400"), `1e+400`},
		{"float", decimalOf("0.10000000000000000000001"), `0.10000000000000000000001`},
		{"[int]", encode(t, `[1.5,2]`).Value(), `[1.5,2]`},
		{"[float]", encode(t, `[`+past+`]`).Value(), `[` + past + `]`},
		{"[float]", untyped(`[` + past + `,1]`), `[` + past + `,1]`},
		{"json", IntValue(1<<53 + 1), past},
		{"int", Value{}, `null`},
	} {
		t.Run(tc.typ+" and "+describe(tc.v), func(t *testing.T) {
			v, err := typeOf(t, tc.typ).Comparand(tc.v, "field f")
			if err != nil {
				t.Fatal(err)
			}
			if got := string(AppendValueJSON(nil, v)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatIsNoNumberIsNotComparedWithNumbers(t *testing.T) {
	for _, tc := range []struct {
		typ  string
		v    Value
		want string
	}{
		{"int", text("1"), `field f: expected int, got text "1"`},
		{"int", untyped("1x"), `field f: expected int, got text "1x"`},
		{"float", BoolValue(true), `field f: expected float, got bool true`},
		{"float", FloatValue(math.NaN()), `field f: expected float, got a number that is not finite`},
		{"int", FloatValue(math.Inf(1)), `field f: expected int, got a number that is not finite`},
		{"[int]", encode(t, `[1,"a"]`).Value(), `an element of field f: expected int, got text "a"`},
		{"[float]", encode(t, `[null]`).Value(), `field f: expected [float], got null as element 1`},
		{"timestamp", FloatValue(1.5), `field f: expected timestamp as ISO-8601 text or milliseconds, got number 1.5`},
	} {
		t.Run(tc.typ+" and "+describe(tc.v), func(t *testing.T) {
			if _, err := typeOf(t, tc.typ).Comparand(tc.v, "field f"); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
