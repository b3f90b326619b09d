// Package query prepares FenecQL statements and runs them: it resolves their names against the schemas,
// compiles their expressions to closures over encoded documents, picks an index and
// appends the result's JSON directly from the documents' bytes.
//
// [Prepare] makes a [Plan] once per statement and schema version. [Plan.Run] runs it any number of times,
// also concurrently. The state of a run (parameters, the time, constants converted to the field they
// are compared with, buffers) is in a frame, taken from the plan's pool.
//
// The package starts no goroutine and takes no lock: it runs over a [Reader] or [Writer] that its caller
// keeps unchanged. It knows nothing of files, blocks or HTTP.
//
// # Conditions
//
// A condition is true, false or unknown, as in SQL. The terms of a statement's `and` chain that compare
// a field with constants are tested first, then the others in the order written. A row that fails a term is
// not tested further. So an index, which replaces some of those first terms, meets the same rows and the
// same errors as a scan. In a json path a value that is not a bool is an unknown condition.
//
// # Groups
//
// A grouped get adds its rows to a hash table from the bytes of the key to a group's tallies, which
// allocates per group and not per row. Having, order and page then apply to the groups' cells.
//
// # Constants
//
// An expression without fields is a constant of the run. If it is compared with a field it is converted
// to the field's type once, as a write to that field would convert it.
package query
