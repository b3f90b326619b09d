package node

import (
	"bytes"
	"errors"
	"io"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
	"fenec/node/rest"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBatch is the most statements of a batch.
const maxBatch = 1 << 20

// query is POST /query: one statement with its parameters.
func (c *call) query() http1.Answer {
	body, err := c.request.Body(http1.MaxBody)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	text, err := c.readStatement(body)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	st := engine.Statement{Text: text, Params: c.statement.Params}
	if err := c.awaitReads(st); err != nil {
		return c.node.answerError(c.request, err)
	}
	var a http1.Answer
	if _, err = c.checkGrowth(st); err != nil {
		a, err = c.ranBefore(err)
	} else {
		a, err = c.exec(st, (*call).answer)
	}
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	return a
}

// batch is POST /batch: a statement a line, all of them one block.
func (c *call) batch() http1.Answer {
	body, err := c.request.Body(http1.MaxBody)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	statements, err := c.readBatch(body)
	if err != nil {
		return c.failedBatch(err, 0, len(statements))
	}
	if len(statements) == 0 {
		return c.node.answerError(c.request, fail.New(fail.Invalid, `the batch is empty: expected a statement a line, {"query": "...", "params": [...]}`))
	}
	if err := c.awaitReads(statements...); err != nil {
		return c.failedBatch(err, 0, 0)
	}
	if at, full := c.checkGrowth(statements...); full != nil {
		a, err := c.ranBefore(full)
		switch {
		case err == nil:
			return a
		case errors.Is(err, full):
			return c.failedBatch(full, 0, at)
		}
		return c.node.answerError(c.request, err)
	}
	a, completed, at, err := c.execBatch(statements)
	switch {
	case err == nil:
		return a
	case at < 0:
		return c.node.answerError(c.request, err)
	}
	return c.failedBatch(err, completed, at)
}

// readBatch reads the lines of a batch. If a line is invalid, it returns the statements before it.
func (c *call) readBatch(body []byte) ([]engine.Statement, error) {
	var statements []engine.Statement
	for len(body) > 0 {
		var line []byte
		line, body, _ = bytes.Cut(body, newline)
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(statements) == maxBatch {
			return statements, fail.New(fail.TooLarge, "a batch has at most %d statements", maxBatch)
		}
		if err := c.beginParams(); err != nil {
			return statements, err
		}
		text, err := c.readStatement(line)
		if err != nil {
			return statements, err
		}
		statements = append(statements, engine.Statement{Text: text, Params: c.statement.Params[:len(c.statement.Params):len(c.statement.Params)]})
	}
	return statements, nil
}

var newline = []byte("\n")

// failedBatch adds at which statement a batch failed, counted from 0, and how many before it took effect: none, unless a
// compact made each a block of its own.
func (c *call) failedBatch(err error, completed, at int) http1.Answer {
	a := c.node.answerError(c.request, err)
	body := append(a.Body[:len(a.Body)-1], ',')
	body = appendNumber(body, "completed", int64(completed))
	body = appendNumber(append(body, ','), "at", int64(at))
	a.Body = append(body, '}')
	return a
}

// readStatement reads `{"query": "...", "params": [...]}`, of which params is optional, and appends the parameters to the
// call's. It returns the statement.
func (c *call) readStatement(text []byte) (string, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	statement, err := c.decodeStatement(d)
	if err == nil {
		if _, err = d.ReadToken(); err == io.EOF {
			return statement, nil
		}
	}
	if fail.KindOf(err) != 0 {
		return "", err
	}
	// Invalid JSON is reported in the same words everywhere in fenec.
	if _, err := doc.ParseDocuments(nil, text); err != nil {
		return "", err
	}
	return "", errEnvelope()
}

func errEnvelope() error {
	return fail.New(fail.Invalid, `expected an object {"query": "...", "params": [...]}, of which params may be left out`)
}

func (c *call) decodeStatement(d *jsontext.Decoder) (statement string, err error) {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return "", orEnvelope(err)
	}
	found := false
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		switch name := key.String(); name {
		case "query":
			if d.PeekKind() != '"' {
				return "", errEnvelope()
			}
			value, err := d.ReadToken()
			if err != nil {
				return "", err
			}
			statement, found = value.String(), true
		case "params":
			if err := c.decodeParams(d); err != nil {
				return "", err
			}
		default:
			return "", fail.New(fail.Invalid, "%s is no key of a query, which has query and params", rest.Quoted([]byte(name)))
		}
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '}' || !found {
		return "", orEnvelope(err)
	}
	return statement, nil
}

func orEnvelope(err error) error {
	if err != nil {
		return err
	}
	return errEnvelope()
}
