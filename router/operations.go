package router

import "sync"

// operations keeps the changes of one name apart: who creates, deletes, moves or repairs a tenant has it to itself, and
// another that comes meanwhile is refused rather than kept waiting.
type operations struct {
	mu    sync.Mutex
	under map[string]string // what is being done, by name
}

// begin takes the name, and returns how to give it back. busy says what is being done to it where it is taken.
func (o *operations) begin(name, what string) (end func(), busy string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if doing := o.under[name]; doing != "" {
		return nil, doing
	}
	if o.under == nil {
		o.under = map[string]string{}
	}
	o.under[name] = what
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.under, name)
	}, ""
}
