package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Consumer is a cursor into the changes. The tenant stores it, as durably as any write. A caller that commits each page
// after processing it processes each change at least once.
type Consumer struct {
	client *Client
	name   string
}

// Consumer returns the consumer with a name of 1 to 128 characters of printable ASCII. It need not exist yet.
func (c *Client) Consumer(name string) *Consumer { return &Consumer{c, name} }

// ConsumerState is a consumer and its cursor.
type ConsumerState struct {
	Name   string `json:"name"`
	Since  uint64 `json:"since"`
	Behind uint64 `json:"behind"` // changes on disk that it has not committed
}

// Consumers returns the tenant's consumers, sorted by name.
func (c *Client) Consumers(ctx context.Context) ([]ConsumerState, error) {
	a, err := c.send(ctx, request{method: http.MethodGet, path: "/_changes/consumers", reads: true})
	if err != nil {
		return nil, err
	}
	var all []ConsumerState
	if err := json.Unmarshal(a.body, &all); err != nil {
		return nil, fmt.Errorf("invalid list of consumers: %w", err)
	}
	return all, nil
}

// Create creates the consumer at the last change on disk if it does not exist, and returns its cursor.
func (k *Consumer) Create(ctx context.Context) (since uint64, err error) {
	return k.post(ctx, request{})
}

// Commit moves the consumer to a position, Page.Next or Change.Position, and creates it if it does not exist. It may
// move back. It returns ErrCursor if the position is of another history or past the last change.
func (k *Consumer) Commit(ctx context.Context, p Position) error {
	body := append(strconv.AppendUint([]byte(`{"since":`), p.Seq, 10), '}')
	_, err := k.post(ctx, request{body: body, cursor: p, paged: true})
	return cursorError(err)
}

// Next reads the changes after the last committed position. It does not move the consumer.
func (k *Consumer) Next(ctx context.Context, o ChangeOptions) (Page, error) {
	return k.client.page(ctx, url.Values{"consumer": {k.name}}, Position{}, o)
}

// Delete deletes the consumer.
func (k *Consumer) Delete(ctx context.Context) error {
	_, err := k.client.send(ctx, request{method: http.MethodDelete, path: k.path()})
	return err
}

func (k *Consumer) path() string { return "/_changes/consumers/" + url.PathEscape(k.name) }

// post completes and sends a request. Sent twice, it sets the cursor to the same.
func (k *Consumer) post(ctx context.Context, r request) (since uint64, err error) {
	r.method, r.path, r.repeats = http.MethodPost, k.path(), true
	a, err := k.client.send(ctx, r)
	if err != nil {
		return 0, err
	}
	var state ConsumerState
	if err := json.Unmarshal(a.body, &state); err != nil {
		return 0, fmt.Errorf("invalid state of consumer %s: %w", k.name, err)
	}
	return state.Since, nil
}
