// Package fail holds the kinds of errors a tenant's database answers with.
//
// Every error that leaves the engine is an [*Error]: a kind that one table elsewhere maps to a status,
// a sentence for a person, and, where the fault lies in a statement, its place in the text.
package fail

import (
	"errors"
	"fmt"
)

// Kind says what sort of failure an error is, and so who can do something about it.
type Kind uint8

const (
	// Invalid is a statement, value or parameter that makes no sense.
	Invalid Kind = iota + 1
	// NotFound is a collection, field or tenant that does not exist.
	NotFound
	// Conflict is an id, unique value or name that is taken.
	Conflict
	// Require is a statement that wrote another number of rows than it demanded.
	Require
	// TooLarge is a document, statement or answer past its limit.
	TooLarge
	// Unsupported is a part of the language that this version does not have.
	Unsupported
	// ReadOnly is a write to a database that was opened for reading.
	ReadOnly
	// Frozen is a write while writes are held back; it may be tried again after a second.
	Frozen
	// Storage is a failed read or write of the disk.
	Storage
	// Full is a disk without space left.
	Full
	// Damaged is a file whose bytes are not what was written.
	Damaged
	// Canceled is work given up because its caller went away.
	Canceled
	// Timeout is work that took longer than it may.
	Timeout
	// Closed is a request that met a database which is closing.
	Closed
	// Reused is an idempotency key that another request has.
	Reused
	// Busy is work that finds no room in memory beside that of others; it may be tried again after a second.
	Busy
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
}

// String names the kind in lower-case words.
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
	Line    int    // 1-based line of the statement, 0 where the failure has no place
	Column  int    // 1-based column in characters, 0 where the failure has no place
	Err     error  // the cause, nil where there is none
}

// Error is the message, with its place in the statement where it has one.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s line %d column %d", e.Message, e.Line, e.Column)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error without a place. A %w verb's operand becomes its cause.
func New(k Kind, format string, args ...any) *Error {
	return At(k, 0, 0, format, args...)
}

// At makes an error with its place in the statement: line and column count from 1.
// A %w verb's operand becomes its cause.
func At(k Kind, line, column int, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Kind: k, Message: wrapped.Error(), Line: line, Column: column, Err: errors.Unwrap(wrapped)}
}

// KindOf is the kind of the first classified error in err's chain, 0 where there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
