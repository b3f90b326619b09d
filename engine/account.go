package engine

import "fenec/engine/query"

// Account counts what the statements of a request hold in memory, and Accounted is a context with one.
type (
	Account   = query.Account
	Accounted = query.Accounted
)

const (
	// DefaultMemory is how many bytes a statement may hold if its Account sets no limit.
	DefaultMemory = query.DefaultMemory
	// Uncounted is how many bytes a statement may hold before it takes from its Account's budget.
	Uncounted = query.Uncounted
)

// The kinds of a Result.
const (
	Rows     = query.Rows
	Affected = query.Affected
	Message  = query.Message
)
