package http1

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// Answer is a handler's answer. Its slices must not change until the answer is
// written; they may be slices of the Request.
type Answer struct {
	Status  int      // 200 to 599; anything else without Raw is answered 500
	Headers []Header // without Date, Content-Length, Transfer-Encoding, Connection and X-Request-Id, which the loop writes
	Body    []byte

	// Stream writes the body: chunked, or exactly Length bytes if Length is
	// over zero. An error, or a Length not reached, ends the connection without
	// the end of the body; if nothing of the answer has been sent yet, the
	// answer is a 500, or with Raw a 502. It runs on the connection's goroutine
	// after Serve has returned, and not at all for a HEAD.
	Stream func(w *Writer) error
	Length int64

	// Apart excludes the connection from Server.MaxConnections while the Stream runs: the handler bounds the number of
	// such streams.
	Apart bool

	// Raw is a complete head and body, or a head whose body Stream writes, sent
	// as it is: the loop adds nothing and frames nothing. It begins with
	// "HTTP/1.", and the handler heeds HEAD and Request.KeepAlive. A Stream with
	// it always runs; Length only shows whether the body has one.
	Raw []byte

	// Switch takes over the connection after the head, for another protocol: Status is 101, and Headers name the protocol. It
	// runs on the connection's goroutine; the connection ends when it returns. Shutdown waits for that, so the handler's owner
	// ends it first.
	Switch func(conn net.Conn)

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

// appendHead appends the head of an answer written at a time. Its body has
// length bytes, or is chunked if length is negative.
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
