package doc

import (
	"math"
	"math/bits"
	"strconv"
)

// A number with a fraction is stored as a float if the shortest form of one is the same number. How that is found
// depends on the number of digits.

// exactPowers are the powers of ten that a float64 holds exactly.
var exactPowers = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// shortFloat returns the number with a fraction at the start of text and its length. The length is 0 if scanNumber has
// to read it: it is not such a number, has more than fifteen significant digits or has an exponent.
func shortFloat(text []byte) (f float64, length int) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	mantissa, start := uint64(0), i
	for i < len(text) && isDigit(text[i]) {
		mantissa = mantissa*10 + uint64(text[i]-'0')
		i++
	}
	if i == start || text[start] == '0' && i > start+1 || i == len(text) || text[i] != '.' {
		return 0, 0
	}
	i++
	point := i
	for i < len(text) && isDigit(text[i]) {
		mantissa = mantissa*10 + uint64(text[i]-'0')
		i++
	}
	if i == point || i > start+19 || mantissa >= 1e15 || i < len(text) && text[i]|0x20 == 'e' {
		return 0, 0
	}
	f = float64(mantissa) / exactPowers[i-point] // as in numeral.float64
	if negative && mantissa != 0 {
		f = -f
	}
	return f, i
}

// float64 returns the number if it is the shortest form of a float64.
func (n numeral) float64(text []byte) (float64, bool) {
	if n.digits > 17 {
		return 0, false // a shortest form never has more
	}
	if n.digits <= 15 && n.exponent >= -22 && n.exponent <= 22 {
		// Both operands are exact, so the operation's one rounding is correct, and no two numbers of fifteen digits
		// share a float64: the shortest form is these digits.
		f := float64(n.mantissa)
		if n.exponent < 0 {
			f /= exactPowers[-n.exponent]
		} else {
			f *= exactPowers[n.exponent]
		}
		if n.negative {
			f = -f
		}
		return f, true
	}
	if f, ok := n.long(); ok {
		return f, true
	}
	f := n.nearest(text)
	if f == 0 || math.IsInf(f, 0) {
		return 0, false
	}
	var buf [32]byte
	back, ok := scanNumber(strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
	return f, ok && back.digits == n.digits && back.mantissa == n.mantissa && back.exponent == n.exponent
}

// long is float64 for most numbers of 16 or 17 digits, which is what programs write for a float64; ok is false for the
// rest, whether or not they are a shortest form.
func (n numeral) long() (f float64, ok bool) {
	if n.digits < 16 || n.exponent >= 0 || n.exponent < -19 {
		return 0, false
	}
	// The float64 nearest to mantissa / places is q / 2^shift, where q has 53 bits. Everything below is scaled by
	// places and 2^shift: unit is then a step of the mantissa, places is a step of q, and off is the distance from q to
	// the number.
	places := powersOfTen[-n.exponent]
	shift := 53 + bits.Len64(places) - bits.Len64(n.mantissa)
	if shift < 2 || shift > 62 {
		return 0, false
	}
	q, rest := bits.Div64(n.mantissa>>(64-shift), n.mantissa<<shift, places)
	if q >= 1<<53 {
		shift--
		q, rest = bits.Div64(n.mantissa>>(64-shift), n.mantissa<<shift, places)
	}
	off := float64(rest)
	if rest > places/2 {
		q++
		off = -float64(places - rest)
	}
	if q <= 1<<52 || q >= 1<<53 || rest == places/2 { // here the distance to the next float64 changes
		return 0, false
	}
	// It is the shortest form if no multiple of ten of the mantissa's last digit is within half a step of q, and if it
	// is the nearest of its length.
	unit, half, last := float64(uint64(1)<<shift), float64(places)/2, float64(n.mantissa%10)
	const margin = 1 + 1e-9 // far more than these float64s are rounded by
	if math.Abs(off)*2*margin >= unit || min(last*unit-off, (10-last)*unit+off) <= half*margin {
		return 0, false
	}
	f = float64(q) / unit
	if n.negative {
		f = -f
	}
	return f, true
}
