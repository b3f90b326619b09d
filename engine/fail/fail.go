// Package fail defines the kinds of errors that a tenant's database returns.
//
// Every error that leaves the engine is an [*Error]: a kind that one table elsewhere maps to a status, a sentence for a
// person, and, if the fault is in a statement, its place in the text.
package fail

import (
	"errors"
	"fmt"
)

// Kind is the category of an error, and so says who can do something about it.
type Kind uint8

const (
	// Invalid is a statement, value or parameter that is malformed or not allowed.
	Invalid Kind = iota + 1
	// NotFound is a collection, field or tenant that does not exist.
	NotFound
	// Conflict is an id, unique value or name that is taken.
	Conflict
	// Require is a statement that wrote another number of rows than it required.
	Require
	// TooLarge is a document, statement or response over its limit.
	TooLarge
	// Unsupported is a part of the language that this version does not have.
	Unsupported
	// ReadOnly is a write to a database that was opened for reading.
	ReadOnly
	// Frozen is a write while writes are suspended; it may be retried after a second.
	Frozen
	// Storage is a failed read or write of the disk.
	Storage
	// Full is a disk without space left.
	Full
	// Damaged is a file whose bytes are not what was written.
	Damaged
	// Canceled is work abandoned because its caller went away.
	Canceled
	// Timeout is work that took longer than its limit.
	Timeout
	// Closed is a request to a database that is closing.
	Closed
	// Reused is an idempotency key that another request has used.
	Reused
	// Busy is work for which there is no memory next to the work under way; it may be retried after a second.
	Busy
	// Follows is a write to a copy of a database that follows another copy.
	Follows
)

var kindNames = [...]string{
	Invalid:     "invalid",
	NotFound:    "not found",
	Conflict:    "conflict",
	Require:     "requirement not met",
	TooLarge:    "too large",
	Unsupported: "unsupported",
	ReadOnly:    "read-only",
	Frozen:      "frozen",
	Storage:     "storage failure",
	Full:        "disk full",
	Damaged:     "damaged",
	Canceled:    "canceled",
	Timeout:     "timeout",
	Closed:      "closed",
	Reused:      "key reused",
	Busy:        "busy",
	Follows:     "follows another copy",
}

// String returns the kind's name in lower-case words.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Error is a classified failure.
type Error struct {
	Kind    Kind
	Message string // a lower-case sentence for a person
	Line    int    // 1-based line of the statement, 0 if the failure has no place
	Column  int    // 1-based column in characters, 0 if the failure has no place
	Err     error  // the cause, nil if there is none
}

// Error returns the message, with its place in the statement if it has one.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s line %d column %d", e.Message, e.Line, e.Column)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error without a place. The operand of a %w verb becomes its cause.
func New(k Kind, format string, args ...any) *Error {
	return At(k, 0, 0, format, args...)
}

// At returns an error with its place in the statement: line and column count from 1. The operand of a %w verb becomes
// its cause.
func At(k Kind, line, column int, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Kind: k, Message: wrapped.Error(), Line: line, Column: column, Err: errors.Unwrap(wrapped)}
}

// KindOf returns the kind of the first classified error in err's chain, 0 if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
