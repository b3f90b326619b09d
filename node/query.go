package node

import (
	"bytes"
	"errors"
	"io"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
	"fenec/internal/http1"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBatch is how many statements a batch has at most.
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
	st := engine.Statement{Text: text, Params: c.params}
	if _, err := c.judge(st); err != nil {
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
		return c.node.answerError(c.request, fail.New(fail.Invalid, `the batch is empty: want a statement a line, {"query": "...", "params": [...]}`))
	}
	if at, err := c.judge(statements...); err != nil {
		return c.failedBatch(err, 0, at)
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

// readBatch reads the lines of a batch. Where one cannot be read, as many statements as came before it are answered.
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
		first := len(c.params)
		text, err := c.readStatement(line)
		if err != nil {
			return statements, err
		}
		statements = append(statements, engine.Statement{Text: text, Params: c.params[first:len(c.params):len(c.params)]})
	}
	return statements, nil
}

var newline = []byte("\n")

// answerBatch is `{"ok": n, "results": [...]}`. Where a statement wrote, the headers say where that left the tenant.
func (c *call) answerBatch(results []engine.Result) http1.Answer {
	a := http1.Answer{Status: 200, Headers: http1.JSON}
	body := appendNumber(append(c.request.Scratch(), '{'), "ok", int64(len(results)))
	body = append(body, `,"results":[`...)
	for i := range results {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendBatchResult(body, &results[i])
		if results[i].Wrote || c.marked {
			a.Headers = writeHeaders(&results[i])
		}
	}
	a.Body = append(body, "]}"...)
	return a
}

// appendBatchResult appends a result as /batch answers it: an object whatever the statement, the rows of one under "rows".
func appendBatchResult(dst []byte, res *engine.Result) []byte {
	if res.Kind != query.Rows {
		return appendResult(dst, res)
	}
	dst = append(dst, `{"rows":`...)
	return append(append(dst, res.Body...), '}')
}

// failedBatch says at which statement a batch failed, counted from 0, and how many before it stand: none, but where a
// compact made each a block of its own.
func (c *call) failedBatch(err error, completed, at int) http1.Answer {
	a := c.node.answerError(c.request, err)
	body := append(a.Body[:len(a.Body)-1], ',')
	body = appendNumber(body, "completed", int64(completed))
	body = appendNumber(append(body, ','), "at", int64(at))
	a.Body = append(body, '}')
	return a
}

// checkGrowth refuses statements that add to a tenant past its memory, and says which is the first.
func (c *call) checkGrowth(statements ...engine.Statement) (at int, err error) {
	err = c.node.checkGrowth(c.tenant)
	if err == nil {
		return 0, nil
	}
	for i, st := range statements {
		tree, parseErr := syntax.Parse(st.Text)
		if parseErr != nil {
			return 0, nil // the engine says what is wrong with it
		}
		switch tree.(type) {
		case *syntax.Put, *syntax.Set, *syntax.CreateCollection, *syntax.CreateIndex:
			return i, err
		}
	}
	return 0, nil
}

// readStatement reads `{"query": "...", "params": [...]}`, of which params may be left out, and appends the
// parameters to the call's. It answers the statement.
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
	// What is no JSON is said in the words that all of fenec says it in.
	if _, err := doc.ParseDocuments(nil, text); err != nil {
		return "", err
	}
	return "", errEnvelope()
}

func errEnvelope() error {
	return fail.New(fail.Invalid, `want an object {"query": "...", "params": [...]}, of which params may be left out`)
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
			return "", fail.New(fail.Invalid, "%s is no key of a query, which has query and params", quoted([]byte(name)))
		}
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '}' || !found {
		return "", orEnvelope(err)
	}
	return statement, nil
}

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
		start := len(c.values)
		encoded, err := doc.ParseDocuments(c.values, value)
		if err != nil {
			return err
		}
		c.values = encoded
		c.param(doc.Raw(encoded[start:len(encoded):len(encoded)]).Value())
	}
	_, err := d.ReadToken()
	return err
}

func orEnvelope(err error) error {
	if err != nil {
		return err
	}
	return errEnvelope()
}
