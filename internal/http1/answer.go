package http1

import (
	"net/http"
	"strconv"
	"time"
)

// Answer is what a handler answers. Its slices must stay as they are until the
// answer is written; those taken from the Request may be part of it.
type Answer struct {
	Status  int      // 200 to 599; anything else without Raw is answered 500
	Headers []Header // beside Date, Content-Length, Transfer-Encoding, Connection and X-Request-Id, which the loop writes
	Body    []byte

	// Stream writes the body as it comes: chunked, or exactly Length bytes
	// where Length is over zero. An error, or a Length not reached, ends the
	// connection without the end of the body; where nothing of the answer has
	// gone out yet it becomes a 500, or a 502 beside Raw. It runs on the connection's
	// goroutine after Serve has returned, and not at all for a HEAD.
	Stream func(w *Writer) error
	Length int64

	// Apart has the connection not count among Server.MaxConnections while the Stream runs: whoever opens such streams
	// bounds how many there are.
	Apart bool

	// Raw is a complete head and body, or a head whose body Stream writes, sent
	// as it is: the loop adds nothing and frames nothing. It begins with
	// "HTTP/1.", and its author heeds HEAD and Request.KeepAlive. A Stream beside
	// it always runs; Length tells only whether the body has one.
	Raw []byte

	// Close ends the connection after the answer.
	Close bool
}

// statusLines are the first lines of answers, by status.
var statusLines = func() (t [600][]byte) {
	for status := range t {
		if text := http.StatusText(status); text != "" {
			t[status] = []byte("HTTP/1.1 " + strconv.Itoa(status) + " " + text + "\r\n")
		}
	}
	return t
}()

// bodiless reports whether answers of the status never have a body.
func bodiless(status int) bool { return status < 200 || status == 204 || status == 304 }

// appendHead appends the head of an answer whose body has that many bytes, or
// is chunked where length is negative, written at a time.
func appendHead(dst []byte, a *Answer, r *Request, length int64, now time.Time, closing bool) []byte {
	if a.Status > 0 && a.Status < len(statusLines) && statusLines[a.Status] != nil {
		dst = append(dst, statusLines[a.Status]...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
		dst = strconv.AppendInt(dst, int64(a.Status), 10)
		dst = append(dst, " \r\n"...)
	}
	for i := range a.Headers {
		dst = appendHeader(dst, &a.Headers[i])
	}
	switch {
	case bodiless(a.Status):
	case length < 0 && r.Minor > 0:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case length >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, length, 10)
		dst = append(dst, '\r', '\n')
	}
	dst = append(dst, "X-Request-Id: "...)
	dst = append(dst, r.ID...)
	dst = append(dst, "\r\nDate: "...)
	dst = append(dst, date(now)...)
	if closing {
		dst = append(dst, "\r\nConnection: close"...)
	}
	return append(dst, "\r\n\r\n"...)
}

// appendHeader writes a field line; a control character in a value, which could
// end the line, becomes a space.
func appendHeader(dst []byte, h *Header) []byte {
	dst = append(dst, h.Name...)
	dst = append(dst, ':', ' ')
	at := len(dst)
	dst = append(dst, h.Value...)
	for i := skipText(dst, at); i < len(dst); i = skipText(dst, i) {
		dst[i] = ' '
	}
	return append(dst, '\r', '\n')
}
