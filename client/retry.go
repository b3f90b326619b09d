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

// again is when to try again, and when to give up.
type again struct {
	patience time.Duration
	since    time.Time // of the first failure after what last went well; zero where nothing has failed
	pause    time.Duration
}

func (c *Client) again() again { return again{patience: c.patience, pause: firstPause} }

// well begins anew.
func (a *again) well() { a.since, a.pause = time.Time{}, firstPause }

// wait waits until a try that failed so may be made again. Its error is why none is to be made: err itself, or that the
// context or the patience is over.
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

// ended is the error of a call: that of its context where that is over, which then says what came last.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w, and before that: %w", cause, err)
}

// transient tells whether another try may be answered otherwise, and how long the last answer asks to wait.
func transient(err error) (after time.Duration, worth bool) {
	var e *Error
	if errors.As(err, &e) {
		switch e.Status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			return e.RetryAfter, e.RetryAfter > 0
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

// unsent tells a request of which not a byte went out.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
