package doc

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestFloatsOfEitherWidth(t *testing.T) {
	floats := []float32{1, 0.5, -2, 0, 65504}
	buf := make([]float32, 0, 8)
	for _, f16 := range []bool{false, true} {
		v := madeVector(f16, floats)
		got := v.Floats(buf)
		if v.Dim() != len(floats) || len(got) != len(floats) {
			t.Fatalf("f16 %t: %d dimensions and %d floats, want %d", f16, v.Dim(), len(got), len(floats))
		}
		for i := range floats {
			if got[i] != floats[i] || v.float(i) != floats[i] {
				t.Errorf("f16 %t: float %d is %v and %v, want %v", f16, i, got[i], v.float(i), floats[i])
			}
		}
		if n := testing.AllocsPerRun(10, func() { got = v.Floats(buf) }); n > 0 {
			t.Errorf("f16 %t: %v allocations", f16, n)
		}
	}
}

func TestWeights(t *testing.T) {
	v := madeSparse(30, "{30:2,7:0.5}/30")
	w := v.Weights()
	i, a := w.At(0)
	j, b := w.At(1)
	if v.Dim() != 30 || w.Len() != 2 || i != 7 || a != 0.5 || j != 30 || b != 2 {
		t.Errorf("%d dimensions, %d weights: %v at %d, %v at %d", v.Dim(), w.Len(), a, i, b, j)
	}
	if IntValue(3).Weights().Len() != 0 || IntValue(3).Dim() != 0 {
		t.Error("an int has weights")
	}
}

func TestAVectorOfAnyLength(t *testing.T) {
	for _, tc := range []struct {
		v          Value
		want, fail string
	}{
		{v: encode(t, `[1,0.1]`).Value(), want: `[1,0.1]`},
		{v: text("[3]"), want: `[3]`},
		{v: untyped("[3, 4,5e0]"), want: `[3,4,5]`},
		{v: madeVector(true, []float32{1}), want: `[1]`},
		{v: IntValue(3), fail: `norm: expected a vector, got number 3`},
		{v: encode(t, `[]`).Value(), fail: `norm: expected a vector of 1 to 65536 numbers, got a list of 0`},
		{v: encode(t, `["a"]`).Value(), fail: `norm: expected vector<1>, got text "a" as number 1`},
		{v: text("abc"), fail: `norm: expected a vector, got text "abc"`},
		{v: text("[" + strings.Repeat("1,", MaxDim) + "1]"), fail: `norm: expected a vector of 1 to 65536 numbers, got a list of 65537`},
	} {
		v, err := VectorOf(tc.v, "norm")
		switch {
		case err != nil && err.Error() != tc.fail, err == nil && tc.fail != "":
			t.Errorf("%s: got %v, want %s", describe(tc.v), err, tc.fail)
		case err == nil && string(AppendValueJSON(nil, v)) != tc.want:
			t.Errorf("%s: got %s, want %s", describe(tc.v), AppendValueJSON(nil, v), tc.want)
		}
	}
}

// checkStored checks what a type made of v, and that it reads back from its own JSON.
func checkStored(t *testing.T, typ Type, v Value) {
	raw, err := typ.Append(nil, v, "field f")
	if err != nil {
		return
	}
	if !wholeValue(raw) {
		t.Fatalf("%s is stored as %x", describe(v), raw)
	}
	read, err := ParseJSON(nil, AppendJSON(nil, raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, written := range []Value{Raw(read).Value(), untyped(string(AppendJSON(nil, raw)))} {
		if written.Kind == Untyped && typ.Kind == TypeSparse {
			continue // its JSON has quotes
		}
		again, err := typ.Append(nil, written, "field f")
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("%s reads back as %x, %v; was %x", AppendJSON(nil, raw), again, err, raw)
		}
	}
}

func FuzzVector(f *testing.F) {
	for _, s := range []string{"[1,2,3]", " [ -1e-9 , 65519.9,0.1 ] ", "[1,2", "[]", "[1,,2]", "[1e39,1,1]", "[01,2,3]", "[1.000000178813934326171875,1,1]", "[\"1\",2,3]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, typ := range []Type{vector3, half3} {
			checkStored(t, typ, TextValue(data))
			list, err := ParseJSON(nil, data)
			if err != nil {
				continue
			}
			checkStored(t, typ, Raw(list).Value())
			// A list that is a vector equals the vector of its text.
			a, err := typ.Append(nil, Raw(list).Value(), "f")
			b, other := typ.Append(nil, TextValue(data), "f")
			if Raw(list).Kind() == List && ((err == nil) != (other == nil) || !bytes.Equal(a, b)) {
				t.Fatalf("%q is %x, %v as a list and %x, %v as text", data, a, err, b, other)
			}
		}
	})
}

func FuzzSparse(f *testing.F) {
	for _, s := range []string{"{1:2,7:0.1}/10", "{}/10", "{ 3 : 1e-50 } / 10", "{1:1,1:1}/10", "{11:1}/10", "{1:1}/9", "{1:1e39}/10", "{1:}/10"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkStored(t, sparse10, TextValue(data)) })
}

func BenchmarkVector(b *testing.B) {
	floats := make([]float32, 128)
	for i := range floats {
		floats[i] = float32(math.Sin(float64(i)*1.7) / 3)
	}
	v := madeVector(false, floats)
	typ := Type{Kind: TypeVector, Dim: 128}
	short := AppendValueJSON(nil, v)
	long := []byte("[")
	for _, f := range floats {
		long = append(AppendFloat(long, float64(f)), ',')
	}
	long[len(long)-1] = ']'
	dst, out := make([]byte, 0, 4096), make([]byte, 0, 4096)
	b.Run("write 128 numbers", func(b *testing.B) {
		for b.Loop() {
			out = AppendValueJSON(out[:0], v)
		}
	})
	for name, in := range map[string][]byte{"short": short, "long": long} {
		b.Run("read 128 "+name+" numbers from text", func(b *testing.B) {
			for b.Loop() {
				if _, err := typ.Append(dst[:0], TextValue(in), "f"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("read 128 "+name+" numbers from JSON", func(b *testing.B) {
			for b.Loop() {
				list, err := ParseJSON(out[:0], in)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := typ.Append(dst[:0], Raw(list).Value(), "f"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
