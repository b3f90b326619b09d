package tenants

import (
	"hash/maphash"
	"io"
	"strconv"
	"sync/atomic"

	"fenec/engine/fail"
	"fenec/internal/random"
)

// revisions identify the state that a Set holds under each tenant's name. Every change of a name ends the name's
// revision, and no revision is used twice: not after a delete and an install, not after a restart. So a request that names
// the revision it was decided on acts on that copy in that state, or not at all, however late and however often it arrives.
//
// A revision is never stored: one of an earlier process matches nothing, which refuses too much and never too little. Names
// share counters, so a revision may end without a change of its name. That too only refuses too much.
type revisions struct {
	run    string // of this process: random
	seed   maphash.Seed
	counts [4096]atomic.Uint64
}

func (r *revisions) init(source io.Reader) {
	r.run, r.seed = random.Text(source), maphash.MakeSeed()
}

func (r *revisions) count(name string) *atomic.Uint64 {
	return &r.counts[maphash.String(r.seed, name)%uint64(len(r.counts))]
}

// of returns the revision of a name. A caller that reports the copy's state reads the revision first: after a change in
// between, the reported revision matches nothing.
func (r *revisions) of(name string) string {
	return r.run + "-" + strconv.FormatUint(r.count(name).Load(), 10)
}

// end ends the revision of a name. It needs the name's gate, so that no change that was checked against it still runs.
func (r *revisions) end(name string) { r.count(name).Add(1) }

// Condition is the state that a request to change a tenant was decided on. The zero Condition always holds.
type Condition struct {
	Revision string // that the name must have; empty for any
	Seq      uint64 // change at which the copy must be, if Named
	Named    bool
}

// at refuses a copy that is at another change than the condition names.
func (c Condition) at(name string, seq uint64) error {
	if c.Named && c.Seq != seq {
		return fail.New(fail.Conflict, "tenant %s is at change %d, the request was decided on change %d", name, seq, c.Seq)
	}
	return nil
}

// alone runs a change of a tenant's name. It holds the name's gate, refuses if the condition does not hold, and ends the
// name's revision. Everything that changes the state under a name uses it.
func (s *Set) alone(name string, c Condition, change func() error) error {
	unlock := s.gates.lock(name)
	defer unlock()
	if now := s.revisions.of(name); c.Revision != "" && c.Revision != now {
		return fail.New(fail.Conflict, "tenant %s has changed since revision %s: it is at %s now, read its state and decide again",
			name, c.Revision, now)
	}
	defer s.revisions.end(name)
	return change()
}

// Revision returns the revision of the state under a name, also of one without a tenant. A caller that reports the state
// reads the revision first.
func (s *Set) Revision(name string) string { return s.revisions.of(name) }

// Renew ends the revision of a name and returns the next one: from then on no request that was decided on an earlier revision
// acts.
func (s *Set) Renew(name string, c Condition) (revision string, err error) {
	if err := s.alone(name, c, func() error { return nil }); err != nil {
		return "", err
	}
	return s.Revision(name), nil
}
