package tenants

import (
	"errors"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/replication"
)

// FollowRequest is what a copy is told to follow.
type FollowRequest struct {
	From    string // the address of a node, such as http://10.0.0.1:8081; empty for Config.ReplicaOf
	Lineage string // that the tenant there must have; empty for any
	Force   bool   // take the tenant there whatever its lineage and term, in place of this copy's content
	Read    bool   // a read replica: no write waits for it
}

// followPatience is how long Follow waits for the other node.
const followPatience = time.Second

// Follow makes a tenant follow the one of that name on another node, and creates a copy if there is none. From then on it refuses
// writes, also if the other node cannot be reached; connected reports whether it could. It fails with fail.Conflict, and changes
// nothing, if the other node answers and the copy must not follow it.
func (s *Set) Follow(name string, req FollowRequest, c Condition) (from string, connected bool, err error) {
	if err := s.CheckWritable(); err != nil {
		return "", false, err
	}
	f := &follows{From: req.From, Lineage: req.Lineage, Force: req.Force, Read: req.Read}
	target := s.target(f)
	if target.From == "" {
		return "", false, fail.New(fail.Conflict, `the node follows no other (--replica-of): expected "from", the address of the node to follow`)
	}
	if err := s.mayFollow(name, target); err != nil {
		return "", false, err
	}
	err = s.withoutFollowing(name, c, func() error {
		found, err := s.exists(name)
		switch {
		case err != nil:
			return err
		case !found:
			return s.createFollowing(name, f)
		}
		return s.demote(name, f, c)
	})
	if err != nil {
		return "", false, err
	}
	return target.From, s.awaitPrimary(name), nil
}

// mayFollow asks the other node and returns why a tenant must not follow it, nil if it may or the node does not answer.
func (s *Set) mayFollow(name string, target replication.Target) error {
	seq, history := uint64(0), ""
	t, err := s.Acquire(name)
	var absent *Absent
	switch {
	case err == nil:
		seq, history = t.DB.Position()
		s.Release(t)
	case !errors.As(err, &absent):
		return err
	}
	err = s.follower.Probe(name, target, seq, history, followPatience)
	var refused *replication.Ended
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// withoutFollowing changes a tenant's role while it follows nothing. Whatever it is after that, it then does.
func (s *Set) withoutFollowing(name string, c Condition, change func() error) error {
	s.follower.Stop(name) // not under the gate: what is being applied may wait for it
	return s.alone(name, c, func() error {
		defer s.goOnFollowing(name)
		if s.follower.Follows(name) {
			return fail.New(fail.Conflict, "the role of tenant %s was changed by another request", name)
		}
		return change()
	})
}

// goOnFollowing makes a copy follow as its file says, unless it does already. It needs the gate.
func (s *Set) goOnFollowing(name string) {
	if s.follower.Follows(name) { // Follow would wait for what may wait for the gate
		return
	}
	f, err := s.readFollows(name)
	if err != nil {
		s.log.Error().Str("tenant", name).Err(err).Msg("whom a tenant follows cannot be read")
		return
	}
	if found, err := s.exists(name); f == nil || err != nil || !found {
		return
	}
	if target := s.target(f); target.From != "" && target.From != unreadable {
		s.follower.Follow(name, target)
		return
	}
	s.log.Warn().Str("tenant", name).Msg("a copy follows nobody and refuses writes: promote it, or tell it whom to follow")
}

// createFollowing creates an empty copy that follows. It needs the gate.
func (s *Set) createFollowing(name string, f *follows) error {
	if _, err := s.writeFollows(name, f); err != nil {
		return errors.Join(err, s.removeFollows(name))
	}
	if err := s.createLocked(name, f); err != nil {
		return errors.Join(err, s.removeFollows(name))
	}
	return nil
}

// demote makes an existing copy follow. It needs the gate.
func (s *Set) demote(name string, f *follows, c Condition) error {
	t, err := s.acquireLocked(name)
	if err != nil {
		return err
	}
	defer s.Release(t)
	seq, _ := t.DB.Position()
	if err := c.at(name, seq); err != nil {
		return err
	}
	was := t.follows.Load()
	err = t.DB.Demote(func() error {
		stays, err := s.writeFollows(name, f)
		if err != nil && was == nil && stays {
			err = errors.Join(err, s.removeFollows(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	t.follows.Store(f)
	t.hold.Store(nil)
	return s.removeAnyHold(name)
}

// awaitPrimary waits until the primary of a tenant has answered or could not be reached, and reports whether the tenant is fed.
func (s *Set) awaitPrimary(name string) bool {
	timer := time.NewTimer(followPatience)
	defer timer.Stop()
	select {
	case <-s.follower.Settled(name):
	case <-timer.C:
	case <-s.stop:
	}
	status, _ := s.follower.Status(name)
	return status.Connected
}

// Promoted is the result of a promotion.
type Promoted struct {
	Promoted bool // false for a copy that was a primary already
	Seq      uint64
	History  string
	Lineage  string
}

// Promote makes a copy that follows take writes, in a history of its own. Without force, only a copy that has caught up since it was
// told to follow is promoted, that holds what its primary held, and that is of the lineage it was told; otherwise Promote fails with
// fail.Conflict and changes nothing.
func (s *Set) Promote(name string, force bool, c Condition) (p Promoted, err error) {
	if err := s.CheckWritable(); err != nil {
		return p, err
	}
	if err := s.CheckExists(name); err != nil {
		return p, err
	}
	status, _ := s.follower.Status(name)
	err = s.withoutFollowing(name, c, func() error {
		t, err := s.acquireLocked(name)
		if err != nil {
			return err
		}
		defer s.Release(t)
		seq, _ := t.DB.Position()
		if err := c.at(name, seq); err != nil {
			return err
		}
		if f := t.follows.Load(); f != nil {
			if err := mayPromote(name, t, f, status); err != nil && !force {
				return err
			}
			if err := t.DB.Promote(func() error { return s.removeFollows(name) }); err != nil {
				return err
			}
			t.follows.Store(nil)
			p.Promoted = true
			s.metrics.promoted.Inc()
		}
		p.Seq, p.History = t.DB.Position()
		p.Lineage = t.DB.Lineage()
		return nil
	})
	return p, err
}

// mayPromote returns why a copy must not be promoted, nil if it may.
func mayPromote(name string, t *Tenant, f *follows, status replication.Status) error {
	switch {
	case status.Diverged:
		return fail.New(fail.Conflict, "tenant %s holds other content here than its primary held: it can only be promoted by force", name)
	case !f.CaughtUp && !status.CaughtUp:
		return fail.New(fail.Conflict, "tenant %s has never caught up with its primary since it was told to follow: it can only be promoted by force", name)
	case f.Lineage != "" && f.Lineage != t.DB.Lineage():
		return fail.New(fail.Conflict, "tenant %s is of lineage %s here and was told to follow %s: it can only be promoted by force", name, t.DB.Lineage(), f.Lineage)
	}
	return nil
}

// Position is where a copy of a tenant is.
type Position struct {
	Follows  bool // its role is replica, else primary
	Seq      uint64
	Durable  uint64 // the last change on disk
	History  string
	Lineage  string
	Frozen   bool
	Writable bool
	From     string // whom it follows; empty for nobody
	Status   replication.Status
	Replicas []replication.Replica // that a primary, or a replica that is followed in turn, feeds
}

// Position returns where a tenant is. It opens the tenant if it is not open.
func (s *Set) Position(name string) (Position, error) {
	t, err := s.Acquire(name)
	if err != nil {
		return Position{}, err
	}
	defer s.Release(t)
	return s.positionOf(t), nil
}

func (s *Set) positionOf(t *Tenant) Position {
	p := Position{Follows: t.DB.Follows(), Durable: t.durable(), Lineage: t.DB.Lineage(), Frozen: t.DB.Frozen(), Writable: t.DB.Writable() == nil}
	p.Seq, p.History = t.DB.Position()
	p.Replicas = s.primary.Copies(t.Name).Replicas()
	if f := t.follows.Load(); f != nil {
		p.From = s.target(f).From
		p.Status, _ = s.follower.Status(t.Name)
		p.Status.CaughtUp = p.Status.CaughtUp || f.CaughtUp
		p.Status.Behind = p.Status.Durable - min(p.Status.Durable, p.Seq)
	}
	return p
}

// Branches returns the histories that a tenant has left, oldest first, and the one that it is in up to its last change.
func (s *Set) Branches(name string) (branches []engine.Branch, lineage string, err error) {
	t, err := s.Acquire(name)
	if err != nil {
		return nil, "", err
	}
	defer s.Release(t)
	return t.DB.Branches(maxListedBranches), t.DB.Lineage(), nil
}

// maxListedBranches is how many histories Branches returns at most.
const maxListedBranches = 1 << 16
