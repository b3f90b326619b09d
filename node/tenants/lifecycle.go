package tenants

import (
	"errors"
	"os"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/replication"
)

func errTaken(name string) error {
	return fail.New(fail.Conflict, "tenant %s exists already", name)
}

// Create creates an empty tenant, opens it and returns its lineage: which tenant the file is, on whatever node. If the Set has a ReplicaOf, the tenant follows the one of that name there.
func (s *Set) Create(name string, c Condition) (lineage string, err error) {
	if err := s.CheckWritable(); err != nil {
		return "", err
	}
	err = s.alone(name, c, func() (err error) {
		if err := s.mustBeFree(name, c); err != nil {
			return err
		}
		if s.config.ReplicaOf != "" {
			defer s.goOnFollowing(name)
			err = s.createFollowing(name, &follows{})
		} else {
			err = s.createLocked(name, nil)
		}
		if err == nil {
			lineage = s.registry.get(name).DB.Lineage()
		}
		return err
	})
	return lineage, err
}

// mustBeFree returns an error if there is a tenant of that name, or if the condition names a change, which only an existing
// tenant can have.
func (s *Set) mustBeFree(name string, c Condition) error {
	found, err := s.exists(name)
	switch {
	case err != nil:
		return err
	case found:
		return errTaken(name)
	case c.Named:
		return fail.New(fail.Conflict, "no tenant %s: the request was decided on its change %d", name, c.Seq)
	}
	return nil
}

// createLocked creates a tenant, which follows if f is not nil. It needs the gate.
func (s *Set) createLocked(name string, f *follows) error {
	s.ending.RLock()
	defer s.ending.RUnlock()
	if s.ended {
		return ErrStopping
	}
	// A hold or a role without a tenant is left of one that was deleted as the node stopped; it does not apply to the new one.
	if err := s.removeAnyHold(name); err != nil {
		return err
	}
	if f == nil {
		if err := s.removeAnyFollows(name); err != nil {
			return err
		}
	}
	s.budget.open.Add(1)
	s.makeRoom(0)
	var db *engine.DB
	o, changes := s.engineOptions(name)
	o.Follower = f != nil
	err := s.withDescriptor(func() (err error) {
		db, err = engine.Create(s.path(name), o)
		return err
	})
	if err != nil {
		s.budget.open.Add(-1)
		if errors.Is(err, os.ErrExist) {
			return errTaken(name)
		}
		return classified("the tenant cannot be created", err)
	}
	s.refusals.forget(name)
	s.metrics.opened.Inc()
	t := s.newTenant(name, db, changes)
	t.follows.Store(f)
	s.makeRoom(0)
	s.registry.put(t)
	return nil
}

// Delete closes a tenant after the requests in it have ended, and removes it, damaged or not.
func (s *Set) Delete(name string, c Condition) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	return s.withoutFollowing(name, c, func() error {
		if c.Named {
			if err := s.stopAt(name, c); err != nil {
				return err
			}
		}
		return s.deleteLocked(name)
	})
}

// stopAt refuses the writes of a tenant that is about to be deleted, so that it stays at the change that the condition names.
// It returns an error if the tenant is at another. It needs the gate.
func (s *Set) stopAt(name string, c Condition) error {
	t, err := s.acquireLocked(name)
	if err != nil {
		return err
	}
	defer s.Release(t)
	if t.DB.Follows() { // and is fed no more
		seq, _ := t.DB.Position()
		return c.at(name, seq)
	}
	seq, err := t.DB.Freeze()
	if err == nil {
		err = c.at(name, seq)
	}
	if err != nil && t.hold.Load() == nil {
		t.DB.Thaw()
	}
	return err
}

func (s *Set) deleteLocked(name string) error {
	// Closed first: a tenant whose file is removed must not keep answering from memory.
	if t := s.registry.get(name); t != nil {
		t.shut()
		_ = s.closeTenant(t) // logged there; the file is removed anyway
	}
	if err := s.CheckExists(name); err != nil {
		return err
	}
	// The file is removed, and its removal synced, before its hold: after a stop in between, the file must not accept writes
	// at the next start.
	if err := s.fs.Remove(s.path(name)); err != nil {
		return storageError("the tenant cannot be removed", err)
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return storageError("the tenant's removal cannot be synced", err)
	}
	s.refusals.forget(name)
	s.primary.End(name, &replication.Ended{Status: 404, Sentence: "no tenant " + name + " here: it was deleted"})
	return errors.Join(s.removeAnyHold(name), s.removeAnyFollows(name), s.removeForked(name))
}
