package node

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"fenec/engine"
	"fenec/engine/claim"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/vfs"
)

const fileSuffix = ".fenec"

// closing is added to a tenant's uses to refuse all requests: no number of requests brings the sum above zero.
const closing = -1 << 40

// tenant is one open tenant. Every request enters and leaves it, and a holder of its gate closes it.
type tenant struct {
	name   string // empty for the one database of a node over a file
	db     *engine.DB
	feed   *feed.Feed
	claims *claim.Queues
	uses   atomic.Int64 // requests in it, and closing once it is being closed
	last   atomic.Int64 // when the last request left, in nanoseconds of the node's clock
	memory atomic.Int64 // bytes it held when last measured
	file   atomic.Int64 // bytes of its file, likewise
	dead   atomic.Int64 // bytes of the file that a compact would remove
	hold   atomic.Pointer[hold]

	gone chan struct{} // closed when the tenant must be closed although in use: streams from it end
	left chan struct{} // wakes the goroutine that waits for the last request to leave

	streams streams
}

func (n *Node) newTenant(name string, db *engine.DB, changes *feed.Feed) *tenant {
	t := &tenant{name: name, db: db, feed: changes, claims: claim.New(db, n.clock), gone: make(chan struct{}), left: make(chan struct{}, 1)}
	t.last.Store(n.clock().UnixNano())
	n.measure(t)
	return t
}

// enter counts a request that enters, and returns false if the tenant is being closed.
func (t *tenant) enter() bool {
	if t.uses.Add(1) > 0 {
		return true
	}
	t.leave()
	return false
}

// leave counts a request that leaves.
func (t *tenant) leave() {
	if t.uses.Add(-1) == closing {
		select {
		case t.left <- struct{}{}:
		default:
		}
	}
}

// release ends a request's use of the tenant.
func (n *Node) release(t *tenant) {
	t.last.Store(n.clock().UnixNano())
	t.leave()
}

// shut refuses requests from now on and blocks until the last one has left.
func (t *tenant) shut() {
	close(t.gone)
	t.streams.endSoon()
	t.uses.Add(closing)
	for t.uses.Load() != closing {
		<-t.left
	}
}

// shutIfIdle refuses requests from now on if none is in the tenant, and reports whether it does.
func (t *tenant) shutIfIdle() bool { return t.uses.CompareAndSwap(0, closing) }

// acquire returns the tenant of that name, and opens it if it is not open. The caller releases it.
func (n *Node) acquire(name string) (*tenant, error) {
	if t := n.registry.get(name); t != nil && t.enter() {
		return t, nil
	}
	if err := n.refusals.get(name, n.clock()); err != nil {
		return nil, err
	}
	if err := n.mustExist(name); err != nil {
		return nil, err
	}
	unlock := n.gates.lock(name)
	defer unlock()
	return n.acquireLocked(name)
}

// acquireLocked is acquire for the holder of the name's gate.
func (n *Node) acquireLocked(name string) (*tenant, error) {
	if t := n.registry.get(name); t != nil && t.enter() {
		return t, nil
	}
	if err := n.refusals.get(name, n.clock()); err != nil {
		return nil, err
	}
	if err := n.mustExist(name); err != nil {
		return nil, err
	}
	n.ending.RLock()
	defer n.ending.RUnlock()
	if n.ended {
		return nil, errStopping()
	}
	t, err := n.openLocked(name)
	if err != nil {
		return nil, n.errUnopened(name, err)
	}
	t.uses.Store(1)
	n.register(t)
	return t, nil
}

// register makes the tenant visible to requests.
func (n *Node) register(t *tenant) {
	n.registry.put(t)
	n.metrics.opened.Inc()
	n.compactIfDue(t)
}

// openLocked opens a tenant's file, and closes others if descriptors or memory are short. It needs the gate.
func (n *Node) openLocked(name string) (*tenant, error) {
	path := n.path(name)
	size := int64(0)
	if info, err := n.fs.Stat(path); err == nil {
		size = info.Size // the least that the engine will hold
	}
	n.budget.open.Add(1)
	n.makeRoom(size)
	var h *hold
	var db *engine.DB
	o, changes := n.engineOptions(name)
	err := n.withDescriptor(func() (err error) {
		if h, err = n.readHold(name); err == nil {
			db, err = engine.Open(path, o)
		}
		return err
	})
	if err != nil {
		n.budget.open.Add(-1)
		return nil, err
	}
	t := n.newHeldTenant(name, db, changes, h)
	n.makeRoom(0)
	return t, nil
}

// newHeldTenant is newTenant for a tenant that h holds, nil for none.
func (n *Node) newHeldTenant(name string, db *engine.DB, changes *feed.Feed, h *hold) *tenant {
	if h != nil {
		db.Refreeze()
	}
	t := n.newTenant(name, db, changes)
	t.hold.Store(h)
	return t
}

// withDescriptor calls open; if the process has run out of descriptors, it closes idle tenants until there is one.
func (n *Node) withDescriptor(open func() error) error {
	for {
		err := open()
		if !isOutOfDescriptors(err) || !n.closeLeastUsed() {
			return err
		}
	}
}

func isOutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// closeTenant syncs and closes a database that no request is in. It needs the gate.
func (n *Node) closeTenant(t *tenant) error {
	if t != n.single {
		n.registry.remove(t.name)
		n.budget.open.Add(-1)
		n.metrics.closed.Inc()
	}
	n.budget.count(t, 0, 0, 0)
	err := t.db.Close()
	n.compactor.forget(t.name) // it is no longer due
	if err != nil {
		n.log.Error().Str("tenant", t.name).Err(err).Msg("closing a tenant failed")
	}
	return err
}

// measure asks the engine what the tenant holds and updates the node's sums. It returns the bytes of memory.
func (n *Node) measure(t *tenant) int64 {
	s := t.db.Stats()
	memory := s.MemoryBytes + t.feed.Bytes()
	n.budget.count(t, memory, s.FileBytes, s.DeadBytes)
	return memory
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name+fileSuffix) }

// exists reports whether there is a tenant of that name, damaged or not.
func (n *Node) exists(name string) (bool, error) {
	_, err := n.fs.Stat(n.path(name))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	}
	return false, fail.New(fail.Storage, "the directory of the tenants cannot be read: %s", vfs.Reason(err))
}

// mustExist returns an error if there is no tenant of that name.
func (n *Node) mustExist(name string) error {
	found, err := n.exists(name)
	if err == nil && !found {
		err = errAbsent(name)
	}
	return err
}

// errUnopened returns the error for a tenant that could not be opened, and stores it for a while if the reason is in its
// file.
func (n *Node) errUnopened(name string, err error) error {
	n.log.Error().Str("tenant", name).Err(err).Msg("a tenant could not be opened")
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
	n.refusals.put(name, refused, n.clock())
	return refused
}

func errAbsent(name string) error { return &absent{name} }

// absent is the error for a tenant that does not exist.
type absent struct{ name string }

func (e *absent) Error() string { return "no tenant " + e.name + " here" }

func errStopping() error {
	return fail.New(fail.Closed, "the node is stopping, send the request again")
}

// refusalTime is how long requests for a tenant that could not be opened are answered from memory, so that not each of them
// reads a damaged file whole.
const refusalTime = time.Second
