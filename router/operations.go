package router

import (
	"context"
	"sync"
	"time"
)

// repaired is what a name is called that the repairer is at.
const repaired = "repaired"

// repairPatience is how long an operation waits for the repairer to let go of its tenant.
const repairPatience = 10 * time.Second

// operations keeps the changes of one name apart: who creates, deletes, moves or repairs a tenant has it to itself.
// Another that comes meanwhile is refused rather than kept waiting, but for the repairer, which nobody asked for.
type operations struct {
	mu    sync.Mutex
	under map[string]operation
}

type operation struct {
	what string        // is being done
	done chan struct{} // closed as it ends
}

// begin takes the name, and returns how to give it back. busy says what is being done to it where it is taken. It waits
// for the repairer only until ctx ends.
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

// try takes the name where it is free; other is who has it where it is not.
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
