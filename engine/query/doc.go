// Package query prepares FenecQL statements and runs them: it resolves their names against the schemas,
// compiles their expressions to closures over encoded documents, picks the index that answers them and
// appends the answer's JSON straight from the documents' bytes.
//
// [Prepare] makes a [Plan] once a statement and schema version; [Plan.Run] runs it any number of times,
// also at once. What changes between runs (parameters, the time, constants converted to the field they
// are compared with, buffers) lives in a frame of the run's own, taken from the plan's pool.
//
// The package starts no goroutine and takes no lock: it runs over a [Reader] or [Writer] that its caller
// holds still. It knows nothing of files, blocks or HTTP.
//
// # Conditions
//
// A condition is true, false or unknown, as in SQL. The terms of a statement's `and` chain that compare
// a field with constants are tested first, then the others as written, and a row that fails a term is
// tested no further: so an index, which answers some of those first terms by itself, meets the same rows
// and the same errors as a scan. In a json path a value that is no bool is an unknown condition.
//
// # Groups
//
// A grouped get sends its rows to a hash table from the bytes of the key to a group's tallies, which
// allocates for groups and not for rows. Having, order and page are then those of the groups' cells.
//
// # Constants
//
// An expression without fields is a constant of the run. Where it is compared with a field it is
// converted to the field's type once, as a write to that field would convert it.
package query
