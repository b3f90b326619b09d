package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Options configure a File. FS and Clock are required.
type Options struct {
	FS    vfs.FS
	Clock func() time.Time
	Rand  io.Reader // nil is the system's
	Log   zerolog.Logger
}

// File is a directory in a file of the engine. A change is one block of it, on disk before the maps show it and before
// Change returns. Changes of different rows run concurrently and share a sync.
type File[N comparable] struct {
	Maps[N]
	path string
	opts engine.Options
	log  zerolog.Logger
	lock io.Closer

	shared   sync.RWMutex // guards the fields up to folding
	store    *store       // nil after it could not be opened again
	failure  error        // why it could not
	reopened time.Time    // when it was last opened again, or could not be
	closed   bool

	folding sync.Mutex

	mu       sync.Mutex
	changing map[key]struct{} // the rows being changed
}

// Open opens or creates the file at path and reads its rows into the maps. No other process opens it until Close.
func Open[N comparable](path string, o Options, owner Owner[N]) (*File[N], error) {
	lock, err := o.FS.Lock(path + ".lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("the directory %s is in use by another router", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the directory %s cannot be locked: %s", path, vfs.Reason(err))
	}
	f := &File[N]{
		path: path, log: o.Log, lock: lock, changing: map[key]struct{}{},
		opts: engine.Options{FS: o.FS, Clock: o.Clock, Rand: o.Rand, Log: o.Log},
	}
	f.init(owner)
	if f.store, err = openStore(path, f.opts); err == nil {
		if err = f.foldAll(f.store); err == nil {
			err = f.check()
		}
	}
	if err != nil {
		f.Close() // the error of the open is the one to return
		return nil, fmt.Errorf("the directory %s cannot be opened: %w", path, err)
	}
	return f, nil
}

// Close syncs and closes the file. Changes then fail; the maps stay. Further calls do nothing.
func (f *File[N]) Close() error {
	f.shared.Lock()
	defer f.shared.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	if f.store != nil {
		err = f.store.close()
	}
	return errors.Join(err, f.lock.Close())
}

// check fails if a tenant names a node without a row.
func (f *File[N]) check() (err error) {
	f.Each(func(t *Tenant, _ N) {
		node, target, replica := t.names()
		for _, name := range []string{node, target, replica} {
			if name != "" && f.unknown(name) {
				err = fail.New(fail.Damaged, "tenant %s is on node %q, which is not recorded", t.Name, name)
			}
		}
	})
	return err
}

func (f *File[N]) unknown(node string) bool {
	row, _ := f.Node(node)
	return row == nil
}

// edit is a change of one row.
type edit struct {
	row        key
	statements []engine.Statement
	alone      bool         // no other change runs meanwhile
	current    func() bool  // reports whether the row is the one that is to be replaced
	allowed    func() error // returns why the table does not allow the change
	made       func() bool  // reports whether the row was replaced by the one that the change makes
}

// Change replaces a tenant's row: old is the current row, nil for none, and next the new one, nil to delete it. It returns
// the new row with its version. It fails with a *Conflict if old is not the current row, with a *NoNode if next names a node
// without a row, and with an *InDoubt if it is not known whether the change is on disk. After any other error nothing has
// changed.
func (f *File[N]) Change(old, next *Tenant) (now *Tenant, err error) {
	e := edit{row: key{what: tenantRow}}
	if next == nil {
		e.row.name = old.Name
		e.statements = deleteTenant(e.row.name)
	} else {
		e.row.name = next.Name
		e.statements = []engine.Statement{putTenant(next, old == nil)}
	}
	e.current = func() bool {
		now = f.Tenant(e.row.name)
		return (now == nil) == (old == nil) && (now == nil || now.Version == old.Version)
	}
	e.allowed = func() error {
		node, target, replica := next.names()
		for _, name := range []string{node, target, replica} {
			if name != "" && f.unknown(name) {
				return &NoNode{name}
			}
		}
		return f.isPlace(next)
	}
	e.made = func() bool { return !e.current() && now.same(next) }
	if err := f.change(&e); err != nil {
		return nil, err
	}
	return f.Tenant(e.row.name), nil
}

// ChangeNode is Change of a node's row. It fails with a *Held if next is nil and tenants name the node, and with a *Held or a
// *Paired if pairs do not allow it.
func (f *File[N]) ChangeNode(old, next *Node) error {
	e := edit{row: key{what: nodeRow}, alone: next == nil || next.Standby != "" && (old == nil || old.Standby != next.Standby)}
	if next == nil {
		e.row.name = old.Name
		e.statements = deleteNode(e.row.name)
	} else {
		e.row.name = next.Name
		e.statements = []engine.Statement{putNode(next, old == nil)}
	}
	var now *Node
	e.current = func() bool {
		now, _ = f.Node(e.row.name)
		return (now == nil) == (old == nil) && (now == nil || now.Version == old.Version)
	}
	e.allowed = func() error {
		switch {
		case next == nil:
			return f.isFree(e.row.name)
		case e.alone:
			return f.mayPair(next)
		}
		return nil
	}
	e.made = func() bool { return !e.current() && now.same(next) }
	return f.change(&e)
}

func (f *File[N]) change(e *edit) error {
	f.mu.Lock()
	_, changing := f.changing[e.row]
	if changing || !e.current() {
		f.mu.Unlock()
		return &Conflict{e.row.what, e.row.name}
	}
	f.changing[e.row] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.changing, e.row)
	}()
	if err := f.usable(); err != nil {
		return err
	}
	on, err := f.write(e)
	if !isStorage(err) {
		return err
	}
	if f.reopen(on) != nil {
		return &InDoubt{err}
	}
	if e.made() {
		return nil
	}
	return err
}

// write writes a change to the file and folds it into the maps. It returns the store that it wrote to.
func (f *File[N]) write(e *edit) (on *store, err error) {
	lock := f.shared.RLocker()
	if e.alone {
		lock = &f.shared
	}
	lock.Lock()
	defer lock.Unlock()
	switch {
	case f.closed:
		return nil, errClosed()
	case f.store == nil:
		return nil, f.failure
	}
	if err := e.allowed(); err != nil {
		return nil, err
	}
	version, err := f.store.exec(e.statements...)
	if err != nil {
		return f.store, err
	}
	return f.store, f.foldTo(f.store, version)
}

func errClosed() error { return fail.New(fail.Closed, "the directory is closed") }

// Begin acquires the right to work on a tenant. It fails with a *Busy if another operation has it; but it waits for a repair
// to end, up to 10 seconds and until ctx ends. It fails if a change may be on disk that the maps do not show.
func (f *File[N]) Begin(ctx context.Context, tenant string, operation Operation) (*Work, error) {
	w, err := f.works.begin(ctx, tenant, operation)
	if err != nil {
		return nil, err
	}
	return f.admit(w)
}

// TryBegin is Begin that waits for nothing.
func (f *File[N]) TryBegin(tenant string, operation Operation) (*Work, error) {
	w, other := f.works.try(tenant, operation)
	if w == nil {
		return nil, &Busy{tenant, other.operation}
	}
	return f.admit(w)
}

func (f *File[N]) admit(w *Work) (*Work, error) {
	if err := f.usable(); err != nil {
		w.End()
		return nil, err
	}
	return w, nil
}

// A file is compacted if it is over compactBytes and over compactFactor times what its rows need.
const (
	compactBytes  = 1 << 20
	compactFactor = 4
	rowBytes      = 200
)

// Tidy compacts the file if most of it is rows that have changed since.
func (f *File[N]) Tidy() {
	f.shared.RLock()
	s := f.store
	f.shared.RUnlock()
	if s == nil {
		return
	}
	nodes, tenants := f.Len()
	size := s.db.Stats().FileBytes
	if size < compactBytes || size < int64(compactFactor*rowBytes*(nodes+tenants)) {
		return
	}
	if err := s.db.Compact(context.Background()); err != nil { // not under the lock: a close stops it
		f.log.Warn().Err(err).Msg("the directory could not be compacted")
	}
}
