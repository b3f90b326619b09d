package node

import (
	"unsafe"

	"fenec/engine/doc"

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
	if c.statement.Params = c.statement.Params[len(c.statement.Params):]; cap(c.statement.Params) >= fewParams {
		return nil
	}
	c.statement.Params = make([]doc.Value, 0, paramChunk)
	return c.memory.parse(paramChunk * paramSize)
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
		params := cap(c.statement.Params)
		c.statement.Param(parsed.Value())
		if err := c.memory.parse(int64(cap(c.statement.Params)-params) * paramSize); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// parse reads text as one JSON value, which may contain documents, and counts what that takes.
func (c *call) parse(text []byte) (doc.Raw, error) {
	start := len(c.statement.Values)
	counted := int64(0) // of a buffer that this value made grow: values before it still use the old one
	encoded, err := doc.ParseDocumentsWithin(c.statement.Values, text, func(bytes int) error {
		grown := int64(bytes) - counted
		counted = int64(bytes)
		return c.memory.parse(grown)
	})
	if err != nil {
		return nil, err
	}
	c.statement.Values = encoded
	return doc.Raw(encoded[start:len(encoded):len(encoded)]), nil
}
