package rest

import (
	"bytes"
	"unicode/utf8"

	"fenec/engine/fail"
)

// Unescape decodes the percent escapes of a part of a target; in a query a plus is a space. It returns raw itself if there
// are none, else bytes appended to dst, and the grown dst. The result is UTF-8 without a NUL.
func Unescape(dst, raw []byte, query bool) (text, grown []byte, err error) {
	text = raw
	if bytes.IndexByte(raw, '%') >= 0 || query && bytes.IndexByte(raw, '+') >= 0 {
		start := len(dst)
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; {
			case c == '+' && query:
				dst = append(dst, ' ')
			case c != '%':
				dst = append(dst, c)
			default:
				if i+2 >= len(raw) || !isHex(raw[i+1]) || !isHex(raw[i+2]) {
					return nil, dst, fail.New(fail.Invalid, "a percent sign in the target begins no escape: expected %%25 for the sign itself")
				}
				dst = append(dst, unhex(raw[i+1])<<4|unhex(raw[i+2]))
				i += 2
			}
		}
		text = dst[start:len(dst):len(dst)]
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, dst, fail.New(fail.Invalid, "there is a NUL, %%00, in the target")
	}
	if !utf8.Valid(text) {
		return nil, dst, fail.New(fail.Invalid, "the target is not UTF-8 once its escapes are read")
	}
	return text, dst, nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
