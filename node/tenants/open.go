package tenants

import (
	"errors"
	"syscall"
	"time"

	"fenec/engine"
	"fenec/engine/claim"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/vfs"
)

// Find returns the open tenant of that name, nil if it is not open. It takes no lock and does not keep the name. The tenant may
// be closed at any time unless the caller enters it.
func (s *Set) Find(name []byte) *Tenant { return s.registry.find(name) }

// Single returns the tenant of a Set over one file, nil for a Set over a directory.
func (s *Set) Single() *Tenant { return s.single }

// Acquire returns the tenant of that name, and opens it if it is not open. The caller releases it.
func (s *Set) Acquire(name string) (*Tenant, error) {
	if t := s.registry.get(name); t != nil && t.Enter() {
		return t, nil
	}
	if err := s.Refusal(name); err != nil {
		return nil, err
	}
	if err := s.CheckExists(name); err != nil {
		return nil, err
	}
	unlock := s.gates.lock(name)
	defer unlock()
	return s.acquireLocked(name)
}

// acquireLocked is Acquire for the holder of the name's gate.
func (s *Set) acquireLocked(name string) (*Tenant, error) {
	if t := s.registry.get(name); t != nil && t.Enter() {
		return t, nil
	}
	if err := s.Refusal(name); err != nil {
		return nil, err
	}
	if err := s.CheckExists(name); err != nil {
		return nil, err
	}
	s.ending.RLock()
	defer s.ending.RUnlock()
	if s.ended {
		return nil, ErrStopping
	}
	t, err := s.openLocked(name)
	if err != nil {
		return nil, s.errUnopened(name, err)
	}
	t.uses.Store(1)
	s.admit(t)
	return t, nil
}

// admit makes the tenant visible to requests.
func (s *Set) admit(t *Tenant) {
	s.registry.put(t)
	s.metrics.opened.Inc()
	s.compactIfDue(t)
	s.primary.Opened(t.Name)
}

// openLocked opens a tenant's file, and closes others if descriptors or memory are short. It needs the gate.
func (s *Set) openLocked(name string) (*Tenant, error) {
	if err := s.syncNames(); err != nil {
		return nil, err
	}
	path := s.path(name)
	size := int64(0)
	if info, err := s.fs.Stat(path); err == nil {
		size = info.Size // the least that the engine will hold
	}
	s.budget.open.Add(1)
	s.makeRoom(size)
	var h *hold
	var f *follows
	var db *engine.DB
	o, changes := s.engineOptions(name)
	err := s.withDescriptor(func() (err error) {
		if h, err = s.readHold(name); err != nil {
			return err
		}
		if f, err = s.readFollows(name); err != nil {
			return err
		}
		o.Follower = f != nil
		db, err = engine.Open(path, o)
		return err
	})
	if err != nil {
		s.budget.open.Add(-1)
		return nil, err
	}
	t := s.newHeldTenant(name, db, changes, h)
	t.follows.Store(f)
	s.makeRoom(0)
	return t, nil
}

func (s *Set) newTenant(name string, db *engine.DB, changes *feed.Feed) *Tenant {
	t := &Tenant{
		Name: name, DB: db, Feed: changes, Claims: claim.New(db, s.clock), Streams: s.config.NewStreams(),
		gone: make(chan struct{}), left: make(chan struct{}, 1),
	}
	t.last.Store(s.clock().UnixNano())
	s.Measure(t)
	return t
}

// newHeldTenant is newTenant for a tenant that h holds, nil for none.
func (s *Set) newHeldTenant(name string, db *engine.DB, changes *feed.Feed, h *hold) *Tenant {
	if h != nil && !db.Follows() { // one that is left of a freeze before it was told to follow has no effect
		db.Refreeze()
	} else {
		h = nil
	}
	t := s.newTenant(name, db, changes)
	t.hold.Store(h)
	return t
}

// Release ends a caller's use of a tenant that it has acquired or entered.
func (s *Set) Release(t *Tenant) {
	t.last.Store(s.clock().UnixNano())
	t.Leave()
}

// Each calls fn with each open tenant, and holds it open meanwhile.
func (s *Set) Each(fn func(*Tenant)) {
	visit := func(t *Tenant) bool {
		if t.Enter() {
			defer t.Leave()
			fn(t)
		}
		return true
	}
	if s.single != nil {
		visit(s.single)
	}
	s.registry.each(visit)
}

// withDescriptor calls open; if the process has run out of descriptors, it closes idle tenants until there is one.
func (s *Set) withDescriptor(open func() error) error {
	for {
		err := open()
		if !isOutOfDescriptors(err) || !s.closeLeastUsed() {
			return err
		}
	}
}

func isOutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// closeTenant syncs and closes a database that no request is in. It needs the gate.
func (s *Set) closeTenant(t *Tenant) error {
	if t != s.single {
		s.registry.remove(t.Name)
		s.budget.open.Add(-1)
		s.metrics.closed.Inc()
	}
	s.budget.count(t, 0, 0, 0)
	err := t.DB.Close()
	s.compactor.forget(t.Name) // it is no longer due
	s.primary.Closed(t.Name)
	if err != nil {
		s.log.Error().Str("tenant", t.Name).Err(err).Msg("closing a tenant failed")
	}
	return err
}

// Measure asks the engine what a tenant holds and updates the sums of the budget. It returns the bytes of memory.
func (s *Set) Measure(t *Tenant) int64 {
	stats := t.DB.Stats()
	memory := stats.MemoryBytes + t.Feed.Bytes()
	s.budget.count(t, memory, stats.FileBytes, stats.DeadBytes)
	return memory
}

// errUnopened returns the error for a tenant that could not be opened, and stores it for a while if the reason is in its
// file.
func (s *Set) errUnopened(name string, err error) error {
	s.log.Error().Str("tenant", name).Err(err).Msg("a tenant could not be opened")
	if isOutOfDescriptors(err) {
		return fail.New(fail.Closed, "too many files are open, send the request again")
	}
	reason := vfs.Reason(err)
	var e *fail.Error
	if errors.As(err, &e) {
		reason = e.Message
	}
	kind := fail.Storage
	if fail.KindOf(err) == fail.Damaged {
		kind = fail.Damaged
	}
	refused := fail.New(kind, "the file of tenant %s cannot be opened: %s; `fenec check` reports what can be saved", name, reason)
	s.refusals.put(name, refused, s.clock())
	return refused
}

// Refusal returns why the tenant of that name could not be opened lately, nil if it may be tried.
func (s *Set) Refusal(name string) error { return s.refusals.get(name, s.clock()) }

// Absent is the error for a tenant that does not exist.
type Absent struct{ Name string }

func (e *Absent) Error() string { return "no tenant " + e.Name + " here" }

// ErrStopping is the error of a request that comes too late.
var ErrStopping error = fail.New(fail.Closed, "the node is stopping, send the request again")

// RefusalTime is how long requests for a tenant that could not be opened are answered from memory, so that not each of them
// reads a damaged file whole.
const RefusalTime = time.Second
