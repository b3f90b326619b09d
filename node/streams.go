package node

import (
	"sync"
	"time"

	"fenec/internal/http1"
)

// endGrace is how long a stream that is to end may go on sending to a client that is slow to take it.
const endGrace = time.Second

// streams are the live queries of a tenant: those that run, so that they can be ended, and their shapes.
type streams struct {
	mu      sync.Mutex
	running map[*http1.Writer]struct{}
	shapes  map[string]*shape
}

// share answers the shape that all streams which want the same have, for one more stream.
func (s *streams) share(wanted *shape) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.shapes[wanted.key]
	if shared == nil {
		if s.shapes == nil {
			s.shapes = map[string]*shape{}
		}
		shared = wanted
		s.shapes[shared.key] = shared
	}
	shared.uses.Add(1)
	return shared
}

// letGo counts a stream of a shape out.
func (s *streams) letGo(one *shape) {
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

// hurry wakes them all to find out that they are to end.
func (s *streams) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.running {
		w.Hurry(endGrace)
	}
}
