package node

import (
	"bytes"
	"strconv"
)

// cursor is the change a client has seen everything up to, and the history that is of where it said so. As text it is
// `<seq>@<history>`, which is what the events of a stream have as their id, or the number alone.
type cursor struct {
	seq     uint64
	history []byte
	given   bool
}

// parseCursor reads a cursor; what names it. Whether its history is one, the database says.
func parseCursor(what string, text []byte) (cursor, error) {
	number, history, _ := bytes.Cut(text, at)
	seq, err := parseChange(what, number)
	return cursor{seq: seq, history: history, given: true}, err
}

var at = []byte("@")

// appendCursor appends what parseCursor reads.
func appendCursor(dst []byte, seq uint64, history string) []byte {
	return append(append(strconv.AppendUint(dst, seq, 10), '@'), history...)
}

// readLastEvent reads the Last-Event-ID of a client that comes back, which goes before the since of its URL: a browser
// sends the same URL every time.
func (c *call) readLastEvent() (err error) {
	if text := c.request.Get("Last-Event-ID"); len(text) > 0 {
		c.cursor, err = parseCursor("Last-Event-ID", text)
	}
	if c.cursor.given && len(c.cursor.history) == 0 && !c.named {
		c.cursor.history = c.history
	}
	return err
}
