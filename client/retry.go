package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Pauses between tries.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// again decides when to retry and when to give up.
type again struct {
	patience time.Duration
	since    time.Time // the first failure since the last success; zero if none
	pause    time.Duration
}

func (c *Client) again() again { return again{patience: c.patience, pause: firstPause} }

// well resets the state after a success.
func (a *again) well() { a.since, a.pause = time.Time{}, firstPause }

// wait blocks until a try that failed with err may be repeated. It returns an error if there is to be no other try: err
// itself, or that the context or the patience has ended.
func (a *again) wait(ctx context.Context, err error) error {
	after, worth := transient(err)
	if ctx.Err() != nil || !worth || a.patience < 0 {
		return ended(ctx, err)
	}
	if a.since.IsZero() {
		a.since = time.Now()
	}
	// Half of the pause varies, so that clients that failed together do not come back together.
	pause := after + a.pause/2 + rand.N(a.pause/2)
	a.pause = min(2*a.pause, maxPause)
	if spent := time.Since(a.since); spent > a.patience || pause > a.patience-spent {
		return fmt.Errorf("gave up after %s: %w", spent.Round(time.Millisecond), err)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended(ctx, err)
	case <-timer.C:
		return nil
	}
}

// ended returns the error of a call: err, or the cause of its context if that has ended, wrapped together with err.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w, and before that: %w", cause, err)
}

// transient reports whether another try may succeed, and how long the last response asks to wait.
func transient(err error) (after time.Duration, worth bool) {
	var e *Error
	if errors.As(err, &e) {
		switch e.Status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			return e.RetryAfter, e.temporary
		case http.StatusBadGateway:
			return e.RetryAfter, true
		case http.StatusGatewayTimeout:
			return e.RetryAfter, e.kind != ErrBehind
		}
		return 0, false
	}
	var b *broken
	return 0, errors.As(err, &b)
}

// unsent reports whether no byte of the request was sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
