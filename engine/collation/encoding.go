package collation

import "slices"

// frequent are the characters whose primary weight is one byte of a key, so that a key's first few bytes distinguish
// most texts.
const frequent = " _-,./:@'&0123456789abcdefghijklmnopqrstuvwxyz"

// encoding is how the primary weights of a collation are written in a key. It preserves their order, and no weight is
// written as a prefix of another. The first byte is
//
//	firstLead + 2i+1   for frequent[i], which is written as that byte
//	firstLead + 2i     for a weight between frequent[i-1] and frequent[i]; both its bytes follow
//	high + upper byte  for a weight above all frequent ones; its lower byte follows
//	top + upper bits   for a weight of more than 15 bits; the other two bytes follow
type encoding struct {
	frequent  []int // ascending
	high, top int
}

const firstLead = separator + 1

// The weights common to most characters, which are the smallest of their levels.
const (
	commonSecondary = 0x20
	commonTertiary  = 0x02
)

// twoBytes is the smallest secondary weight that is written as two bytes. The first of them has all of its bits.
const twoBytes = 0xe0

func newEncoding(frequent []int) encoding {
	slices.Sort(frequent)
	frequent = slices.Compact(frequent)
	n := len(frequent)
	high := firstLead + 2*n - frequent[n-1]>>8
	return encoding{frequent: frequent, high: high, top: high + 1<<7}
}

// primarySize returns the number of bytes of the primary weight at the start of b.
func primarySize(b []byte) int { return 2 + int(b[0]>>7) }

// primaryWeight returns the primary weight at the start of b.
func primaryWeight(b []byte) int {
	if b[0]&0x80 != 0 {
		return int(b[0]&0x7f)<<16 | int(b[1])<<8 | int(b[2])
	}
	return int(b[0])<<8 | int(b[1])
}

// appendPrimaries appends primary weights.
func (e *encoding) appendPrimaries(dst, from []byte) []byte {
	for ; len(from) > 0; from = from[primarySize(from):] {
		p := primaryWeight(from)
		if p >= 1<<15 {
			dst = append(dst, byte(e.top+p>>16), byte(p>>8), byte(p))
			continue
		}
		i, frequent := slices.BinarySearch(e.frequent, p)
		switch {
		case frequent:
			dst = append(dst, byte(firstLead+2*i+1))
		case i < len(e.frequent):
			dst = append(dst, byte(firstLead+2*i), byte(p>>8), byte(p))
		default:
			dst = append(dst, byte(e.high+p>>8), byte(p))
		}
	}
	return dst
}

// appendSecondaries appends secondary weights and returns the end of dst without the common ones at the end.
func appendSecondaries(dst, from []byte) (_ []byte, end int) {
	end = len(dst)
	for ; len(from) > 0; from = from[2:] {
		s := int(from[0])<<8 | int(from[1])
		if s < twoBytes {
			dst = append(dst, byte(s))
		} else {
			dst = append(dst, twoBytes|byte(s>>8), byte(s))
		}
		if s != commonSecondary {
			end = len(dst)
		}
	}
	return dst, end
}

// appendTertiaries appends tertiary weights and returns the end of dst without the common ones at the end.
func appendTertiaries(dst, from []byte) (_ []byte, end int) {
	end = len(dst)
	for _, t := range from {
		dst = append(dst, t)
		if t != commonTertiary {
			end = len(dst)
		}
	}
	return dst, end
}
