package router

import (
	"context"
	"sync"
	"time"
)

// repaired is the operation's name for a repair.
const repaired = "repaired"

// repairPatience is how long an operation waits for the repairer to release its tenant.
const repairPatience = 10 * time.Second

// operations serializes the changes of one name: at most one create, delete, move or repair of a tenant runs at a time. A
// second one is refused, except that it waits for a repair, which no client asked for.
type operations struct {
	mu    sync.Mutex
	under map[string]operation
}

type operation struct {
	what string        // such as "moved"
	done chan struct{} // closed when it ends
}

// begin acquires the name, and returns the function that releases it. If another operation has the name, busy is what that
// operation does. It waits for the repairer only until ctx ends.
func (o *operations) begin(ctx context.Context, name, what string) (end func(), busy string) {
	for deadline := time.Now().Add(repairPatience); ; {
		end, other := o.try(name, what)
		if end != nil {
			return end, ""
		}
		left := time.Until(deadline)
		if other.what != repaired || left <= 0 || ctx.Err() != nil {
			return nil, other.what
		}
		timer := time.NewTimer(left)
		select {
		case <-other.done:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// try acquires the name if it is free; if not, end is nil and other is the operation that has it.
func (o *operations) try(name, what string) (end func(), other operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, taken := o.under[name]; taken {
		return nil, other
	}
	if o.under == nil {
		o.under = map[string]operation{}
	}
	own := operation{what, make(chan struct{})}
	o.under[name] = own
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.under, name)
		close(own.done)
	}, operation{}
}
