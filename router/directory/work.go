package directory

import (
	"context"
	"sync"
	"time"
)

// Operation is what somebody does with a tenant.
type Operation uint8

const (
	Create Operation = iota + 1
	Delete
	Move
	Replicate
	Failover
	// Repair finishes or rolls back what another operation has left incomplete. No client asks for it.
	Repair
)

var operationNames = [...]string{
	Create: "created", Delete: "deleted", Move: "moved", Replicate: "given a replica", Failover: "failed over",
	Repair: "repaired",
}

func (o Operation) String() string { return operationNames[o] }

// repairPatience is how long another operation waits for a repair to end.
const repairPatience = 10 * time.Second

// Work is the right to change what nodes hold of a tenant. At most one is held of each tenant.
type Work struct {
	works     *works
	tenant    string
	operation Operation
	done      chan struct{} // closed when it ends
}

// End gives the right back. It is called once.
func (w *Work) End() {
	w.works.mu.Lock()
	defer w.works.mu.Unlock()
	delete(w.works.under, w.tenant)
	close(w.done)
}

// works are the Works that are held, by tenant. The zero value is ready.
type works struct {
	mu    sync.Mutex
	under map[string]*Work
}

// begin acquires a tenant. If another operation has it, begin fails with a *Busy; but it waits for a repair to end, up to
// repairPatience and until ctx ends.
func (o *works) begin(ctx context.Context, tenant string, operation Operation) (*Work, error) {
	for deadline := time.Now().Add(repairPatience); ; {
		w, other := o.try(tenant, operation)
		if w != nil {
			return w, nil
		}
		left := time.Until(deadline)
		if other.operation != Repair || left <= 0 || ctx.Err() != nil {
			return nil, &Busy{tenant, other.operation}
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

// try acquires a tenant if it is free; if not, w is nil and other is what has it.
func (o *works) try(tenant string, operation Operation) (w, other *Work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other := o.under[tenant]; other != nil {
		return nil, other
	}
	if o.under == nil {
		o.under = map[string]*Work{}
	}
	w = &Work{o, tenant, operation, make(chan struct{})}
	o.under[tenant] = w
	return w, nil
}

// working reports whether somebody has the tenant.
func (o *works) working(tenant string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.under[tenant] != nil
}
