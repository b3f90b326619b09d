// Package syntax reads FenecQL: a scanner, a parser by operator precedence (Pratt 1973) and the
// tree they make. [Parse] reads one statement, [ParseCondition] one condition on its own, and a
// statement's String is its canonical spelling, which parses to the same tree again.
//
// Text that is not FenecQL fails with fail.Invalid at the line and column of the first character
// that cannot be read.
//
// Keywords are contextual: the scanner knows only names, and the parser checks for a word where the
// grammar has one. So a field may be called count, order or limit.
//
// The package resolves nothing: the planner checks whether a collection or field exists and whether
// types fit. A tree is immutable and safe to share. It may refer to the statement's text. There are
// no goroutines and no locks.
package syntax
