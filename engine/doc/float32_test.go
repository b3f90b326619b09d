package doc

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spelled32 returns the shortest decimal of f from the library, spelled as by AppendFloat.
func spelled32(f float32) string {
	format := byte('f')
	f += 0 // -0 is written 0
	if abs := math.Abs(float64(f)); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	s := strconv.FormatFloat(float64(f), format, -1, 32)
	return strings.Replace(s, "e-0", "e-", 1)
}

func finite32(bits uint32) bool { return bits>>23&0xff != 0xff }

func checkWritten32(t testing.TB, f float32) {
	if got, want := string(AppendFloat32(nil, f)), spelled32(f); got != want {
		t.Fatalf("%b is written %s, want %s", f, got, want)
	}
	if want, _ := strconv.ParseFloat(spelled32(f), 64); Float32Value(f).Float() != want {
		t.Fatalf("%b as a float is %v, want %v", f, Float32Value(f).Float(), want)
	}
}

func TestEveryScaleOfFloat32IsWrittenShortest(t *testing.T) {
	for _, f := range []float32{0, 1, -1, 0.1, 0.3, 1.5, 16777216, 16777215, 8388607.5, 33554432, 1e-6, 9.99e-7, 1e21, 1e20, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.001, 123456.79, 0.5, 0.25, 3.4e-38, 1e10} {
		checkWritten32(t, f)
		checkWritten32(t, -f)
		if f != math.MaxFloat32 {
			checkWritten32(t, math.Nextafter32(f, 2*f))
		}
		checkWritten32(t, math.Nextafter32(f, 0))
	}
	for _, f := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if got, v := string(AppendFloat32(nil, f)), Float32Value(f); got != "null" || describe(v) != "a number that is not finite" {
			t.Errorf("%v is written %s and is %s", f, got, describe(v))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		if bits := random.Uint32(); finite32(bits) {
			checkWritten32(t, math.Float32frombits(bits))
		}
		checkWritten32(t, float32(random.NormFloat64()))
		checkWritten32(t, float32(random.IntN(2_000_000)-1_000_000)/float32([]int{10, 100, 1000, 10_000, 1_000_000}[random.IntN(5)]))
	}
}

// checkRead32 reads a number both ways and compares with the library, which rounds a decimal once.
func checkRead32(t testing.TB, text string) {
	wide, err := strconv.ParseFloat(text, 32)
	if err != nil && !math.IsInf(wide, 0) {
		t.Fatal(err)
	}
	want := float32(wide)
	f, n := parseFloat32([]byte(text + ","))
	if f != want || n != len(text) {
		t.Fatalf("%s is read as %b of %d bytes, want %b", text, f, n, want)
	}
	v, err := ParseNumber([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := float32Of(v); got != want {
		t.Fatalf("%s, which is %s, becomes %b, want %b", text, describe(v), got, want)
	}
}

// beside returns decimals at and close to the middle between f and the next float32, where rounding twice goes wrong.
func beside(f float32) []string {
	next := math.Nextafter32(f, float32(math.Inf(1)))
	middle := (float64(f) + float64(next)) / 2
	exact := strconv.FormatFloat(middle, 'f', 200, 64)
	exact = strings.TrimRight(exact, "0")
	if strings.HasSuffix(exact, ".") {
		exact += "0"
	}
	out := []string{exact, exact + "1", strconv.FormatFloat(middle, 'e', 16, 64), strconv.FormatFloat(middle, 'g', -1, 64)}
	for digits := 8; digits < 20; digits++ {
		out = append(out, strconv.FormatFloat(middle, 'f', digits, 64), strconv.FormatFloat(middle, 'e', digits, 64))
	}
	return out
}

func TestADecimalIsRoundedToFloat32Once(t *testing.T) {
	for _, text := range []string{"0", "-0", "0.0", "0.1", "-0.1", "1e3", "16777217", "16777217.0", "16777217.000000001", "3.4028235e38", "3.4028236e38", "3.4028235677973366e38", "1e39", "-1e400", "1e-45", "7e-46", "1e-400", "0.10000000149011612", "9223372036854775807", "9223372036854775808", "0.3000000119209289550781250000000000000000000000000000001", "1.17549435e-38", "1.1754943e-38"} {
		checkRead32(t, text)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		f := float32(random.NormFloat64())
		if bits := random.Uint32(); random.IntN(4) == 0 && finite32(bits) {
			f = math.Float32frombits(bits)
		}
		for _, text := range beside(f) {
			checkRead32(t, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		wide, _ := strconv.ParseFloat(text, 32)
		if f, n := parseFloat32([]byte(text)); f != float32(wide) || n != len(text) {
			t.Fatalf("%s is read as %b of %d bytes, want %b", text, f, n, float32(wide))
		}
	})
}

func TestWhatIsNoNumberIsNoFloat32(t *testing.T) {
	for _, text := range []string{"", "-", "01", ".5", "5.", "5.e3", "1e", "1e+", "+1", "NaN", "inf", "x", "0x1p3"} {
		_, length := parseFloat32([]byte(text))
		_, ok := scanNumber([]byte(text))
		n, _ := scanNumber([]byte(text))
		if ok != (length > 0) || ok && n.length != length {
			t.Errorf("%q: %d bytes are a number", text, length)
		}
	}
}

func BenchmarkFloat32(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	floats := make([]float32, 1024)
	for i := range floats {
		floats[i] = float32(random.NormFloat64())
	}
	buf := make([]byte, 0, 64)
	each := func(name string, run func(f float32)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, f := range floats {
					run(f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(floats)), "ns/number")
		})
	}
	each("write", func(f float32) { AppendFloat32(buf, f) })
	each("write as the library does", func(f float32) { strconv.AppendFloat(buf, float64(f), 'g', -1, 32) })
	each("widen", func(f float32) { Float32Value(f) })
}
