package vector

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestEveryHalfComesBack(t *testing.T) {
	for h := range 1 << 16 {
		b := binary.LittleEndian.AppendUint16(nil, uint16(h))
		v := FromF16(nil, b)
		back, overflow := AppendF16(nil, v)
		if h&0x7c00 == 0x7c00 { // infinite, or not a number
			if v[0]-v[0] == 0 || overflow != 0 || len(back) != 0 {
				t.Fatalf("%04x is %v and comes back as %x", h, v[0], back)
			}
			continue
		}
		if want := halfValue(uint16(h)); v[0] != want || math.Signbit(float64(v[0])) != (h>>15 == 1) {
			t.Fatalf("%04x is %v, want %v", h, v[0], want)
		}
		if overflow != -1 || binary.LittleEndian.Uint16(back) != uint16(h) {
			t.Fatalf("%04x is %v and comes back as %x", h, v[0], back)
		}
	}
}

// halfValue returns the number by the definition: fraction times a power of two.
func halfValue(h uint16) float32 {
	fraction, exponent := float64(h&0x3ff), int(h>>10&0x1f)
	if exponent > 0 {
		fraction += 1024
	} else {
		exponent = 1
	}
	return float32(math.Copysign(math.Ldexp(fraction, exponent-25), -float64(h>>15)+0.5))
}

func TestHalvesAreTheNearest(t *testing.T) {
	for h := range uint16(0x7bff) {
		lo, hi := float64(halfValue(h)), float64(halfValue(h+1))
		middle := float32((lo + hi) / 2)
		even := h + h&1
		for _, c := range []struct {
			x    float32
			want uint16
		}{
			{middle, even},
			{math.Nextafter32(middle, 0), h},
			{math.Nextafter32(middle, math.MaxFloat32), h + 1},
			{-middle, even | 0x8000},
		} {
			b, overflow := AppendF16(nil, []float32{c.x})
			if overflow != -1 || binary.LittleEndian.Uint16(b) != c.want {
				t.Fatalf("%v rounds to %x, want %04x", c.x, b, c.want)
			}
		}
	}
}

func TestHalvesThatOverflow(t *testing.T) {
	if b, overflow := AppendF16([]byte{1}, []float32{1, 65519.996, 65520, 2}); overflow != 2 || len(b) != 1 {
		t.Errorf("the first past the largest is number %d, want 2; %d bytes are left, want 1", overflow, len(b))
	}
	if b, overflow := AppendF16(nil, []float32{float32(math.NaN())}); overflow != 0 || len(b) != 0 {
		t.Errorf("not a number becomes %x", b)
	}
}

func TestHalvesByTheBlock(t *testing.T) {
	for n := range 70 {
		var b []byte
		for i := range n {
			b = binary.LittleEndian.AppendUint16(b, uint16(i*397))
		}
		got := FromF16([]float32{7}, b)
		if len(got) != n+1 || got[0] != 7 {
			t.Fatalf("%d halves become %d floats behind %v", n, len(got)-1, got[0])
		}
		for i, x := range got[1:] {
			if want := halfValue(uint16(i * 397)); x != want {
				t.Fatalf("half %d of %d is %v, want %v", i, n, x, want)
			}
		}
	}
}
