package node

import (
	"errors"
	"os"

	"fenec/engine"
	"fenec/engine/fail"
)

func errTaken(name string) error {
	return fail.New(fail.Conflict, "there is a tenant %s already", name)
}

// create makes an empty tenant and opens it.
func (n *Node) create(name string, c condition) error {
	return n.alone(name, c, func() error {
		if err := n.mustBeFree(name, c); err != nil {
			return err
		}
		return n.createLocked(name)
	})
}

// mustBeFree is an error where there is a tenant of that name, or where the condition names a change, which only a
// tenant can be at.
func (n *Node) mustBeFree(name string, c condition) error {
	found, err := n.exists(name)
	switch {
	case err != nil:
		return err
	case found:
		return errTaken(name)
	case c.named:
		return fail.New(fail.Conflict, "there is no tenant %s, the request was decided on its change %d", name, c.seq)
	}
	return nil
}

func (n *Node) createLocked(name string) error {
	n.ending.RLock()
	defer n.ending.RUnlock()
	if n.ended {
		return errStopping()
	}
	// A hold that lies here without its tenant is of one deleted as the node stopped; it is none of the new one's.
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
		return classified("the tenant cannot be made", err)
	}
	n.refusals.forget(name)
	n.metrics.opened.Inc()
	t := n.newTenant(name, db, changes)
	n.makeRoom(0)
	n.registry.put(t)
	return nil
}

// classified gives an error of the file system its kind; one that has a kind keeps it.
func classified(what string, err error) error {
	if fail.KindOf(err) != 0 {
		return err
	}
	return storageError(what, err)
}

// delete closes a tenant once the requests in it have ended, and removes it, damaged or not.
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

// stopAt refuses the writes of a tenant about to be deleted, so that it stays at the change the condition names, and is
// an error where it is at another. It needs the gate.
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
	// Closed first: a tenant whose file somebody took away must not go on answering from memory.
	if t := n.registry.get(name); t != nil {
		t.shut()
		_ = n.closeTenant(t) // logged there; the file goes anyway
	}
	if err := n.mustExist(name); err != nil {
		return err
	}
	// The file goes first, and is gone from the disk, before its hold does: a node that stops in between must not come
	// back with the file taking writes.
	if err := n.fs.Remove(n.path(name)); err != nil {
		return storageError("the tenant cannot be removed", err)
	}
	if err := n.fs.SyncDir(n.dir); err != nil {
		return storageError("the tenant's removal cannot be synced", err)
	}
	n.refusals.forget(name)
	return n.removeHold(name)
}
