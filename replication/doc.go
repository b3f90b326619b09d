// Package replication copies tenants from one node to another. A Primary feeds the tenants of its node, a Follower has the copies
// on its node follow tenants elsewhere; a node has one of each, and a copy that follows may itself be fed to others.
//
// Two nodes have one connection for all their tenants, dialled by the node that follows. On it, each tenant is a numbered stream of
// frames (frame.go, message.go). A stream begins with the position of the copy. The primary continues from there if its history
// passed through that position and it still has what follows. Otherwise the copy takes an image. Only records that are on the
// primary's disk are sent, so a copy never holds what its primary can lose.
//
// A connection has two goroutines at each end, one that reads and one that writes. A stream has none: a feed wakes the writing
// goroutine when a block is on disk, and what waits for a disk or a tenant runs on a pool (pool.go): the records that arrive, the
// images, and the opening, syncing and summing of tenants.
//
// Locks, in the order they are taken; the locks of the engine and its feed come between Copies.mu and primaryLink.mu, and between
// inStream.mu and source.mu:
//
//	Primary.mu, Follower.mu      the connections, tenants and streams
//	Copies.mu                    how far the copies of one tenant have come
//	outStream.arming             the waker of a stream
//	primaryLink.mu               the streams of a connection that have something to do; taken under a feed's lock
//	inStream.mu                  how far a stream has come
//	source.mu                    the streams of a connection that have something to send; taken under a feed's lock
//	pool.mu                      what waits for a pool
//
// Primary.Close and Follower.Close end all goroutines and wait for them. DESIGN.md has the guarantees.
package replication
