// Package directory is a versioned table of the nodes of a cluster and of the tenants on them.
//
// A row is an immutable value that names nodes by name. It carries the version at which it was last changed, and is
// changed by compare-and-set: a change names the row that it replaces, and fails with a *Conflict if that is not the current
// row any more. Versions are the change numbers of the file, so every change has another one.
//
// The current rows are in Maps, whose readers no writer blocks. They are a fold over changes: one function, Maps.apply,
// is the only one that changes them. File is the store: a file of the engine. What it reads at start, its own changes, and
// what it finds when it opens the file again all go through that function.
//
// Whoever changes what nodes hold of a tenant holds the tenant's Work. See DESIGN.md for what of it is on disk and for what
// happens when the disk fails.
//
// The package starts no goroutine of its own; the engine has one for the file.
//
// # Locks, in the order they are taken
//
//	File.shared   changes share it; the removal of a node and opening the file again need it alone
//	File.folding  one reader of the feed at a time
//	Maps.mu       one writer of the maps at a time; Options.Node, Removed and Tenant are called under it
//	works.mu      who works on which tenant
//	File.mu       the rows being changed
package directory
