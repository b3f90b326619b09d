package http1

import "strconv"

// maxNamed bounds the headers that the Connection of a head may name. The head is compared with that many names, so one
// pass over it costs the same whatever Connection holds.
const maxNamed = 64

// connection is the content of a head's Connection headers.
type connection struct {
	close bool
	names bool // they name headers, besides options of the connection itself
}

// read adds one Connection header.
func (c *connection) read(value []byte) {
	for more := true; more; {
		var member []byte
		member, value, more = cutList(value)
		switch {
		case foldEqual(member, "close"):
			c.close = true
		case !isOption(member):
			c.names = true
		}
	}
}

// isOption reports whether a member of Connection is an option and not the name of a header to drop.
func isOption(member []byte) bool {
	return len(member) == 0 || foldEqual(member, "close") || foldEqual(member, "keep-alive") || foldEqual(member, "upgrade")
}

// cutNamed removes the headers that Connection names from a head's: they belong to the connection and not to the message,
// so no decision about the message may depend on them. It returns an error sentence if Connection names a header it must
// not name, or too many.
func cutNamed(headers []Header) (kept []Header, wrong string) {
	var room [maxNamed][]byte
	names := room[:0]
	for i := range headers {
		if !headers[i].Is("connection") {
			continue
		}
		list, more := headers[i].Value, true
		for more {
			var member []byte
			member, list, more = cutList(list)
			switch {
			case isOption(member):
			case foldEqual(member, "host"), foldEqual(member, "content-length"), foldEqual(member, "authorization"):
				return nil, "Connection names " + string(member) + ", which belongs to the message"
			case len(names) == maxNamed:
				return nil, "Connection names more than " + strconv.Itoa(maxNamed) + " headers"
			default:
				names = append(names, member)
			}
		}
	}
	kept = headers[:0]
	for i := range headers {
		if headers[i].Is("connection") || !isNamed(headers[i].Name, names) {
			kept = append(kept, headers[i])
		}
	}
	return kept, ""
}

func isNamed(name []byte, names [][]byte) bool {
	for _, n := range names {
		if foldEqualAny(name, n) {
			return true
		}
	}
	return false
}
