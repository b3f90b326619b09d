package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// request is one request, which may be sent several times.
type request struct {
	method, path string
	body         []byte
	header       [][2]string   // in addition to those of every request
	reads        bool          // the request only reads
	repeats      bool          // a write that may be sent twice
	wait         time.Duration // how long the server is asked to wait
	cursor       Position      // of a consumer or a page of changes
	paged        bool          // cursor is set
}

// answer is a response with a 2xx status.
type answer struct {
	header http.Header
	body   []byte
}

// errTooLong is the error of a response longer than maxAnswer.
var errTooLong = fmt.Errorf("response longer than %d MiB", maxAnswer>>20)

// errSilent is the error of a try that exceeded its timeout.
var errSilent = errors.New("the server did not respond in time")

// send sends a request until it gets a response or must not be retried.
func (c *Client) send(ctx context.Context, r request) (answer, error) {
	reads := r.reads || c.read
	r.repeats = r.repeats || c.repeats
	if !reads {
		if key := c.nextKey(); key != "" {
			r.header = append(r.header, [2]string{"Idempotency-Key", key})
			r.repeats = true
		}
	}
	again := c.again()
	for {
		a, err := c.try(ctx, r)
		switch {
		case err == nil:
			if p, ok := positionOf(a.header); ok && !reads {
				c.memory.learn(p)
			}
			return a, nil
		case !reads && !r.repeats && !unsent(err):
			return answer{}, ended(ctx, err)
		}
		if err := again.wait(ctx, err); err != nil {
			return answer{}, err
		}
	}
}

// try sends a request once and reads the whole response. Its error is an *Error, *broken, or an invalid request or
// response.
func (c *Client) try(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout+r.wait, errSilent)
	defer cancel()
	response, err := c.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := readAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{response.Header, body}, nil
}

// open sends a request once and reads the head of the response. A status other than 2xx is returned as an *Error.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for _, h := range r.header {
		request.Header.Set(h[0], h[1])
	}
	if len(r.body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	c.mark(request.Header, &r)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &broken{err}
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	body, err := readAll(response.Body)
	if err != nil {
		return nil, err
	}
	return nil, refusal(response, body)
}

// mark sets the headers for the position that the request needs and for reads on any copy.
func (c *Client) mark(h http.Header, r *request) {
	p := c.memory.get()
	if r.paged {
		p = r.cursor
		if p.History != "" { // without Fenec-After, the server checks the cursor against this history
			h.Set("Fenec-History", p.History)
		}
	}
	if !c.read {
		return
	}
	h.Set("Fenec-Read", "replica")
	if p != (Position{}) {
		h.Set("Fenec-After", strconv.FormatUint(p.Seq, 10))
		if p.History != "" {
			h.Set("Fenec-History", p.History)
		}
	}
}

// readAll reads a body to its end, so that its connection can be reused.
func readAll(body io.Reader) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &broken{err}
	case len(all) > maxAnswer:
		return nil, errTooLong
	}
	return all, nil
}
