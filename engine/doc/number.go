package doc

import (
	"math"
	"math/bits"
	"strconv"

	"fenec/engine/fail"
)

// maxExponent bounds the power of ten of a decimal, so that its place value always fits an int.
const maxExponent = 999_999_999

// ParseNumber reads a number in JSON's spelling and keeps its value: as an int64 if it is written as an integer that
// fits; else as a float64 if the shortest form of one is the same number; else as a decimal with its digits, without
// insignificant zeros. An int64 in another spelling, such as 3.0 or 1e3, becomes a float64 only if that equals it
// exactly.
func ParseNumber(text []byte) (Value, error) {
	n, ok := scanNumber(text)
	if !ok || n.length != len(text) {
		return Value{}, fail.New(fail.Invalid, "%s is not a number", quoteShort(text))
	}
	return n.value(text)
}

// numeral is the parsed text of a number. mantissa holds up to nineteen significant digits.
type numeral struct {
	length   int
	negative bool
	integer  bool   // written without a fraction or an exponent
	mantissa uint64 // the significant digits, if digits <= 19
	digits   int    // the number of significant digits, without leading and trailing zeros
	exponent int    // value = mantissa * 10^exponent
	overflow bool   // the exponent is past maxExponent
}

// scanNumber reads the number at the start of text; ok is false if there is none.
func scanNumber(text []byte) (n numeral, ok bool) {
	i := 0
	if i < len(text) && text[i] == '-' {
		n.negative = true
		i++
	}
	start := i
	zeros := 0 // zeros after a significant digit, significant only if another digit follows
	digit := func(c byte) {
		if c == '0' {
			if n.digits > 0 {
				zeros++
			}
			return
		}
		for ; zeros > 0; zeros-- {
			n.digits++
			n.mantissa *= 10
		}
		n.digits++
		n.mantissa = n.mantissa*10 + uint64(c-'0')
	}
	for i < len(text) && isDigit(text[i]) {
		digit(text[i])
		i++
	}
	if i == start || text[start] == '0' && i > start+1 {
		return n, false
	}
	n.integer = true
	n.exponent = 0
	fraction := 0
	if i < len(text) && text[i] == '.' {
		n.integer = false
		i++
		from := i
		for i < len(text) && isDigit(text[i]) {
			digit(text[i])
			i++
		}
		if fraction = i - from; fraction == 0 {
			return n, false
		}
	}
	power := 0
	if i < len(text) && text[i]|0x20 == 'e' {
		n.integer = false
		i++
		negative := false
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			negative = text[i] == '-'
			i++
		}
		from := i
		for i < len(text) && isDigit(text[i]) {
			if power <= 2*maxExponent {
				power = power*10 + int(text[i]-'0')
			}
			i++
		}
		if i == from {
			return n, false
		}
		if negative {
			power = -power
		}
	}
	n.length = i
	n.exponent = power - fraction + zeros
	if top := n.exponent + n.digits; top > maxExponent || top < -maxExponent {
		n.overflow = n.digits > 0
	}
	return n, true
}

// shortInt returns the int at the start of text and its length. The length is 0 if scanNumber has to read it: it is not
// an int or has more than 18 digits.
func shortInt(text []byte) (n int64, length int) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	start := i
	for i < len(text) && isDigit(text[i]) {
		n = n*10 + int64(text[i]-'0')
		i++
	}
	if i == start || i > start+18 || text[start] == '0' && i > start+1 || i < len(text) && (text[i] == '.' || text[i]|0x20 == 'e') {
		return 0, 0
	}
	if negative {
		n = -n
	}
	return n, i
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// value returns the number as a value; text is what it was scanned from.
func (n numeral) value(text []byte) (Value, error) {
	if v, ok := n.binary(text); ok {
		return v, nil
	}
	if n.overflow {
		return Value{}, n.pastDecimal(text)
	}
	return Value{Kind: Decimal, B: n.appendDecimal(make([]byte, 0, n.digits+16), text)}, nil
}

// appendTo appends the encoded number to dst.
func (n numeral) appendTo(dst, text []byte) ([]byte, error) {
	if v, ok := n.binary(text); ok {
		return appendFixed(dst, tagInt+byte(v.Kind-Int), v.N), nil
	}
	if n.overflow {
		return nil, n.pastDecimal(text)
	}
	var buf [128]byte
	return appendContent(dst, tagDecimal, n.appendDecimal(buf[:0], text)), nil
}

func (n numeral) pastDecimal(text []byte) error {
	return fail.New(fail.Invalid, "the number %s is out of range: the exponent of a decimal is at most %d", short(text[:n.length]), maxExponent)
}

// binary returns the number as an int or float; ok is false if it is neither.
func (n numeral) binary(text []byte) (v Value, ok bool) {
	if n.digits == 0 {
		if n.integer {
			return IntValue(0), true
		}
		return FloatValue(0), true
	}
	if n.overflow {
		return Value{}, false
	}
	i, whole := n.int64()
	if whole && n.integer {
		return IntValue(i), true
	}
	// The shortest form of a large float64 can be an int64 that it only rounds to: that stays the int64.
	if f, ok := n.float64(text[:n.length]); ok && !(whole && compareIntFloat(i, f) != 0) {
		return FloatValue(f), true
	}
	return IntValue(i), whole
}

// nearest returns the float64 nearest to the number, infinite if out of range.
func (n numeral) nearest(text []byte) float64 {
	switch top := n.digits + n.exponent; { // the number is from 10^(top-1) to 10^top
	case n.digits == 0 || top < -330:
		return 0
	case top > 310: // what follows would return the same, but allocate an error for it
		return math.Copysign(math.Inf(1), float64(n.sign()))
	}
	f, _ := strconv.ParseFloat(unsafeString(text[:n.length]), 64) // out of range it returns the infinity that is wanted
	return f
}

var powersOfTen = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// int64 returns the number if it is an integer of 64 bits.
func (n numeral) int64() (int64, bool) {
	if n.exponent < 0 || n.digits+n.exponent > 19 {
		return 0, false
	}
	hi, m := bits.Mul64(n.mantissa, powersOfTen[n.exponent])
	if hi != 0 {
		return 0, false
	}
	if n.negative {
		return -int64(m), m <= 1<<63
	}
	return int64(m), m < 1<<63
}

// appendDecimal appends the canonical text of the number: plain if it has at most forty places before the point and at
// most five zeros right after it, else with an exponent. Equal decimals have the same text.
func (n numeral) appendDecimal(dst, text []byte) []byte {
	if n.negative {
		dst = append(dst, '-')
	}
	point := n.digits + n.exponent // places before the decimal point
	digits := significant{text: text[:n.length], left: n.digits}
	digits.skipZeros()
	switch {
	case point > 0 && point <= 40:
		for i := 0; i < max(point, n.digits); i++ {
			if i == point {
				dst = append(dst, '.')
			}
			dst = append(dst, digits.next())
		}
	case point <= 0 && point > -6:
		dst = append(dst, "0.000000"[:2-point]...)
		for range n.digits {
			dst = append(dst, digits.next())
		}
	default:
		for i := range n.digits {
			if i == 1 {
				dst = append(dst, '.')
			}
			dst = append(dst, digits.next())
		}
		dst = append(dst, 'e')
		if point-1 > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(point-1), 10)
	}
	return dst
}

// significant iterates over the significant digits of a number's text, then returns zeros for ever.
type significant struct {
	text []byte
	left int
}

func (s *significant) skipZeros() {
	for len(s.text) > 0 && (s.text[0] < '1' || s.text[0] > '9') {
		s.text = s.text[1:]
	}
}

func (s *significant) next() byte {
	if s.left == 0 {
		return '0'
	}
	s.left--
	for s.text[0] == '.' {
		s.text = s.text[1:]
	}
	c := s.text[0]
	s.text = s.text[1:]
	return c
}

// Float64 returns the float64 nearest to a number: infinite for a decimal out of range, 0 for anything but a number.
func (v Value) Float64() float64 {
	switch v.Kind {
	case Int:
		return float64(v.Int())
	case Float:
		return v.Float()
	case Decimal:
		n, _ := scanNumber(v.B)
		return n.nearest(v.B)
	}
	return 0
}

// Int64 returns a number as an int64 if it equals one.
func (v Value) Int64() (int64, bool) {
	switch v.Kind {
	case Int:
		return v.Int(), true
	case Float:
		return intOfFloat(v.Float())
	case Decimal:
		if n, ok := scanNumber(v.B); ok && !n.overflow {
			return n.int64()
		}
	}
	return 0, false
}

// intOfFloat returns f as an int64 if it equals one.
func intOfFloat(f float64) (int64, bool) {
	if f >= -1<<63 && f < 1<<63 && f == math.Trunc(f) {
		return int64(f), true
	}
	return 0, false
}
