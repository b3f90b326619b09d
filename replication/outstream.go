package replication

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/engine/wal"
)

// outStream feeds one tenant to one node. Its writing goroutine owns the fields without another owner.
type outStream struct {
	link   *primaryLink
	copies *Copies
	id     uint32
	asked  open

	begun  bool
	at     uint64 // all records up to this change are sent, or in pieces
	term   uint64 // of the history that the follower is in after them
	pieces pieces // records that are not sent yet
	ends   uint64 // the change that pieces end with
	sent   uint64 // bytes of records

	// Under link.mu.
	queued  bool
	gone    bool
	why     *Ended // why the stream has to end; nil if it goes on
	offered *Copy

	taken atomic.Uint64 // bytes of records that the follower has taken

	state // under copies.mu

	arming sync.Mutex
	waker  feed.Waker
	armed  *feed.Feed // the feed that may wake the stream
}

// state is how far a copy has come.
type state struct {
	connected bool   // it has been handed all that there was at some time since the stream began
	handed    uint64 // the last change handed to the operating system
	applied   uint64
	synced    uint64
}

// readBudget is how many bytes of records a stream reads at a time.
const readBudget = 128 << 10

// serve appends the next frames of the stream to dst. It puts the stream back into the queue if there is more to send now, and
// otherwise makes what comes next do so: a block, an acknowledgement, or the tenant that is opened.
func (s *outStream) serve(dst []byte) []byte {
	l := s.link
	l.mu.Lock()
	gone, why := s.gone, s.why
	l.mu.Unlock()
	if gone {
		return dst
	}
	if why != nil {
		return s.finish(dst, why)
	}
	if s.begun && s.free() == 0 {
		return dst // the next acknowledgement goes on
	}
	if s.begun && !s.pieces.empty() {
		return s.send(dst, s.ends)
	}
	c, ok := l.take(s)
	if !ok {
		l.acquire(s)
		return dst
	}
	defer c.Release()
	if !s.begun {
		dst, ok = s.begin(dst, c)
		if !ok {
			return dst
		}
	}
	if err := s.read(c); err != nil {
		return s.finish(dst, asEnded(err))
	}
	if s.pieces.empty() {
		s.copies.caughtUp(s, s.at)
		if !s.arm(c.Feed) {
			l.ready(s)
		}
		return dst
	}
	return s.send(dst, c.Feed.End(feed.Durable))
}

// begin answers the follower's position with a hello. It returns false if the stream goes no further.
func (s *outStream) begin(dst []byte, c Copy) ([]byte, bool) {
	config := &s.link.primary.config
	above := config.Tenants.Above(s.asked.tenant)
	if slices.Contains(above, s.asked.node) {
		return s.finish(dst, &Ended{endRing, "the node that is asked is this node or follows it"}), false
	}
	m := hello{durable: c.Feed.End(feed.Durable), above: append([]string{config.ID}, above...)}
	_, m.history = c.DB.Position()
	term, ok := s.continues(c)
	if !ok {
		m.image, m.branches = true, c.DB.Branches(maxBranches)
	}
	at := len(dst)
	dst = endFrame(m.append(beginFrame(dst, kindHello, s.id)), at)
	if !ok {
		s.link.drop(s)
		return dst, false
	}
	s.begun, s.at, s.term = true, s.asked.seq, term
	return dst, true
}

// continues reports whether the follower can go on from its position, and the term of the history that it is in.
func (s *outStream) continues(c Copy) (term uint64, ok bool) {
	if s.asked.history == "" {
		return 0, false
	}
	term, _, err := engine.ParseHistory(s.asked.history)
	if err != nil {
		return 0, false
	}
	relation, err := c.DB.Relation(s.asked.seq, []byte(s.asked.history))
	if err != nil || relation != engine.Included || c.Feed.Check(s.asked.seq) != nil {
		return 0, false
	}
	return term, true
}

// read encodes the next records of the tenant, and the forks between them.
func (s *outStream) read(c Copy) error {
	if err := c.Feed.Cover(); err != nil {
		return err
	}
	blocks, err := c.Feed.Read(engine.Everything(), nil, s.at, feed.Durable, readBudget)
	if err != nil {
		return err
	}
	forks := c.DB.Forks(s.term)
	if len(forks) > 0 && forks[0].At == s.at && len(blocks) == 0 {
		if err := c.Feed.CoverHistory(); err != nil {
			return err
		}
	}
	for _, b := range blocks {
		forks = s.appendForks(forks)
		if b.Before != s.at {
			return &Ended{endGone, "the copy's position is within a block"}
		}
		s.pieces.add(engine.RecordBlock, b.Record[wal.HeaderSize:])
		s.at = b.After
	}
	s.appendForks(forks)
	s.ends = s.at
	return nil
}

// appendForks encodes the forks at the change that the pieces end with, and returns the others.
func (s *outStream) appendForks(forks []engine.Fork) []engine.Fork {
	for len(forks) > 0 && forks[0].At == s.at {
		s.pieces.add(engine.RecordFork, forks[0].Record.Data[wal.HeaderSize:])
		s.term = forks[0].Term
		forks = forks[1:]
	}
	return forks
}

// free returns how many more bytes may be on their way to the follower.
func (s *outStream) free() int { return int(window - min(window, s.sent-s.taken.Load())) }

// send appends one frame of the pieces, as long as the window permits, and the last change on the primary's disk.
func (s *outStream) send(dst []byte, durable uint64) []byte {
	at := len(dst)
	dst = beginFrame(dst, kindWrites, s.id)
	dst = binary.LittleEndian.AppendUint64(dst, durable)
	dst, n := s.pieces.take(dst, min(maxPiece, s.free()))
	dst = endFrame(dst, at)
	s.sent += uint64(n)
	if s.pieces.empty() {
		s.link.handed = append(s.link.handed, handed{s, s.ends})
	}
	s.link.ready(s)
	return dst
}

// finish ends the stream.
func (s *outStream) finish(dst []byte, why *Ended) []byte {
	at := len(dst)
	dst = beginFrame(dst, kindEnd, s.id)
	dst = endFrame(end{why.Status, why.Sentence}.append(dst), at)
	s.link.drop(s)
	return dst
}

// arm makes the next durable block put the stream into the queue. It returns false if there is one already.
func (s *outStream) arm(f *feed.Feed) bool {
	s.arming.Lock()
	defer s.arming.Unlock()
	if s.armed != f && s.armed != nil {
		s.armed.Leave(&s.waker)
	}
	if s.armed = f; s.isGone() {
		return true
	}
	return f.Await(&s.waker, feed.Durable, s.at)
}

func (s *outStream) isGone() bool {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.gone
}

// disarm undoes arm.
func (s *outStream) disarm() {
	s.arming.Lock()
	defer s.arming.Unlock()
	if s.armed != nil {
		s.armed.Leave(&s.waker)
		s.armed = nil
	}
}

// acked takes an acknowledgement of the follower.
func (s *outStream) acked(m ack) {
	s.taken.Store(m.taken)
	s.copies.acked(s, m)
	s.link.ready(s) // the window may be open again
}

// asEnded returns the error as the end of a stream.
func asEnded(err error) *Ended {
	var ended *Ended
	var gone *feed.Gone
	var ahead *feed.Ahead
	switch {
	case errors.As(err, &ended):
		return ended
	case errors.As(err, &gone), errors.As(err, &ahead):
		return &Ended{endGone, err.Error()}
	case fail.KindOf(err) == fail.Closed, fail.KindOf(err) == fail.Frozen:
		return &Ended{endLater, err.Error()}
	}
	return &Ended{endFailed, err.Error()}
}
