// Package syntax reads FenecQL: a scanner, a parser by operator precedence (Pratt 1973) and the
// tree they make. [Parse] reads one statement, [ParseCondition] one condition on its own, and a
// statement's String is its canonical spelling, which parses to the same tree again.
//
// What is not FenecQL is refused with fail.Invalid at the line and column of the first character
// that cannot be read.
//
// Keywords are contextual: the scanner knows only names, and the parser asks for a word where the
// grammar has one. A field may so be called count, order or limit.
//
// The package resolves nothing: whether a collection or field exists, and whether types fit, is
// the planner's to say. A tree is not changed after it was made and is safe to share; it may refer
// into the statement's text. There are no goroutines and no locks.
package syntax
