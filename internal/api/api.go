// Package api sends requests to a node or a router over HTTP, for the commands
// of fenec that are clients.
//
// A Client starts no goroutine; Close closes its connections.
package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// timeout is the timeout of one request. A router waits 30 s for a node before it
// responds itself, and a large batch takes time.
const timeout = 2 * time.Minute

// maxAnswer is the maximum number of bytes read of a response.
const maxAnswer = 64 << 20

// Pauses between tries, if the response has no Retry-After.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
	maxAfter   = 30 * time.Second // maximum used of a Retry-After
)

// Client sends requests to one base URL, with a token if it is not empty.
type Client struct {
	base      string
	token     string
	http      *http.Client
	transport *http.Transport

	// Patience is how long Insist retries a request.
	Patience time.Duration
}

// New returns a client of base, such as http://127.0.0.1:8090/t/acme.
func New(base, token string) *Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	return &Client{
		base:      strings.TrimRight(base, "/"),
		token:     token,
		http:      &http.Client{Transport: transport, Timeout: timeout},
		transport: transport,
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Refusal is a response with an error status.
type Refusal struct {
	Status  int
	Message string
	// At is the index of the failed statement of a batch, -1 if unknown.
	At    int
	after time.Duration // from Retry-After; 0 without one
}

func (r *Refusal) Error() string { return r.Message }

// Request is one request for a path below the base URL.
type Request struct {
	Method, Path string
	Header       map[string]string // in addition to the token's
	Body         []byte            // JSON or NDJSON
}

// Answer is a response with a 2xx status.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Ask sends body, JSON or NDJSON, once. It returns the body of a 2xx response and a
// *Refusal for another status. After any other error there was no complete
// response, and the request may or may not have run.
func (c *Client) Ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	a, err := c.Send(ctx, Request{Method: method, Path: path, Body: body})
	return a.Body, err
}

// Send is Ask with the headers of the request and the response.
func (c *Client) Send(ctx context.Context, r Request) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return Answer{}, err
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Answer{}, err
	}
	if response.StatusCode/100 == 2 {
		return Answer{response.Header, body}, nil
	}
	return Answer{}, refusal(response, body)
}

func refusal(response *http.Response, answer []byte) *Refusal {
	var failure struct {
		Error string `json:"error"`
		At    *int   `json:"at"`
	}
	r := &Refusal{Status: response.StatusCode, At: -1}
	if json.Unmarshal(answer, &failure) != nil || failure.Error == "" {
		failure.Error = "the response was " + response.Status
	}
	r.Message = failure.Error
	if failure.At != nil {
		r.At = *failure.At
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		r.after = min(time.Duration(seconds)*time.Second, maxAfter)
	}
	return r
}

// Insist sends a request and retries it while it fails temporarily, for as long as
// Patience allows: a 503 during a move, a node that restarts, a broken connection.
// The request may run more than once; the caller must make sure that this does no
// harm.
func (c *Client) Insist(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	a, err := c.InsistSend(ctx, Request{Method: method, Path: path, Body: body})
	return a.Body, err
}

// InsistSend is Insist with the headers of the request and the response.
func (c *Client) InsistSend(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, errPatience)
	defer cancel()
	pause := firstPause
	var last error
	for {
		answer, err := c.Send(ctx, r)
		if context.Cause(ctx) != nil {
			return Answer{}, c.gaveUp(ctx, last, err)
		}
		wait, again := retryable(err, pause)
		if !again {
			return answer, err
		}
		last = err
		pause = min(2*pause, maxPause)
		select {
		case <-ctx.Done():
			return Answer{}, c.gaveUp(ctx, last, err)
		case <-time.After(wait):
		}
	}
}

var errPatience = errors.New("patience exceeded")

func (c *Client) gaveUp(ctx context.Context, last, err error) error {
	if !errors.Is(context.Cause(ctx), errPatience) {
		return context.Cause(ctx) // the context of the caller has ended
	}
	if last == nil {
		last = err
	}
	return fmt.Errorf("gave up after %s: %s", c.Patience, Reason(last))
}

// retryable reports whether another try may succeed, and how long to wait before
// it.
func retryable(err error, pause time.Duration) (time.Duration, bool) {
	if err == nil {
		return 0, false
	}
	var r *Refusal
	if !errors.As(err, &r) {
		return pause, true
	}
	switch r.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return max(r.after, pause), true
	}
	return 0, false
}

// Reason returns why a request failed, without the URL.
func Reason(err error) string {
	var op *net.OpError
	if errors.Is(err, context.DeadlineExceeded) {
		return "no response in time"
	}
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}
