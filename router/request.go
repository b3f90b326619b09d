package router

import (
	"bytes"
	"strconv"
	"time"

	"fenec/internal/edge"
	"fenec/internal/http1"
)

// appendRequest appends the head of a request to a node: the line and the headers as they came, without those that are not
// forwarded, a length if the body came in chunks, the request's id if the client sent none, and the router's mark. What is
// added fits http1.RouterRoom.
func appendRequest(dst []byte, r *http1.Request, hops bool, l *link, body int) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, ' ')
	dst = append(dst, r.Target...)
	dst = append(dst, " HTTP/1.1\r\n"...)
	dst = appendLines(dst, r.Head, r.Headers, hops)
	if r.Get("Host") == nil { // HTTP/1.0 allows requests without one, 1.1 does not
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

// repeatable reports whether running a request twice is harmless, so that one whose answer was lost may be sent again.
func repeatable(r *http1.Request) bool {
	switch r.Method {
	case "GET", "HEAD", "OPTIONS":
		return true
	}
	return len(r.Get("Idempotency-Key")) > 0
}

// waits returns how long a request asks its node to hold it: Fenec-Wait, edge.AfterWait for a Fenec-After without one, or
// wait in the query. A wait that cannot be parsed is 0; the node reports the error.
func waits(r *http1.Request) time.Duration {
	text := r.Get("Fenec-Wait")
	wait, _ := edge.ParseWait(text)
	if text == nil && r.Get("Fenec-After") != nil {
		wait = edge.AfterWait
	}
	for query := r.Query; len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if value, ok := bytes.CutPrefix(pair, []byte("wait=")); ok {
			longer, _ := edge.ParseWait(value)
			wait = max(wait, longer)
		}
	}
	return wait
}
