package node

import (
	"unsafe"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"

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
	if c.Params = c.Params[len(c.Params):]; cap(c.Params) >= fewParams {
		return nil
	}
	c.Params = make([]doc.Value, 0, paramChunk)
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
		parsed, err := c.parse(value)
		if err != nil {
			return err
		}
		params := cap(c.Params)
		c.Param(parsed.Value())
		if err := c.holdParsed(int64(cap(c.Params)-params) * paramSize); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// parse reads text as one JSON value, which may contain documents, and counts what that takes.
func (c *call) parse(text []byte) (doc.Raw, error) {
	start := len(c.Values)
	counted := int64(0) // of a buffer that this value made grow: values before it still use the old one
	encoded, err := doc.ParseDocumentsWithin(c.Values, text, func(bytes int) error {
		grown := int64(bytes) - counted
		counted = int64(bytes)
		return c.holdParsed(grown)
	})
	if err != nil {
		return nil, err
	}
	c.Values = encoded
	return doc.Raw(encoded[start:len(encoded):len(encoded)]), nil
}

// holdParsed counts n more bytes of parsed values, which the request holds until it ends. It waits for room.
func (c *call) holdParsed(n int64) error {
	c.parsed += n
	more := c.parsed - c.parsedHeld
	if more <= engine.Uncounted {
		return nil
	}
	answers := c.node.budget.answers
	if c.parsed > answers.Max() {
		return fail.New(fail.TooLarge, "the values of the request take more than the %d MiB of memory for statements and their answers: send fewer at once", answers.Max()>>20)
	}
	if !c.reserve(more, c.parsedHeld) {
		return errNoRoom()
	}
	c.parsedHeld += more
	c.account.Beside = c.parsedHeld
	c.account.Most = min(engine.DefaultMemory+c.parsedHeld, answers.Max()) // a statement that needs more would wait for itself
	return nil
}
