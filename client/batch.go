package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Batch is a list of statements that run atomically: all of them are applied, or none. The zero value is an empty
// batch.
type Batch struct {
	body   []byte
	len    int
	writes bool
	err    error
}

// Add adds a statement. If a parameter cannot be encoded, Run returns the error.
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

// Len returns the number of statements.
func (b *Batch) Len() int { return b.len }

// Run runs a batch and returns one result per statement. If a statement fails, Error.At is its index.
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
		return nil, fmt.Errorf("invalid response to a batch: %w", err)
	}
	if len(answered.Results) != b.len {
		return nil, fmt.Errorf("batch: expected %d results, got %d", b.len, len(answered.Results))
	}
	results := make([]Result, b.len)
	for i, text := range answered.Results {
		results[i] = Result{text}
	}
	return results, nil
}
