package client

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Kinds of refusals: errors.Is(err, client.ErrConflict).
var (
	ErrInvalid      = errors.New("invalid request")                       // 400: the statement or a value makes no sense
	ErrUnauthorized = errors.New("token missing or wrong")                // 401
	ErrForbidden    = errors.New("not allowed")                           // 403: read-only, or a write from a Read copy
	ErrNotFound     = errors.New("not found")                             // 404: no such tenant, collection or field
	ErrConflict     = errors.New("already taken")                         // 409: an id, a unique value or a name
	ErrCursor       = errors.New("cursor of no change")                   // 409 of changes: past the last one, or of another history
	ErrGone         = errors.New("changes no longer kept")                // 410: Error.First says from where on they are
	ErrRequire      = errors.New("requirement not met")                   // 412
	ErrTooLarge     = errors.New("too large")                             // 413
	ErrKeyReused    = errors.New("idempotency key used by another write") // 422
	ErrTooMany      = errors.New("too many requests")                     // 429
	ErrUnavailable  = errors.New("not now")                               // 503, 502 and a router's 504: worth another try
	ErrBehind       = errors.New("position not reached")                  // 504: Error.Position says where the copy stands
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

// ErrNoRow is what One answers where there is none.
var ErrNoRow = errors.New("no such row")

// Error is an answer that says no.
type Error struct {
	Status  int    // of HTTP
	Message string // a sentence, with its place in the statement where it has one

	// Line and Column are that place, both from 1, the column in characters; 0 where there is none.
	Line, Column int
	// At is the statement of a batch that failed, from 0, -1 where the answer names none; Completed is how many of the
	// batch stand, which is none unless it had a compact.
	At, Completed int

	RetryAfter time.Duration // what the answer says to wait; 0 where it does not
	Position   Position      // where the copy stands, where the answer says it: with ErrBehind, ErrGone and ErrCursor
	First      uint64        // with ErrGone, the lowest cursor that can be served
	Request    string        // what the server's log has of the request, its X-Request-Id

	kind error
}

func (e *Error) Error() string { return e.Message }

// Unwrap is its kind, one of the errors above, nil where it has none.
func (e *Error) Unwrap() error { return e.kind }

// refusal reads an answer that is no 2xx.
func refusal(r *http.Response, body []byte) *Error {
	var failure struct {
		Error     string `json:"error"`
		At        *int   `json:"at"`
		Completed int    `json:"completed"`
		Since     uint64 `json:"since"`
	}
	e := &Error{Status: r.StatusCode, At: -1, Request: r.Header.Get("X-Request-Id"), kind: kinds[r.StatusCode]}
	if json.Unmarshal(body, &failure) != nil || failure.Error == "" {
		failure.Error = "the answer was " + r.Status // of something between, or no server of fenec
	}
	e.Message, e.Completed, e.First = failure.Error, failure.Completed, failure.Since
	if failure.At != nil {
		e.At = *failure.At
	}
	e.Line, e.Column = place(e.Message)
	if seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	stands, known := positionOf(r.Header)
	if e.Position = stands; known && r.StatusCode == http.StatusGatewayTimeout {
		e.kind = ErrBehind // a router's own has no position
	}
	return e
}

// place reads the end of a sentence, "line 1 column 5".
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

// broken is a request that got no whole answer: it may have been carried out.
type broken struct{ err error }

func (e *broken) Error() string { return "no answer: " + e.err.Error() }
func (e *broken) Unwrap() error { return e.err }
