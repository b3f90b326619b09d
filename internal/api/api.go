// Package api asks a node or a router over HTTP: what the commands of fenec use
// where they are clients.
//
// A Client starts no goroutine of its own; Close lets go of its connections.
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

// timeout bounds one request: a router gives a node 30 s before it answers for
// it, and a large batch takes its time.
const timeout = 2 * time.Minute

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// Waits between tries where the answer names none.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
	maxAfter   = 30 * time.Second // of a Retry-After
)

// Client asks one base URL, under one token where there is one.
type Client struct {
	base      string
	token     string
	http      *http.Client
	transport *http.Transport

	// Patience is how long Insist goes on trying without an answer it can use.
	Patience time.Duration
}

// New is a client of base, such as http://127.0.0.1:8090/t/acme.
func New(base, token string) *Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	return &Client{
		base:      strings.TrimRight(base, "/"),
		token:     token,
		http:      &http.Client{Transport: transport, Timeout: timeout},
		transport: transport,
	}
}

// Close lets go of the kept connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Refusal is an answer with a status that says no.
type Refusal struct {
	Status  int
	Message string
	// At is the statement of a batch that failed, -1 where the answer names none.
	At    int
	after time.Duration // to wait before another try; 0 where it names none
}

func (r *Refusal) Error() string { return r.Message }

// Request is one request, of a path below the base URL.
type Request struct {
	Method, Path string
	Header       map[string]string // beside the token's
	Body         []byte            // JSON or NDJSON
}

// Answer is an answer with a status that says yes.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Ask sends body, JSON or NDJSON, once. It answers the body of a 2xx, a
// *Refusal for another status, and any other error where no whole answer came:
// then the request may or may not have run.
func (c *Client) Ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	a, err := c.Send(ctx, Request{Method: method, Path: path, Body: body})
	return a.Body, err
}

// Send is Ask with headers, both ways.
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
		failure.Error = "the answer was " + response.Status
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

// Insist asks until there is an answer that trying again would not change, for
// as long as Patience allows: through a move's 503, a node that restarts, a
// connection that breaks. A request may so run more than once; it is the
// caller's to make that harmless.
func (c *Client) Insist(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	a, err := c.InsistSend(ctx, Request{Method: method, Path: path, Body: body})
	return a.Body, err
}

// InsistSend is Insist with headers, both ways.
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

var errPatience = errors.New("out of patience")

func (c *Client) gaveUp(ctx context.Context, last, err error) error {
	if !errors.Is(context.Cause(ctx), errPatience) {
		return context.Cause(ctx) // the caller's own
	}
	if last == nil {
		last = err
	}
	return fmt.Errorf("gave up after %s: %s", c.Patience, Reason(last))
}

// retryable says whether asking again may change the answer, and when to.
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

// Reason is why a request failed, without the request.
func Reason(err error) string {
	var op *net.OpError
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
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
