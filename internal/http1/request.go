package http1

import (
	"bytes"
	"context"
	"net/netip"
)

// Request is one parsed request. It and all its byte slices are valid until the
// handler returns, or the Stream of its answer does.
type Request struct {
	Method  string
	Target  []byte   // origin-form, as received; an absolute-form is reduced to it; "*" of OPTIONS
	Path    []byte   // the target up to its first question mark, escapes untouched
	Query   []byte   // the target after it
	Minor   int      // HTTP/1.Minor: 0, or 1 for 1.1 and anything later
	Headers []Header // without those that Connection names, which are about the connection
	Head    []byte   // the raw head, blank line included
	Host    []byte
	Remote  netip.AddrPort // the zero value if the client has no address
	ID      []byte         // X-Request-Id, of the client or generated
	MadeID  bool           // the ID was generated: the client sent no valid one

	length  int64 // of the body
	chunked bool
	close   bool // the client asked for it, or speaks HTTP/1.0
	expects bool // the client expects 100-continue, and none was sent yet
	body    body
	whole   []byte // what Body read
	taken   bool   // Body has read it
	ctx     peer
	conn    *conn
}

// Get returns the value of the first header of that name in any case, nil if
// there is none.
func (r *Request) Get(name string) []byte { return get(r.Headers, name) }

// Length returns the body's length in bytes, -1 if it is chunked.
func (r *Request) Length() int64 {
	if r.chunked {
		return -1
	}
	return r.length
}

// HasBody reports whether a body follows the head, an empty chunked one
// included.
func (r *Request) HasBody() bool { return r.chunked || r.length > 0 }

// KeepAlive reports whether the connection is kept after this request. An Answer
// with Raw bytes must send the matching Connection header itself.
func (r *Request) KeepAlive() bool {
	return !r.close && !r.conn.server.draining.Load() && r.discardable()
}

// Context returns the request's context: its Err is set once the client has reset
// or closed its connection, or the server stops without waiting. Err is cheap;
// calling it for long, or Done, starts a goroutine that watches the client.
//
// A client that only closes its sending half still gets its answer, except while
// the Stream of an answer without a length runs: then it counts as disconnected.
func (r *Request) Context() context.Context { return &r.ctx }

// read fills the request from a parsed head.
func (r *Request) read(p *headParser, head []byte) *Error {
	r.Head, r.Headers = head, p.headers
	if err := r.readLine(p.first); err != nil {
		return err
	}
	return r.readFields()
}

// readLine reads "METHOD target HTTP/1.x".
func (r *Request) readLine(line []byte) *Error {
	i := 0
	for i < len(line) && token[line[i]] {
		i++
	}
	if i == 0 || i == len(line) || line[i] != ' ' {
		return refuse(400, "the first line is not a request: expected method, target and version, separated by one space")
	}
	r.Method = method(line[:i])
	rest := line[i+1:]
	i = bytes.IndexByte(rest, ' ')
	if i < 0 {
		return refuse(400, "the request line has no version")
	}
	target, version := rest[:i:i], rest[i+1:]
	if i == 0 {
		return refuse(400, "the request line has no target after one space")
	}
	if len(version) != 8 || string(version[:5]) != "HTTP/" || version[6] != '.' ||
		version[5] < '0' || version[5] > '9' || version[7] < '0' || version[7] > '9' {
		return refuse(400, "the request line does not end in a version of HTTP")
	}
	if version[5] != '1' {
		return refuse(505, "HTTP/%c is not supported: expected HTTP/1.1", version[5])
	}
	r.Minor = 1
	if version[7] == '0' {
		r.Minor, r.close = 0, true
	}
	return r.readTarget(target)
}

// method returns a method as a string, the known ones without an allocation.
func method(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "PATCH":
		return "PATCH"
	case "DELETE":
		return "DELETE"
	case "PUT":
		return "PUT"
	case "HEAD":
		return "HEAD"
	case "OPTIONS":
		return "OPTIONS"
	}
	return string(b)
}

func (r *Request) readTarget(target []byte) *Error {
	for _, c := range target {
		if c <= ' ' || c == 0x7f {
			return refuse(400, "the target has a blank or a control character")
		}
	}
	if target[0] != '/' {
		if string(target) == "*" && r.Method == "OPTIONS" {
			r.Target, r.Path, r.Query = target, target, nil
			return nil
		}
		var err *Error
		if target, err = reduce(target); err != nil {
			return err
		}
	}
	r.Target, r.Path, r.Query = target, target, nil
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		r.Path, r.Query = target[:i:i], target[i+1:]
	}
	if dotted(r.Path) {
		return refuse(400, "a segment of the path is . or ..")
	}
	return nil
}

// reduce removes scheme and host from an absolute-form target.
func reduce(target []byte) ([]byte, *Error) {
	bad := refuse(400, "the target is neither a path nor an http URL")
	scheme := bytes.Index(target, []byte("://"))
	if scheme < 0 || !foldEqual(target[:scheme], "http") && !foldEqual(target[:scheme], "https") {
		return nil, bad
	}
	rest := target[scheme+3:]
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if end == 0 || !validHost(rest[:end]) {
		return nil, bad
	}
	rest = rest[end:]
	if len(rest) == 0 {
		return root, nil
	}
	if rest[0] != '/' {
		return append([]byte("/"), rest...), nil
	}
	return rest, nil
}

// dotted reports whether a segment of the path is "." or "..", plain or with
// dots written as %2e.
func dotted(path []byte) bool {
	if bytes.IndexByte(path, '.') < 0 && bytes.IndexByte(path, '%') < 0 {
		return false
	}
	for len(path) > 0 {
		segment := path
		if i := bytes.IndexByte(path, '/'); i >= 0 {
			segment, path = path[:i], path[i+1:]
		} else {
			path = nil
		}
		dots := 0
		for len(segment) > 0 {
			switch {
			case segment[0] == '.':
				segment = segment[1:]
			case len(segment) >= 3 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e':
				segment = segment[3:]
			default:
				dots, segment = -3, nil
			}
			dots++
		}
		if dots == 1 || dots == 2 {
			return true
		}
	}
	return false
}

// readFields checks the fields that the loop itself uses.
func (r *Request) readFields() *Error {
	var host, length, coding bool
	var hop connection
	for i := range r.Headers {
		h := &r.Headers[i]
		switch len(h.Name) {
		case len("host"):
			if !foldEqual(h.Name, "host") {
				continue
			}
			if host {
				return refuse(400, "the request has more than one Host")
			}
			if !validHost(h.Value) {
				return refuse(400, "invalid Host: %q", clip(h.Value))
			}
			host, r.Host = true, h.Value
		case len("expect"):
			if !foldEqual(h.Name, "expect") || r.Minor == 0 {
				continue
			}
			if !foldEqual(h.Value, "100-continue") {
				return refuse(417, "the only supported expectation is 100-continue, got %q", clip(h.Value))
			}
			r.expects = true
		case len("connection"):
			if foldEqual(h.Name, "connection") {
				hop.read(h.Value)
			}
		case len("content-length"):
			if !foldEqual(h.Name, "content-length") {
				continue
			}
			if length {
				return refuse(400, "the request has more than one Content-Length")
			}
			n, ok := digits(h.Value)
			if !ok {
				return refuse(400, "the Content-Length is not a number of bytes: %q", clip(h.Value))
			}
			length, r.length = true, n
		case len("transfer-encoding"):
			if !foldEqual(h.Name, "transfer-encoding") {
				continue
			}
			if r.Minor == 0 {
				return refuse(400, "HTTP/1.0 has no Transfer-Encoding")
			}
			if coding {
				return refuse(400, "the request has more than one Transfer-Encoding")
			}
			if !foldEqual(h.Value, "chunked") {
				return refuse(501, "the only supported transfer coding is chunked, got %q", clip(h.Value))
			}
			coding, r.chunked = true, true
		}
	}
	if length && coding {
		return refuse(400, "the request has both a Content-Length and a chunked Transfer-Encoding")
	}
	if !host && r.Minor > 0 {
		return refuse(400, "the request has no Host")
	}
	r.close = r.close || hop.close
	if hop.names {
		var wrong string
		if r.Headers, wrong = cutNamed(r.Headers); wrong != "" {
			return refuse(400, "%s", wrong)
		}
	}
	r.ID = requestID(r.Headers)
	return nil
}

// requestID returns the first valid X-Request-Id, nil if there is none.
func requestID(headers []Header) []byte {
	for i := range headers {
		if h := &headers[i]; h.Is("x-request-id") && validID(h.Value) {
			return h.Value
		}
	}
	return nil
}

// validHost reports whether all bytes are allowed in a host and port. A client
// whose target has no host sends an empty one.
func validHost(b []byte) bool {
	for _, c := range b {
		if !token[c] && c != ':' && c != '[' && c != ']' && c != '(' && c != ')' && c != ',' && c != ';' && c != '=' {
			return false
		}
		if c == '#' || c == '^' || c == '`' || c == '|' {
			return false
		}
	}
	return true
}

// validID reports whether an id may be echoed and logged: visible ASCII without
// quotes and backslashes.
func validID(b []byte) bool {
	if len(b) == 0 || len(b) > MaxRequestID {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
