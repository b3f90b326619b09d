package edge

import (
	"strings"

	"fenec/internal/http1"
)

// Methods is a set of HTTP methods.
type Methods uint8

// The methods that paths have. OPTIONS belongs to every path.
const (
	Get Methods = 1 << iota // and HEAD
	Post
	Put
	Patch
	Delete

	AllMethods = Get | Post | Put | Patch | Delete
)

// MethodOf returns the method of a name, or none.
func MethodOf(name string) Methods {
	switch name {
	case "GET", "HEAD":
		return Get
	case "POST":
		return Post
	case "PUT":
		return Put
	case "PATCH":
		return Patch
	case "DELETE":
		return Delete
	}
	return 0
}

// Allow returns the set as an Allow header.
func (m Methods) Allow() http1.Header {
	names := make([]string, 0, 7)
	for _, one := range []struct {
		method Methods
		names  string
	}{{Get, "GET, HEAD"}, {Post, "POST"}, {Put, "PUT"}, {Patch, "PATCH"}, {Delete, "DELETE"}} {
		if m&one.method != 0 {
			names = append(names, one.names)
		}
	}
	names = append(names, "OPTIONS")
	return http1.Header{Name: []byte("Allow"), Value: []byte(strings.Join(names, ", "))}
}

// Options returns the answer to OPTIONS of a path with these methods.
func (m Methods) Options() http1.Answer {
	return http1.Answer{Status: 204, Headers: []http1.Header{m.Allow()}}
}

// Check answers OPTIONS, and refuses a method that is not in the set. done is false if the request is to be served.
func (m Methods) Check(r *http1.Request) (a http1.Answer, done bool) {
	if r.Method == "OPTIONS" {
		return m.Options(), true
	}
	if m&MethodOf(r.Method) != 0 {
		return http1.Answer{}, false
	}
	allow := m.Allow()
	a = http1.ErrorAnswer(405, r.Method+" is not a method of this path: it accepts "+string(allow.Value))
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], allow)
	return a, true
}
