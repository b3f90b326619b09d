package syntax

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plainText scans '...', in which only the quote is special: two of them stand for one.
func (s *scanner) plainText() token {
	start := s.off
	end := start + 1
	for {
		quote := strings.IndexByte(s.text[end:], '\'')
		if quote < 0 {
			return s.unclosed(start)
		}
		end += quote + 1
		if end == len(s.text) || s.text[end] != '\'' {
			break
		}
		end++
	}
	if bad := invalidAt(s.text[start:end]); bad >= 0 {
		return s.invalid(start + bad)
	}
	s.off = end
	return s.token(kindText, start)
}

// jsonText scans "...", with JSON's escapes.
func (s *scanner) jsonText() token {
	start := s.off
	i := start + 1
	for {
		if i >= len(s.text) {
			return s.unclosed(start)
		}
		c := s.text[i]
		if c == '"' {
			break
		}
		if c < ' ' {
			return s.fail(i, `a control character in a text between " is not escaped, found %U; write \u%04x`, rune(c), c)
		}
		if c != '\\' {
			i++
			continue
		}
		size, why := escape(s.text[i:])
		if why != "" {
			if bad := invalidAt(s.text[start:i]); bad >= 0 {
				return s.invalid(start + bad)
			}
			return s.fail(i, "%s", why)
		}
		i += size
	}
	if bad := invalidAt(s.text[start : i+1]); bad >= 0 {
		return s.invalid(start + bad)
	}
	s.off = i + 1
	return s.token(kindText, start)
}

// unclosed makes the bad token for a text without a closing quote, or for the first byte in it that is not UTF-8.
func (s *scanner) unclosed(start int) token {
	if bad := invalidAt(s.text[start:]); bad >= 0 {
		return s.invalid(start + bad)
	}
	return s.fail(start, "the text that begins here has no closing %c", s.text[start])
}

// invalidAt returns the offset of the first byte that is not UTF-8, or -1 if all are.
func invalidAt(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// escape returns the size of the escape at the start of s; why is what is wrong with it.
func escape(s string) (size int, why string) {
	if len(s) < 2 {
		return 1, "" // the error is that the text has no end
	}
	if strings.IndexByte(`"\/bfnrt`, s[1]) >= 0 {
		return 2, ""
	}
	if s[1] != 'u' {
		return 0, `the escapes of a text are those of JSON: \" \\ \/ \b \f \n \r \t \uXXXX`
	}
	r, ok := hex4(s)
	switch {
	case !ok:
		return 0, `\u: expected four hexadecimal digits`
	case !utf16.IsSurrogate(r):
		return 6, ""
	}
	if low, ok := hex4(s[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
		return 12, ""
	}
	return 0, `half of a surrogate pair is no character; write both halves`
}

// hex4 reads \uXXXX at the start of s.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// appendText appends the value of a scanned text token.
func appendText(dst []byte, token string) []byte {
	body := token[1 : len(token)-1]
	if token[0] == '\'' {
		for {
			i := strings.IndexByte(body, '\'')
			if i < 0 {
				return append(dst, body...)
			}
			dst = append(dst, body[:i+1]...)
			body = body[i+2:]
		}
	}
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 {
			return append(dst, body...)
		}
		dst = append(dst, body[:i]...)
		size := 2
		switch c := body[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			size = 6
			r, _ := hex4(body[i:])
			if utf16.IsSurrogate(r) {
				low, _ := hex4(body[i+6:])
				r, size = utf16.DecodeRune(r, low), 12
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		body = body[i+size:]
	}
}
