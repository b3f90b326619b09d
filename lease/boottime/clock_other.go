//go:build !linux

package boottime

import "time"

// started makes times monotonic. Two processes count from different instants, which is all the same: no time of one process
// is ever compared with that of another.
var started = time.Now()

// Now returns the time since the process was started. On some systems it does not go on while the machine is suspended: do
// not suspend a machine there on which a leased node runs.
func Now() time.Duration { return time.Since(started) }
