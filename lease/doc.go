// Package lease decides which node may write a tenant. A router leases each node the tenants it places there, for a time;
// the node writes a tenant only while its lease names the tenant and has not lapsed; the router promotes a tenant elsewhere
// only once that lease has certainly lapsed. DESIGN.md has the argument why no tenant ever has two primaries.
//
// Node is what a node holds, Keeper what a router runs for all its nodes, Directory which router a node obeys. All three are
// state machines: they are handed the time, which is a clock of the machine that no one sets (package boottime), they start
// no goroutine and do no I/O. A Node may be used concurrently; a Keeper belongs to one goroutine.
package lease

import "time"

// Lengths that a lease may have. A grant by hand may be shorter than MinLength.
const (
	MinLength = 200 * time.Millisecond
	MaxLength = time.Hour
)

// parts is how many renewals a lease has: the keeper renews after each of them, and gives up a call after one.
const parts = 3

// certain returns how long the router waits, by its own clock, until a grant of length d that ran on a node's clock has
// certainly lapsed: a tenth more, for the difference of the two clocks' rates.
func certain(d time.Duration) time.Duration { return d + d/10 + d%10 }
