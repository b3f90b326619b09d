package tenants

import (
	"sync/atomic"

	"fenec/engine"
	"fenec/engine/claim"
	"fenec/engine/feed"
)

// closing is added to a tenant's uses to refuse all requests: no number of requests brings the sum above zero.
const closing = -1 << 40

// Tenant is one open tenant. Every request enters and leaves it, and a holder of its gate closes it.
type Tenant struct {
	Name    string // empty for the one of a Set over a file
	DB      *engine.DB
	Feed    *feed.Feed    // the changes of DB
	Claims  *claim.Queues // the claims of DB that wait
	Streams Streams       // what Config.NewStreams returned

	uses   atomic.Int64 // requests in it, and closing once it is being closed
	last   atomic.Int64 // when the last request left, in nanoseconds of the Set's clock
	memory atomic.Int64 // bytes it held when last measured
	file   atomic.Int64 // bytes of its file, likewise
	dead   atomic.Int64 // bytes of the file that a compact would remove
	hold   atomic.Pointer[hold]
	// follows is the role of a copy that follows another node; nil for a primary.
	follows atomic.Pointer[follows]

	gone chan struct{} // closed when the tenant must be closed although in use
	left chan struct{} // wakes the goroutine that waits for the last request to leave
}

// Gone returns a channel that is closed when the tenant must be closed although it is in use: what runs in it for long ends.
func (t *Tenant) Gone() <-chan struct{} { return t.gone }

// FileBytes returns how many bytes its file had when last measured.
func (t *Tenant) FileBytes() int64 { return t.file.Load() }

// DeadBytes returns how many bytes of its file a compact would have removed when last measured.
func (t *Tenant) DeadBytes() int64 { return t.dead.Load() }

// Enter counts a request that enters, and returns false if the tenant is being closed. A request that has entered leaves with
// Leave, or with Set.Release, which counts as a use.
func (t *Tenant) Enter() bool {
	if t.uses.Add(1) > 0 {
		return true
	}
	t.Leave()
	return false
}

// Leave counts a request that leaves.
func (t *Tenant) Leave() {
	if t.uses.Add(-1) == closing {
		select {
		case t.left <- struct{}{}:
		default:
		}
	}
}

// shut refuses requests from now on and blocks until the last one has left.
func (t *Tenant) shut() {
	close(t.gone)
	t.Streams.EndSoon()
	t.uses.Add(closing)
	for t.uses.Load() != closing {
		<-t.left
	}
}

// shutIfIdle refuses requests from now on if none is in the tenant, and reports whether it does.
func (t *Tenant) shutIfIdle() bool { return t.uses.CompareAndSwap(0, closing) }
