package node

import (
	"errors"
	"os"

	"fenec/engine"
	"fenec/engine/fail"
)

func errTaken(name string) error {
	return fail.New(fail.Conflict, "tenant %s exists already", name)
}

// create creates an empty tenant and opens it.
func (n *Node) create(name string, c condition) error {
	return n.alone(name, c, func() error {
		if err := n.mustBeFree(name, c); err != nil {
			return err
		}
		return n.createLocked(name)
	})
}

// mustBeFree returns an error if there is a tenant of that name, or if the condition names a change, which only an existing
// tenant can have.
func (n *Node) mustBeFree(name string, c condition) error {
	found, err := n.exists(name)
	switch {
	case err != nil:
		return err
	case found:
		return errTaken(name)
	case c.named:
		return fail.New(fail.Conflict, "no tenant %s: the request was decided on its change %d", name, c.seq)
	}
	return nil
}

func (n *Node) createLocked(name string) error {
	n.ending.RLock()
	defer n.ending.RUnlock()
	if n.ended {
		return errStopping()
	}
	// A hold without a tenant is left of one that was deleted as the node stopped; it does not apply to the new one.
	if err := n.removeHold(name); err != nil {
		return err
	}
	n.budget.open.Add(1)
	n.makeRoom(0)
	var db *engine.DB
	o, changes := n.engineOptions(name)
	err := n.withDescriptor(func() (err error) {
		db, err = engine.Create(n.path(name), o)
		return err
	})
	if err != nil {
		n.budget.open.Add(-1)
		if errors.Is(err, os.ErrExist) {
			return errTaken(name)
		}
		return classified("the tenant cannot be created", err)
	}
	n.refusals.forget(name)
	n.metrics.opened.Inc()
	t := n.newTenant(name, db, changes)
	n.makeRoom(0)
	n.registry.put(t)
	return nil
}

// classified returns an error of the file system with its kind; an error with a kind keeps it.
func classified(what string, err error) error {
	if fail.KindOf(err) != 0 {
		return err
	}
	return storageError(what, err)
}

// delete closes a tenant after the requests in it have ended, and removes it, damaged or not.
func (n *Node) delete(name string, c condition) error {
	return n.alone(name, c, func() error {
		if c.named {
			if err := n.stopAt(name, c); err != nil {
				return err
			}
		}
		return n.deleteLocked(name)
	})
}

// stopAt refuses the writes of a tenant that is about to be deleted, so that it stays at the change that the condition names.
// It returns an error if the tenant is at another. It needs the gate.
func (n *Node) stopAt(name string, c condition) error {
	t, err := n.acquireLocked(name)
	if err != nil {
		return err
	}
	defer n.release(t)
	seq, err := t.db.Freeze()
	if err == nil {
		err = c.at(name, seq)
	}
	if err != nil && t.hold.Load() == nil {
		t.db.Thaw()
	}
	return err
}

func (n *Node) deleteLocked(name string) error {
	// Closed first: a tenant whose file is removed must not keep answering from memory.
	if t := n.registry.get(name); t != nil {
		t.shut()
		_ = n.closeTenant(t) // logged there; the file is removed anyway
	}
	if err := n.mustExist(name); err != nil {
		return err
	}
	// The file is removed, and its removal synced, before its hold: after a stop in between, the file must not accept writes
	// at the next start.
	if err := n.fs.Remove(n.path(name)); err != nil {
		return storageError("the tenant cannot be removed", err)
	}
	if err := n.fs.SyncDir(n.dir); err != nil {
		return storageError("the tenant's removal cannot be synced", err)
	}
	n.refusals.forget(name)
	return n.removeHold(name)
}
