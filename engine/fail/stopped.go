package fail

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Stopped returns the error of a statement whose context has ended while it was doing what the format says. It returns nil
// while the context goes on or is nil. A context may have a method Limit that returns its timeout.
func Stopped(ctx context.Context, format string, args ...any) error {
	if ctx == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return Ended(ctx, err, fmt.Sprintf(format, args...))
	}
	return nil
}

// Ended is Stopped with the error that ctx has ended with.
func Ended(ctx context.Context, err error, doing string) error {
	kind, how := Canceled, "the statement was given up, its caller went away"
	if errors.Is(err, context.DeadlineExceeded) {
		kind, how = Timeout, "the statement ran out of time"
		if c, ok := ctx.(interface{ Limit() time.Duration }); ok {
			how += " after " + c.Limit().String()
		}
	}
	return &Error{Kind: kind, Message: how + ": it was " + doing, Err: err}
}

// Thousands formats a count with separators: 1 000 000.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}
