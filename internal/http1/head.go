package http1

import (
	"encoding/binary"
)

// Header is one field line as received: the name keeps its case, the value is
// without the blanks around it.
type Header struct{ Name, Value []byte }

// Is reports whether the header has that name in any case. The argument is in lower case.
func (h *Header) Is(name string) bool { return foldEqual(h.Name, name) }

// headParser parses the lines of a head in one pass. It can stop at any byte and
// continue once there are more. Meanwhile the parsed bytes must not move; if they
// do, call reset.
type headParser struct {
	pos     int // the next byte to parse
	line    int // where the current line begins
	colon   int // the end of the current line's field name, 0 before it is known
	first   []byte
	headers []Header
}

func (p *headParser) reset() {
	p.pos, p.line, p.colon, p.first = 0, 0, 0, nil
	p.headers = p.headers[:0]
}

// token marks the bytes of a method or a field name (RFC 9110, 5.6.2).
var token = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// parse continues in b, which begins where the head does. It returns the head's
// length, blank line included, or 0 if more bytes are needed.
func (p *headParser) parse(b []byte) (int, *Error) {
	for {
		if p.first != nil && p.colon == 0 {
			end, err := p.name(b)
			if end > 0 || err != nil {
				return end, err
			}
			if p.colon == 0 {
				return 0, nil
			}
		}
		p.pos = skipText(b, p.pos)
		if p.pos == len(b) {
			return 0, nil
		}
		if c := b[p.pos]; c != '\r' {
			if c == '\n' {
				return 0, refuse(400, "a line of the head ends in a bare line feed")
			}
			return 0, refuse(400, "the head has a control character: 0x%02x", c)
		}
		if p.pos+1 == len(b) {
			return 0, nil
		}
		if b[p.pos+1] != '\n' {
			return 0, refuse(400, "the head has a bare carriage return")
		}
		if p.first == nil {
			if p.pos == p.line {
				return 0, refuse(400, "the first line is empty")
			}
			p.first = b[p.line:p.pos:p.pos]
		} else {
			p.headers = append(p.headers, Header{Name: b[p.line:p.colon:p.colon], Value: trim(b[p.colon+1 : p.pos])})
		}
		p.pos += 2
		p.line, p.colon = p.pos, 0
	}
}

// name reads a field's name up to its colon, or the blank line that ends the
// head: then it returns the head's length.
func (p *headParser) name(b []byte) (int, *Error) {
	i := p.pos
	for i < len(b) && token[b[i]] {
		i++
	}
	p.pos = i
	if i == len(b) {
		return 0, nil
	}
	switch c := b[i]; {
	case c == ':' && i > p.line:
		p.colon, p.pos = i, i+1
		return 0, nil
	case c == '\r' && i == p.line:
		if i+1 == len(b) {
			return 0, nil
		}
		if b[i+1] != '\n' {
			return 0, refuse(400, "the head has a bare carriage return")
		}
		return i + 2, nil
	case c == ':':
		return 0, refuse(400, "a header has no name")
	case (c == ' ' || c == '\t') && i == p.line:
		return 0, refuse(400, "a header line begins with a blank: folded headers are not supported")
	case c == ' ' || c == '\t':
		return 0, refuse(400, "a blank in or after the name of header %q", clip(b[p.line:i]))
	case c == '\r':
		return 0, refuse(400, "a header line has no colon: %q", clip(b[p.line:i]))
	case c == '\n':
		return 0, refuse(400, "a line of the head ends in a bare line feed")
	default:
		return 0, refuse(400, "a header's name has an invalid byte: 0x%02x", c)
	}
}

// skipText returns the index of the first byte from i on that is not text: a
// control character other than tab, or DEL. It checks eight bytes at a time.
func skipText(b []byte, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		control := (x - 0x20*low) & ^x & high // a byte below 0x20 borrows
		del := x ^ 0x7f*low
		del = (del - low) & ^del & high
		if control|del != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 && c != '\t' || c == 0x7f {
			break
		}
	}
	return i
}

// trim removes the blanks at both ends of a field's value.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b[:len(b):len(b)]
}

// foldEqual compares a name or a keyword with a lower-case one, ignoring case.
func foldEqual(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := 0; i < len(b); i++ {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// foldEqualAny is foldEqual with a name of any case.
func foldEqualAny[T string | []byte](b []byte, name T) bool {
	if len(b) != len(name) {
		return false
	}
	for i := 0; i < len(b); i++ {
		c, d := b[i], name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if 'A' <= d && d <= 'Z' {
			d += 'a' - 'A'
		}
		if c != d {
			return false
		}
	}
	return true
}

// cutList cuts the first member off a comma-separated list.
func cutList(list []byte) (member, rest []byte, more bool) {
	for i, c := range list {
		if c == ',' {
			return trim(list[:i]), list[i+1:], true
		}
	}
	return trim(list), nil, false
}

// digits parses a non-negative decimal number.
func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
