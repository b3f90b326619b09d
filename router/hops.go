package router

import (
	"bytes"

	"fenec/internal/http1"
)

// maxNamed bounds the headers that a request's Connection may name.
const maxNamed = 64

// hops judges which headers end at the router: those that are about one connection, and those that only a router may
// send. It is made for one head.
type hops struct {
	any       bool   // some header of the head is dropped
	names     bool   // Connection names headers besides keep-alive, close and upgrade
	forbidden string // a header that Connection names and must not
	tooMany   bool
}

// scan looks through the headers of a head once.
func (h *hops) scan(headers []http1.Header) {
	named := 0
	for i := range headers {
		name := headers[i].Name
		if !fixed(name) {
			continue
		}
		h.any = true
		if !fold(name, "connection") {
			continue
		}
		for member, rest := cutMember(headers[i].Value); member != nil; member, rest = cutMember(rest) {
			switch {
			case fold(member, "keep-alive"), fold(member, "close"), fold(member, "upgrade"), len(member) == 0:
			case fold(member, "host"), fold(member, "content-length"), fold(member, "authorization"):
				h.forbidden = string(member)
			default:
				h.names = true
				named++
			}
		}
	}
	h.tooMany = named > maxNamed
}

// fixed reports whether a header of that name never goes on, whatever Connection says.
func fixed(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	switch name[0] | 0x20 {
	case 'c':
		return fold(name, "connection")
	case 'k':
		return fold(name, "keep-alive")
	case 't':
		return fold(name, "te") || fold(name, "trailer") || fold(name, "transfer-encoding")
	case 'u':
		return fold(name, "upgrade")
	case 'e':
		return fold(name, "expect")
	case 'p':
		return len(name) >= 6 && fold(name[:6], "proxy-")
	case 'f':
		return len(name) >= 12 && fold(name[:12], "fenec-router")
	}
	return false
}

// drops reports whether a header of the scanned head stays behind.
func (h *hops) drops(name []byte, headers []http1.Header) bool {
	if fixed(name) {
		return true
	}
	if !h.names {
		return false
	}
	for i := range headers {
		if !fold(headers[i].Name, "connection") {
			continue
		}
		for member, rest := cutMember(headers[i].Value); member != nil; member, rest = cutMember(rest) {
			if bytes.EqualFold(member, name) {
				return true
			}
		}
	}
	return false
}

// appendLines appends those header lines of a head that go on, byte for byte and in their order. The head is the whole
// one, its first line and the blank one included; neither is appended.
func (h *hops) appendLines(dst, head []byte, headers []http1.Header) []byte {
	lines := head[bytes.IndexByte(head, '\n')+1:]
	if !h.any {
		return append(dst, lines[:len(lines)-2]...)
	}
	begin, at := 0, 0
	for i := range headers {
		end := at + bytes.IndexByte(lines[at:], '\n') + 1
		if h.drops(headers[i].Name, headers) {
			dst = append(dst, lines[begin:at]...)
			begin = end
		}
		at = end
	}
	return append(dst, lines[begin:at]...)
}

// cutMember takes the first member off a comma-separated list; a nil member is the end of it.
func cutMember(list []byte) (member, rest []byte) {
	if list == nil {
		return nil, nil
	}
	member, rest, found := bytes.Cut(list, []byte{','})
	if !found {
		rest = nil
	}
	member = bytes.Trim(member, " \t")
	if member == nil {
		member = []byte{}
	}
	return member, rest
}

// fold compares a name with a lower-case one, ignoring ASCII case.
func fold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range name {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
