package node

import (
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	paramSize = int64(unsafe.Sizeof(doc.Value{}))
	// paramChunk is how many parameters of a batch's statements share an allocation; a chunk with fewer than fewParams left
	// is not used for another statement.
	paramChunk = 1024
	fewParams  = 8
)

// beginParams begins the parameters of one more statement of a batch. Those of earlier statements do not change.
func (c *call) beginParams() error {
	c.split = true
	if c.params = c.params[len(c.params):]; cap(c.params) >= fewParams {
		return nil
	}
	c.params = make([]doc.Value, 0, paramChunk)
	return c.holdParsed(paramChunk * paramSize)
}

// decodeParams reads the list of a statement's parameters. They may take many times the bytes of their text, so they are
// counted while they are parsed.
func (c *call) decodeParams(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		return errEnvelope()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		start, room, params := len(c.values), cap(c.values), cap(c.params)
		encoded, err := doc.ParseDocuments(c.values, value)
		if err != nil {
			return err
		}
		c.values = encoded
		c.param(doc.Raw(encoded[start:len(encoded):len(encoded)]).Value())
		if cap(c.values) == room && cap(c.params) == params {
			continue
		}
		grown := int64(cap(c.params)-params) * paramSize
		if cap(c.values) != room { // earlier parameters still use the old buffer
			grown += int64(cap(c.values))
		}
		if err := c.holdParsed(grown); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// holdParsed counts n more bytes of parsed parameters, which the request holds until it ends. It waits for room.
func (c *call) holdParsed(n int64) error {
	c.parsed += n
	more := c.parsed - c.parsedHeld
	if more <= query.Uncounted {
		return nil
	}
	answers := c.node.budget.answers
	if c.parsed > answers.Max() {
		return fail.New(fail.TooLarge, "the parameters take more than the %d MiB of memory for statements and their answers: send fewer at once", answers.Max()>>20)
	}
	if !answers.Take(more, c.parsedHeld) && !answers.Wait(more, c.parsedHeld, roomWait, c.done()) {
		return errNoRoom()
	}
	c.request.Hold(answers, more)
	c.parsedHeld += more
	c.account.Most = min(c.account.Most, answers.Max()-c.parsedHeld) // a statement that needs more would wait for itself
	return nil
}
