package router

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"fenec/internal/http1"
)

// maxWait bounds what a request may add to the time a node is allowed to keep silent. Nodes cut longer waits.
const maxWait = 60 * time.Second

// afterWait is how long a node holds a read for its position where the request does not say.
const afterWait = 5 * time.Second

// appendRequest appends a request as a node gets it: the line and the headers as they came, less those that end here,
// a length where the body came in chunks, the request's id where the client gave it none, and the router's mark. What is
// added fits http1.RouterRoom. The body is not part of it.
func appendRequest(dst []byte, r *http1.Request, hops bool, l *link, body int) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, ' ')
	dst = append(dst, r.Target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	dst = appendLines(dst, r.Head, r.Headers, hops)
	if r.Get("Host") == nil { // HTTP/1.0 has requests without one, 1.1 has not
		dst = append(dst, "Host: "...)
		dst = append(dst, l.host...)
		dst = append(dst, '\r', '\n')
	}
	if r.Length() < 0 {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(body), 10)
		dst = append(dst, '\r', '\n')
	}
	if r.MadeID {
		dst = append(dst, "X-Request-Id: "...)
		dst = append(dst, r.ID...)
		dst = append(dst, '\r', '\n')
	}
	if client := r.Remote.Addr(); client.IsValid() {
		dst = append(dst, l.marks.line(client)...)
	}
	return append(dst, '\r', '\n')
}

// repeatable reports whether running a request twice is harmless, so that one whose answer was lost may go again.
func repeatable(r *http1.Request) bool {
	switch r.Method {
	case "GET", "HEAD", "OPTIONS":
		return true
	}
	return len(r.Get("Idempotency-Key")) > 0
}

// waits is how long a request asks its node to hold it: Fenec-Wait, what a Fenec-After without one waits, or wait in the
// query.
func waits(r *http1.Request) time.Duration {
	text := r.Get("Fenec-Wait")
	wait := parseWait(text)
	if text == nil && r.Get("Fenec-After") != nil {
		wait = afterWait
	}
	for query := r.Query; len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if value, ok := bytes.CutPrefix(pair, []byte("wait=")); ok {
			wait = max(wait, parseWait(value))
		}
	}
	return min(wait, maxWait)
}

// parseWait reads a wait: a number of milliseconds or one of Go's durations. What is neither is none; the node says so.
func parseWait(text []byte) time.Duration {
	if len(text) == 0 {
		return 0
	}
	if ms, err := strconv.ParseUint(string(text), 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(ms, uint64(maxWait.Milliseconds()))) * time.Millisecond
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return 0
	}
	return max(0, d)
}
