package node

import (
	"crypto/rand"
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"fenec/engine/fail"
	"fenec/internal/http1"
)

// revisionHeader carries a revision: in the answer to GET .../frozen that of the reported state, in a request that changes a
// tenant the one it was decided on.
const revisionHeader = "Fenec-Revision"

// seqHeader in a request that changes a tenant is the change at which its copy must be.
const seqHeader = "Fenec-Seq"

// revisions identify the state that the node holds under each tenant's name. Every admin change of a name ends the name's
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

func (r *revisions) init() {
	r.run, r.seed = rand.Text(), maphash.MakeSeed()
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

// condition is the state that a request to change a tenant was decided on. The zero condition always holds.
type condition struct {
	revision string // that the name must have; empty for any
	seq      uint64 // change at which the copy must be, if named
	named    bool
}

func readCondition(r *http1.Request) (c condition, err error) {
	for i := range r.Headers {
		h := &r.Headers[i]
		switch {
		case h.Is("fenec-revision"):
			if c.revision != "" || len(h.Value) == 0 {
				return c, fail.New(fail.Invalid, "%s: expected one revision, as GET .../frozen returns it", revisionHeader)
			}
			c.revision = string(h.Value)
		case h.Is("fenec-seq"):
			if c.named {
				return c, fail.New(fail.Invalid, "%s is given twice", seqHeader)
			}
			c.named = true
			if c.seq, err = parseChange(seqHeader, h.Value); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// at refuses a copy that is at another change than the condition names.
func (c condition) at(name string, seq uint64) error {
	if c.named && c.seq != seq {
		return fail.New(fail.Conflict, "tenant %s is at change %d, the request was decided on change %d", name, seq, c.seq)
	}
	return nil
}

// alone runs a change of a tenant's name. It holds the name's gate, refuses if the condition does not hold, and ends the
// name's revision. Every admin request that changes the state under a name uses it.
func (n *Node) alone(name string, c condition, change func() error) error {
	unlock := n.gates.lock(name)
	defer unlock()
	if now := n.revisions.of(name); c.revision != "" && c.revision != now {
		return fail.New(fail.Conflict, "tenant %s has changed since revision %s: it is at %s now, read its state and decide again",
			name, c.revision, now)
	}
	defer n.revisions.end(name)
	return change()
}

// renewed returns the answer to POST .../revision: from then on no request that was decided on an earlier revision of the
// name acts.
func (n *Node) adminRevision(r *http1.Request, name string) http1.Answer {
	c, err := readCondition(r)
	if err == nil {
		err = n.alone(name, c, func() error { return nil })
	}
	if err != nil {
		return n.answerError(r, err)
	}
	revision := n.revisions.of(name)
	body := append(append(append(r.Scratch(), `{"revision":"`...), revision...), `"}`...)
	return http1.Answer{Status: 200, Headers: withRevision(http1.JSON, revision), Body: body}
}

func withRevision(headers []http1.Header, revision string) []http1.Header {
	return append(headers[:len(headers):len(headers)], http1.Header{Name: []byte(revisionHeader), Value: []byte(revision)})
}
