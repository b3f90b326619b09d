package doc

import (
	"math"
	"strconv"
)

// smallestNormal32 is the least float32 that has all 24 bits of its mantissa.
const smallestNormal32 = 0x1p-126

// A float64 whose last 29 bits are these lies halfway between two float32s.
const (
	lostBits = 1<<29 - 1
	halfway  = 1 << 28
)

// narrow is the float32 nearest to the decimal that f is the shortest form of, infinite past their range. Rounding f would
// be rounding twice: where f comes to lie halfway between two float32s, only the decimal says on which side it was.
func narrow(f float64) float32 {
	if math.Float64bits(f)&lostBits != halfway && math.Abs(f) >= smallestNormal32 || f-f != 0 {
		return float32(f)
	}
	var buf [32]byte
	return nearest32(strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
}

// nearest32 is the float32 nearest to a number's text, infinite past their range.
func nearest32(text []byte) float32 {
	f, _ := strconv.ParseFloat(unsafeString(text), 32) // past the range it answers the infinity that is wanted
	return float32(f)
}

// parseFloat32 reads the number at the head of text, in JSON's spelling, as the float32 nearest to it, infinite past their
// range. The length is 0 where no number is.
func parseFloat32(text []byte) (f float32, length int) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	mantissa, start, exponent := uint64(0), i, 0
	for i < len(text) && isDigit(text[i]) {
		mantissa = mantissa*10 + uint64(text[i]-'0')
		i++
	}
	digits := i - start
	if digits == 0 || text[start] == '0' && digits > 1 {
		return 0, 0
	}
	if i < len(text) && text[i] == '.' {
		i++
		from := i
		for i < len(text) && isDigit(text[i]) {
			mantissa = mantissa*10 + uint64(text[i]-'0')
			i++
		}
		exponent = from - i
		digits -= exponent
		if exponent == 0 {
			return 0, 0
		}
	}
	// Up to nineteen digits fit the mantissa. The two roundings below are within two units of the last place of a float64,
	// which decide nothing but close to halfway between two float32s.
	if digits > 19 || exponent < -22 || i < len(text) && text[i]|0x20 == 'e' {
		return parseLong32(text)
	}
	wide := float64(mantissa) / exactPowers[-exponent]
	if lost := math.Float64bits(wide) & lostBits; lost-(halfway-4) <= 8 {
		return parseLong32(text)
	}
	if negative {
		wide = -wide
	}
	return float32(wide), i
}

// parseLong32 is parseFloat32 for any number.
func parseLong32(text []byte) (f float32, length int) {
	n, ok := scanNumber(text)
	if !ok {
		return 0, 0
	}
	return nearest32(text[:n.length]), n.length
}

// AppendFloat32 appends the shortest decimal that reads back as f, which is finite, spelled as AppendFloat does.
func AppendFloat32(dst []byte, f float32) []byte {
	digits, places := shortest32(f)
	if places < 0 {
		return appendLong32(dst, f)
	}
	if f < 0 {
		dst = append(dst, '-')
	}
	if places == 0 {
		return strconv.AppendUint(dst, digits, 10)
	}
	return appendPlaces(dst, digits, places)
}

// Float32Value is the float that is written as f is, which is finite.
func Float32Value(f float32) Value {
	digits, places := shortest32(f)
	if places < 0 {
		var buf [64]byte
		wide, _ := strconv.ParseFloat(unsafeString(appendLong32(buf[:0], f)), 64) // a float32 is within the range
		return FloatValue(wide)
	}
	wide := float64(digits) / exactPowers[places] // rounded once: both are exact
	if f < 0 {
		wide = -wide
	}
	return FloatValue(wide)
}

// shortest32 is the shortest decimal that reads back as the absolute value of f: digits, so many places of them behind the
// point. Places are -1 where the short way does not find it.
func shortest32(f float32) (digits uint64, places int) {
	bits := math.Float32bits(f)
	abs := math.Abs(float64(f))
	switch {
	case abs < 1<<24 && abs == math.Trunc(abs):
		return uint64(abs), 0
	case abs < 1e-6 || abs >= 1<<24 || bits&(1<<23-1) == 0: // next to a power of two the float32s are not evenly spaced
		return 0, -1
	}
	// What reads back as f lies within half a step of it. Scaled to nine digits before the point, a float64 tells where
	// that is to within a millionth, and the shortest such number is a multiple of the largest power of ten.
	exponent := int(bits>>23&0xff) - 127
	places = 8 - exponent*1233>>12 // 1233/4096 is log10(2) for exponents as small as these
	middle := abs * exactPowers[places]
	if middle >= 1e9 {
		places--
		middle = abs * exactPowers[places]
	}
	half := math.Float64frombits(uint64(exponent-24+1023)<<52) * exactPowers[places]
	for power := 1.0; power <= 1e8; power *= 10 {
		parts := middle / power
		nearest := math.Floor(parts + 0.5)
		past := math.Abs(nearest*power-middle) - half
		if math.Abs(past) < 1e-3 || math.Abs(math.Abs(nearest-parts)-0.5) < 1e-6 {
			return 0, -1 // too close to tell
		}
		if past > 0 {
			break
		}
		if digits = uint64(nearest); power > 1 {
			places--
		}
	}
	return digits, places
}

// appendPlaces appends digits with so many of them, one at least, behind the point.
func appendPlaces(dst []byte, digits uint64, places int) []byte {
	dst = strconv.AppendUint(dst, digits/powersOfTen[places], 10)
	dst = append(dst, "."+"00000000000000000000"[:places]...)
	rest := digits % powersOfTen[places]
	for at := len(dst) - 1; rest > 0; at-- {
		dst[at] += byte(rest % 10)
		rest /= 10
	}
	return dst
}

// appendLong32 is AppendFloat32 for any float32.
func appendLong32(dst []byte, f float32) []byte {
	if abs := math.Abs(float64(f)); f == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, float64(f+0), 'f', -1, 32) // -0 becomes 0
	}
	return shortExponent(strconv.AppendFloat(dst, float64(f), 'e', -1, 32))
}
