package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Kinds of errors, for errors.Is: errors.Is(err, client.ErrConflict).
var (
	ErrInvalid      = errors.New("invalid request")                       // 400: the statement or a value is invalid
	ErrUnauthorized = errors.New("token missing or wrong")                // 401
	ErrForbidden    = errors.New("not allowed")                           // 403: read-only, or a write from a Read copy
	ErrNotFound     = errors.New("not found")                             // 404: no such tenant, collection or field
	ErrConflict     = errors.New("already taken")                         // 409: an id, a unique value or a name
	ErrCursor       = errors.New("invalid cursor")                        // 409 of changes: past the last one, or of another history
	ErrGone         = errors.New("changes no longer retained")            // 410: Error.First is the lowest cursor that can be served
	ErrRequire      = errors.New("requirement not met")                   // 412
	ErrTooLarge     = errors.New("too large")                             // 413
	ErrKeyReused    = errors.New("idempotency key used by another write") // 422
	ErrTooMany      = errors.New("too many requests")                     // 429
	ErrUnavailable  = errors.New("unavailable")                           // 503, 502 and a router's 504: a retry may succeed
	ErrBehind       = errors.New("position not reached")                  // 504: Error.Position is the position of the copy
	ErrFull         = errors.New("full")                                  // 507
)

var kinds = map[int]error{
	http.StatusBadRequest:            ErrInvalid,
	http.StatusUnauthorized:          ErrUnauthorized,
	http.StatusForbidden:             ErrForbidden,
	http.StatusNotFound:              ErrNotFound,
	http.StatusConflict:              ErrConflict,
	http.StatusGone:                  ErrGone,
	http.StatusPreconditionFailed:    ErrRequire,
	http.StatusRequestEntityTooLarge: ErrTooLarge,
	http.StatusUnprocessableEntity:   ErrKeyReused,
	http.StatusTooManyRequests:       ErrTooMany,
	http.StatusBadGateway:            ErrUnavailable,
	http.StatusServiceUnavailable:    ErrUnavailable,
	http.StatusGatewayTimeout:        ErrUnavailable,
	http.StatusInsufficientStorage:   ErrFull,
}

// ErrNoRow is returned by One if there is no row.
var ErrNoRow = errors.New("no such row")

// Error is a response with an error status.
type Error struct {
	Status  int    // HTTP status
	Message string // a sentence, with the position in the statement if known

	// Line and Column are that position, both from 1, the column in characters; 0 if unknown.
	Line, Column int
	// At is the index of the failed statement in a batch, from 0; -1 if unknown. Completed is the number of statements
	// of the batch that took effect, 0 unless it had a compact.
	At, Completed int

	RetryAfter time.Duration // from the Retry-After header; 0 without one
	Position   Position      // of the copy, if the response has it: with ErrBehind, ErrGone and ErrCursor
	First      uint64        // with ErrGone, the lowest cursor that can be served
	Request    string        // the X-Request-Id, which the server's log has too

	kind      error
	temporary bool // a retry may succeed: the response has a Retry-After, or is from a proxy and not from fenec
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind, one of the errors above; nil if it has none.
func (e *Error) Unwrap() error { return e.kind }

// refusal returns the error of a response whose status is not 2xx.
func refusal(r *http.Response, body []byte) *Error {
	var failure struct {
		Error     string `json:"error"`
		At        *int   `json:"at"`
		Completed int    `json:"completed"`
		Since     uint64 `json:"since"`
	}
	e := &Error{Status: r.StatusCode, At: -1, Request: r.Header.Get("X-Request-Id"), kind: kinds[r.StatusCode]}
	e.temporary = json.Unmarshal(body, &failure) != nil || r.Header.Get("Retry-After") != ""
	if failure.Error == "" {
		failure.Error = "the response was " + r.Status
	}
	e.Message, e.Completed, e.First = failure.Error, failure.Completed, failure.Since
	if failure.At != nil {
		e.At = *failure.At
	}
	e.Line, e.Column = place(e.Message)
	if seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	position, known := positionOf(r.Header)
	if e.Position = position; known && r.StatusCode == http.StatusGatewayTimeout {
		e.kind = ErrBehind // a router's own 504 has no position
	}
	return e
}

// place parses the position at the end of a message, "line 1 column 5".
func place(message string) (line, column int) {
	i := strings.LastIndex(message, "line ")
	if i < 0 {
		return 0, 0
	}
	end := message[i:]
	n, err := fmt.Sscanf(end, "line %d column %d", &line, &column)
	if err != nil || n != 2 || end != fmt.Sprintf("line %d column %d", line, column) {
		return 0, 0
	}
	return line, column
}

// broken is the error of a request without a complete response. The request may have run.
type broken struct{ err error }

func (e *broken) Error() string { return "no response: " + e.err.Error() }
func (e *broken) Unwrap() error { return e.err }

// Reason returns why a request got no response, such as "connect: connection refused". It leaves out the URL, for a
// message that names the server itself. It returns the text of any other error unchanged.
func Reason(err error) string {
	var op *net.OpError
	var u *url.Error
	switch {
	case errors.Is(err, errSilent), errors.Is(err, context.DeadlineExceeded):
		return "no response in time"
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &u):
		return u.Err.Error()
	}
	return err.Error()
}
