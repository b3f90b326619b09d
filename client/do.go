package client

import (
	"context"
	"net/http"
)

// Do sends a request that no other method of the client covers, such as one of the REST interface, and returns the body
// of the response. The path is relative to the URL of the client:
//
//	books, err := c.Do(ctx, "GET", "/books?year=gte.1900&order=year", nil)
//
// The body is JSON, or lines of JSON. GET and HEAD are retried as reads, other methods as writes.
func (c *Client) Do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	reads := method == http.MethodGet || method == http.MethodHead
	a, err := c.send(ctx, request{method: method, path: path, body: body, reads: reads})
	return a.body, err
}
