package doc

import (
	"math"
	"strconv"
)

// smallestNormal32 is the smallest float32 that has all 24 bits of its mantissa.
const smallestNormal32 = 0x1p-126

// A float64 whose last 29 bits are these is halfway between two float32s.
const (
	lostBits = 1<<29 - 1
	halfway  = 1 << 28
)

// narrow returns the float32 nearest to the decimal that f is the shortest form of, infinite if out of range. Rounding
// f would round twice: if f is halfway between two float32s, only the decimal decides on which side it was.
func narrow(f float64) float32 {
	if math.Float64bits(f)&lostBits != halfway && math.Abs(f) >= smallestNormal32 || f-f != 0 {
		return float32(f)
	}
	var buf [32]byte
	return nearest32(strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
}

// nearest32 returns the float32 nearest to a number's text, infinite if out of range.
func nearest32(text []byte) float32 {
	f, _ := strconv.ParseFloat(unsafeString(text), 32) // out of range it returns the infinity that is wanted
	return float32(f)
}

// parseFloat32 reads the number at the start of text, in JSON's spelling, as the nearest float32, infinite if out of
// range. It returns the length 0 if there is no number.
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
	// Up to nineteen digits fit the mantissa. The two roundings below are within two units of the last place of a
	// float64, which matters only close to halfway between two float32s.
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

// AppendFloat32 appends the shortest decimal that reads back as f, spelled as by AppendFloat, or null if f is not
// finite.
func AppendFloat32(dst []byte, f float32) []byte {
	abs := math.Abs(float64(f))
	switch {
	case abs < 1<<24 && abs == math.Trunc(abs):
		return strconv.AppendInt(dst, int64(f), 10)
	case abs-abs != 0:
		return append(dst, "null"...)
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, float64(f), 'f', -1, 32)
	}
	return shortExponent(strconv.AppendFloat(dst, float64(f), 'e', -1, 32))
}

// Float32Value returns f as the float of the same shortest decimal: 0.1, not 0.10000000149011612.
func Float32Value(f float32) Value {
	wide := float64(f)
	if abs := math.Abs(wide); abs >= 1e-6 && abs < 1e5 {
		// A decimal of so many digits is the nearest one to f of its length, and still is with zeros appended. So the
		// lengths from five or six digits on are tried; nine always suffice.
		exponent := int(math.Float32bits(f)>>23&0xff) - 127
		scale := exactPowers[4-exponent*1233>>12] // 1233/4096 is log10(2) for exponents as small as these
		for range 5 {
			if short := math.RoundToEven(wide*scale) / scale; float32(short) == f {
				return FloatValue(short)
			}
			scale *= 10
		}
	}
	if wide-wide != 0 {
		return FloatValue(wide)
	}
	var buf [64]byte
	wide, _ = strconv.ParseFloat(unsafeString(AppendFloat32(buf[:0], f)), 64) // a float32 is within the range
	return FloatValue(wide)
}
