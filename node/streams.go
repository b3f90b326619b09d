package node

import (
	"sync"
	"time"

	"fenec/internal/http1"
	"fenec/node/tenants"
)

// endGrace is how long a stream that must end may keep sending to a slow client.
const endGrace = time.Second

// streams are the live queries of a tenant: the running ones, so that they can be ended, and their shapes.
type streams struct {
	mu      sync.Mutex
	running map[*http1.Writer]struct{}
	shapes  map[shapeKey]*shape
}

func newStreams() tenants.Streams { return &streams{} }

// streamsOf returns the live queries of a tenant.
func streamsOf(t *tenants.Tenant) *streams { return t.Streams.(*streams) }

// share returns the shape shared by all streams that ask for the same rows, for one more stream.
func (s *streams) share(wanted *shape) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.shapes[wanted.key]
	if shared == nil {
		if s.shapes == nil {
			s.shapes = map[shapeKey]*shape{}
		}
		shared = wanted
		s.shapes[shared.key] = shared
	}
	shared.uses.Add(1)
	return shared
}

// unshare removes a stream of a shape from its count.
func (s *streams) unshare(one *shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.uses.Add(-1) == 0 {
		delete(s.shapes, one.key)
	}
}

func (s *streams) add(w *http1.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[*http1.Writer]struct{}{}
	}
	s.running[w] = struct{}{}
}

func (s *streams) remove(w *http1.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, w)
}

// EndSoon wakes them all, so that each sees that it must end.
func (s *streams) EndSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.running {
		w.Shutdown(endGrace)
	}
}
