package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Batch is statements that run as one: all of them happen, or none, and nobody sees it half done. The zero value is empty.
type Batch struct {
	body   []byte
	len    int
	writes bool
	err    error
}

// Add adds a statement. Where a parameter cannot be encoded, running the batch says so.
func (b *Batch) Add(statement string, params ...any) {
	if b.err != nil {
		return
	}
	body, err := appendStatement(b.body, statement, params)
	if err != nil {
		b.err = fmt.Errorf("statement %d of the batch: %w", b.len, err)
		return
	}
	b.body = append(body, '\n')
	b.writes = b.writes || !reads(statement)
	b.len++
}

// Len is how many statements it has.
func (b *Batch) Len() int { return b.len }

// Run runs a batch, and answers a result a statement. Where one fails, Error.At says which.
func (c *Client) Run(ctx context.Context, b *Batch) ([]Result, error) {
	if b.err != nil || b.len == 0 {
		return nil, b.err
	}
	a, err := c.send(ctx, request{method: http.MethodPost, path: "/batch", body: b.body, reads: !b.writes})
	if err != nil {
		return nil, err
	}
	var answered struct {
		Results []jsontext.Value `json:"results"`
	}
	if err := json.Unmarshal(a.body, &answered); err != nil {
		return nil, fmt.Errorf("the answer is none of a batch: %w", err)
	}
	if len(answered.Results) != b.len {
		return nil, fmt.Errorf("a batch of %d statements was answered with %d results", b.len, len(answered.Results))
	}
	results := make([]Result, b.len)
	for i, text := range answered.Results {
		if results[i], err = batchResult(text); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// batchResult returns the result of one statement of a batch, its rows out of their object.
func batchResult(text jsontext.Value) (Result, error) {
	var answered struct {
		Rows jsontext.Value `json:"rows"`
	}
	if err := json.Unmarshal(text, &answered); err != nil {
		return Result{}, fmt.Errorf("the answer is none of a batch: %w", err)
	}
	if answered.Rows != nil {
		return Result{answered.Rows}, nil
	}
	return Result{text}, nil
}
