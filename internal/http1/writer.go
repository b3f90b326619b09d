package http1

import (
	"errors"
	"strconv"
)

// Writer takes the body of a streamed answer. What is written is gathered in
// blocks of 16 KiB; Flush sends what has been. A write fails once the client
// takes nothing for WriteTimeout or is gone.
type Writer struct {
	conn *conn
	mode writerMode
	left int64  // of a body of known length
	held []byte // the head at first, and what has not gone out yet
	err  error
	sent bool // something has gone out, or may have
	waiter
}

type writerMode uint8

const (
	writeChunked writerMode = iota
	writeLength
	writePlain // to the connection's end, or framed by the handler
)

var errTooLong = errors.New("more was written than the answer's length")

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

// Flush sends what has been gathered, the head with it the first time.
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
		w.err = errors.New("less was written than the answer's length")
	}
	if w.err == nil && w.mode == writeChunked {
		w.held = append(w.held, "0\r\n\r\n"...)
	}
	err := w.Flush()
	w.conn.head = w.held // the buffer is the connection's
	return err
}
