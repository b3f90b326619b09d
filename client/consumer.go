package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Consumer is a cursor into the changes that the tenant keeps, on disk like any write. Who deals with each page before
// committing it deals with each change at least once.
type Consumer struct {
	client *Client
	name   string
}

// Consumer is the consumer of a name, 1 to 128 characters of printable ASCII, whether it is there or not.
func (c *Client) Consumer(name string) *Consumer { return &Consumer{c, name} }

// ConsumerState is where a consumer stands.
type ConsumerState struct {
	Name   string `json:"name"`
	Since  uint64 `json:"since"`
	Behind uint64 `json:"behind"` // changes on disk that it has not committed
}

// Consumers are those of the tenant, by name.
func (c *Client) Consumers(ctx context.Context) ([]ConsumerState, error) {
	a, err := c.send(ctx, request{method: http.MethodGet, path: "/_changes/consumers", reads: true})
	if err != nil {
		return nil, err
	}
	var all []ConsumerState
	if err := json.Unmarshal(a.body, &all); err != nil {
		return nil, fmt.Errorf("the list of consumers cannot be read: %w", err)
	}
	return all, nil
}

// Create makes the consumer where there is none, at the last change on disk, and answers where it stands.
func (k *Consumer) Create(ctx context.Context) (since uint64, err error) { return k.post(ctx, nil) }

// Commit moves the consumer behind what was dealt with, Page.Next or Change.Position, and makes it where there is none. It
// may move back.
func (k *Consumer) Commit(ctx context.Context, p Position) error {
	_, err := k.post(ctx, append(strconv.AppendUint([]byte(`{"since":`), p.Seq, 10), '}'))
	return err
}

// Next reads the changes behind what was committed last. It moves nothing.
func (k *Consumer) Next(ctx context.Context, o ChangeOptions) (Page, error) {
	return k.client.page(ctx, url.Values{"consumer": {k.name}}, Position{}, o)
}

// Delete forgets the consumer.
func (k *Consumer) Delete(ctx context.Context) error {
	_, err := k.client.send(ctx, request{method: http.MethodDelete, path: k.path()})
	return err
}

func (k *Consumer) path() string { return "/_changes/consumers/" + url.PathEscape(k.name) }

func (k *Consumer) post(ctx context.Context, body []byte) (since uint64, err error) {
	// Sent twice, it sets the cursor to the same.
	a, err := k.client.send(ctx, request{method: http.MethodPost, path: k.path(), body: body, repeats: true})
	if err != nil {
		return 0, err
	}
	var state ConsumerState
	if err := json.Unmarshal(a.body, &state); err != nil {
		return 0, fmt.Errorf("where the consumer stands cannot be read: %w", err)
	}
	return state.Since, nil
}
