package tail

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// renderer formats a change as a readable line. Changes of one block have the same
// time, which is printed only on the first of consecutive lines.
type renderer struct {
	at int64
}

// change is one line of /_changes.
type change struct {
	Seq        uint64         `json:"seq"`
	At         int64          `json:"at"`
	Collection string         `json:"collection"`
	Op         string         `json:"op"`
	ID         int64          `json:"id"`
	Doc        jsontext.Value `json:"doc"`
}

const timeFormat = "15:04:05.000"

func (r *renderer) render(lines []byte) ([]byte, error) {
	var out []byte
	for line := range bytes.Lines(lines) {
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("invalid change in the response: %q", bytes.TrimSpace(line))
		}
		when := time.UnixMilli(c.At).Format(timeFormat)
		if c.At == r.at {
			when = ""
		}
		r.at = c.At
		what := c.Collection
		if c.Op == "put" || c.Op == "del" {
			what += "/" + strconv.FormatInt(c.ID, 10)
		}
		out = fmt.Appendf(out, "%-*s %8d  %-6s %s", len(timeFormat), when, c.Seq, visible(c.Op), visible(what))
		if c.Doc != nil {
			out = append(append(out, "  "...), visible(string(c.Doc))...)
		}
		out = append(out, '\n')
	}
	return out, nil
}

// visible returns text with characters escaped that would control a terminal or
// reverse the direction of the line.
func visible(text string) string {
	var out []byte
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		if out == nil && (unicode.IsPrint(c) && c != utf8.RuneError) {
			i += size
			continue
		}
		if out == nil {
			out = append(make([]byte, 0, len(text)+8), text[:i]...)
		}
		if unicode.IsPrint(c) && c != utf8.RuneError {
			out = append(out, text[i:i+size]...)
		} else {
			out = fmt.Appendf(out, `\u%04x`, c)
		}
		i += size
	}
	if out == nil {
		return text
	}
	return string(out)
}
