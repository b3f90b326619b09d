package tenants

import (
	"sync"
	"time"
)

// refusals are the tenants that could not be opened lately and why. For RefusalTime their requests are answered from here,
// which costs other tenants nothing.
type refusals struct {
	mu    sync.Mutex
	names map[string]refusal
}

type refusal struct {
	err   error
	until time.Time
}

func (r *refusals) get(name string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.names[name]
	if !ok || !now.Before(one.until) {
		return nil
	}
	return one.err
}

func (r *refusals) put(name string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]refusal{}
	}
	r.names[name] = refusal{err, now.Add(RefusalTime)}
}

func (r *refusals) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

// expire removes the entries whose time is over.
func (r *refusals) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, one := range r.names {
		if !now.Before(one.until) {
			delete(r.names, name)
		}
	}
}
