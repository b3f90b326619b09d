package http1

import (
	"errors"
	"strconv"
)

// Writer writes the body of a streamed answer. It buffers blocks of 16 KiB; Flush
// sends what is buffered. A write fails once the client accepts no bytes for
// WriteTimeout or has disconnected.
type Writer struct {
	conn *conn
	mode writerMode
	left int64  // of a body of known length
	held []byte // the head at first, and what was not sent yet
	err  error
	sent bool // some bytes were sent, or may have been
	waiter
}

type writerMode uint8

const (
	writeChunked writerMode = iota
	writeLength
	writePlain // to the connection's end, or framed by the handler
)

var errTooLong = errors.New("the stream wrote more bytes than the answer's length")

var lineEnd = []byte("\r\n")

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.mode == writeLength {
		if int64(len(p)) > w.left {
			w.err = errTooLong
			return 0, w.err
		}
		w.left -= int64(len(p))
	}
	n := len(p)
	if len(p) == 0 {
		return 0, nil
	}
	if w.mode == writeChunked {
		w.held = strconv.AppendInt(w.held, int64(len(p)), 16)
		w.held = append(w.held, "\r\n"...)
	}
	var end []byte
	if w.mode == writeChunked {
		end = lineEnd
	}
	if len(w.held)+len(p) > streamBlock {
		w.sent = true
		if w.err = w.conn.writeAll(w.held, p, end); w.err != nil {
			return 0, w.err
		}
		w.held = w.held[:0]
		return n, nil
	}
	w.held = append(append(w.held, p...), end...)
	return n, nil
}

// WriteString implements io.StringWriter.
func (w *Writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush sends what is buffered, the first time with the head.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.held) > 0 {
		w.sent = true
		w.err = w.conn.write(w.held)
		w.held = w.held[:0]
	}
	return w.err
}

// finish ends the body.
func (w *Writer) finish() error {
	if w.err == nil && w.mode == writeLength && w.left > 0 {
		w.err = errors.New("the stream wrote fewer bytes than the answer's length")
	}
	if w.err == nil && w.mode == writeChunked {
		w.held = append(w.held, "0\r\n\r\n"...)
	}
	err := w.Flush()
	w.conn.head = w.held // the buffer is the connection's
	return err
}
