package router

import (
	"bytes"

	"fenec/internal/http1"
)

// The router does not forward headers that are about one connection or that only a router may send. Those that Connection
// names are among them; http1 leaves those out of a message's headers, so no decision depends on a header that the node
// does not get.

// hops reports whether a head has lines that are not forwarded. Headers that Connection names come with a Connection.
func hops(headers []http1.Header) bool {
	for i := range headers {
		if ends(headers[i].Name) {
			return true
		}
	}
	return false
}

// ends reports whether a header of that name is never forwarded.
func ends(name []byte) bool {
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

// appendLines appends the header lines of a head that are forwarded, byte for byte and in their order. The head includes
// its first line and the blank line; neither is appended. A line whose name is not among the headers is one that
// Connection names.
func appendLines(dst, head []byte, headers []http1.Header, hops bool) []byte {
	lines := head[bytes.IndexByte(head, '\n')+1 : len(head)-len("\r\n")]
	if !hops {
		return append(dst, lines...)
	}
	begin := 0 // of the lines that are forwarded and not appended yet
	for at := 0; at < len(lines); {
		end := at + bytes.IndexByte(lines[at:], '\n') + 1
		goes := false
		if len(headers) > 0 && begins(lines[at:], headers[0].Name) {
			goes = !ends(headers[0].Name)
			headers = headers[1:]
		}
		if !goes {
			dst = append(dst, lines[begin:at]...)
			begin = end
		}
		at = end
	}
	return append(dst, lines[begin:]...)
}

// begins reports whether a line is of the header of that name.
func begins(line, name []byte) bool { return bytes.HasPrefix(line, name) && line[len(name)] == ':' }

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
