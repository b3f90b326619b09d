package doc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestAShortFloatIsWhatParseNumberReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{0,17}\.?[0-9]{0,17}[eE,]?1?`).Draw(t, "number")
		f, length := shortFloat([]byte(text))
		if length == 0 {
			return
		}
		v, err := ParseNumber([]byte(text[:length]))
		if err != nil || v.Kind != Float || v.N != math.Float64bits(f) || length < len(text) && text[length] != ',' {
			t.Fatalf("%s is %v of %d bytes, want %s, %v", text, f, length, describe(v), err)
		}
	})
	for text, want := range map[string]int{"0.5": 3, "-0.0,": 4, "123456789.012345": 16, "1.5e3": 0, "1": 0, "1.": 0, ".5": 0, "01.5": 0, "1234567890.123456": 0, "0.12345678901234567": 0, "": 0} {
		if _, length := shortFloat([]byte(text)); length != want {
			t.Errorf("%q: %d bytes, want %d", text, length, want)
		}
	}
}

func TestALongFloatIsWhatItsShortestFormSays(t *testing.T) {
	found := 0
	check := func(t testing.TB, text string) {
		n, ok := scanNumber([]byte(text))
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		if n.digits > 17 {
			return
		}
		f, ok := n.long()
		if !ok {
			return
		}
		found++
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || f != want {
			t.Fatalf("%s is %v, want %v, %v", text, f, want, err)
		}
		back, _ := scanNumber(strconv.AppendFloat(nil, f, 'e', -1, 64))
		if back.mantissa != n.mantissa || back.exponent != n.exponent {
			t.Fatalf("%s passes for the shortest form of %v", text, f)
		}
	}
	random := rand.New(rand.NewPCG(7, 8))
	for range 60_000 {
		f := random.NormFloat64() * math.Pow(10, float64(random.IntN(12)-6))
		if random.IntN(2) == 0 {
			f = float64(float32(f))
		}
		check(t, strconv.FormatFloat(f, 'f', -1, 64))
		check(t, strconv.FormatFloat(f, 'e', 15+random.IntN(3), 64)) // often not the shortest, or not the nearest
		check(t, strconv.FormatFloat(f, 'f', 16+random.IntN(4), 64))
		check(t, fmt.Sprintf("0.%d", 1e16+random.Int64N(9e16)))
	}
	if found < 60_000 {
		t.Errorf("%d numbers went the short way, want more", found)
	}
}
