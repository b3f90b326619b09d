package node

import (
	"crypto/rand"
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"fenec/engine/fail"
	"fenec/internal/http1"
)

// revisionHeader carries a revision: in the answer to GET .../frozen the one the answer is of, in a request that changes
// a tenant the one it was decided on.
const revisionHeader = "Fenec-Revision"

// seqHeader in a request that changes a tenant is the change at which its copy has to be.
const seqHeader = "Fenec-Seq"

// revisions names what the node holds under each tenant's name. Every admin change of a name ends the name's revision,
// and no revision comes twice: not after a delete and an install, not after a restart. So a request that names the
// revision it was decided on acts on that very copy in that very state, or not at all, however late it arrives and
// however often.
//
// A revision is never written down: one of an earlier process matches nothing, which refuses too much and never too
// little. Names share counters, so a revision may end without a change of its name. That too only refuses too much.
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

// of returns the revision of a name. A caller that describes the copy reads its revision first: a change in between then
// leaves a description that matches nothing.
func (r *revisions) of(name string) string {
	return r.run + "-" + strconv.FormatUint(r.count(name).Load(), 10)
}

// end ends the revision of a name. It needs the name's gate, so that no change that was judged by it is still at work.
func (r *revisions) end(name string) { r.count(name).Add(1) }

// condition is what a request that changes a tenant was decided on. The zero condition asks for nothing.
type condition struct {
	revision string // that the name must have; empty for any
	seq      uint64 // change at which the copy must be, where named
	named    bool
}

func readCondition(r *http1.Request) (c condition, err error) {
	for i := range r.Headers {
		h := &r.Headers[i]
		switch {
		case h.Is("fenec-revision"):
			if c.revision != "" || len(h.Value) == 0 {
				return c, fail.New(fail.Invalid, "%s: expected one revision, as GET .../frozen answers it", revisionHeader)
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

// alone runs a change of a tenant's name. It holds the name's gate, refuses where the condition does not hold, and ends
// the name's revision. Every admin request that changes what is under a name goes through here.
func (n *Node) alone(name string, c condition, change func() error) error {
	unlock := n.gates.lock(name)
	defer unlock()
	if now := n.revisions.of(name); c.revision != "" && c.revision != now {
		return fail.New(fail.Conflict, "tenant %s has changed since revision %s: it is at %s now, read how it stands and decide again",
			name, c.revision, now)
	}
	defer n.revisions.end(name)
	return change()
}

// renewed is the answer to POST .../revision: nothing that was decided on an earlier revision of the name acts from here
// on.
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
