package node

import (
	"bytes"
	"strconv"
)

// cursor is the last change that a client has seen, and its history if the client sent one. As text it is
// `<seq>@<history>`, which is the id of a stream's events, or the number alone.
type cursor struct {
	seq     uint64
	history []byte
	given   bool
}

// parseCursor parses a cursor; what names it in errors. The database checks its history.
func parseCursor(what string, text []byte) (cursor, error) {
	number, history, _ := bytes.Cut(text, at)
	seq, err := parseChange(what, number)
	return cursor{seq: seq, history: history, given: true}, err
}

var at = []byte("@")

// appendCursor appends a cursor in the form that parseCursor parses.
func appendCursor(dst []byte, seq uint64, history string) []byte {
	return append(append(strconv.AppendUint(dst, seq, 10), '@'), history...)
}

// readLastEvent reads the Last-Event-ID of a client that reconnects. It has precedence over the since of its URL, because a
// browser sends the same URL every time.
func (c *call) readLastEvent() (err error) {
	if text := c.request.Get("Last-Event-ID"); len(text) > 0 {
		c.cursor, err = parseCursor("Last-Event-ID", text)
	}
	if c.cursor.given && len(c.cursor.history) == 0 && !c.asked.named {
		c.cursor.history = c.asked.history
	}
	return err
}
