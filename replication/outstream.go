package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

	begun   bool
	at      uint64 // all records up to this change are sent, or in pieces
	term    uint64 // of the history that the follower is in after them
	all     bool   // there was no later record on disk when these were read
	forks   bool   // there is a fork at that change, which may not be on disk
	durable uint64 // the last change on the primary's disk
	pieces  pieces // records that are not sent yet
	feed    *feed.Feed
	history string // of change at, as the database of feed has it

	// Under link.mu.
	queued    bool
	gone      bool
	acquiring bool
	why       *Ended // why the stream has to end; nil if it goes on
	offered   *offer

	sent      atomic.Uint64 // bytes of records
	taken     atomic.Uint64 // bytes of records that the follower has taken
	most      atomic.Uint64 // the last change that the follower may have
	comparing atomic.Bool   // the sum of the copy is being compared

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
	if s.begun && !s.pieces.empty() {
		return s.send(dst)
	}
	c, ok := l.take(s)
	if !ok {
		l.acquire(s, false)
		return dst
	}
	defer c.Release()
	if !s.begun {
		if dst, ok = s.begin(dst, c.Copy); !ok {
			return dst
		}
	}
	if err := s.read(c); err != nil {
		return s.finish(dst, asEnded(err))
	}
	if !s.pieces.empty() {
		return s.send(dst)
	}
	l.handed = append(l.handed, handed{s, s.at, s.all})
	if s.forks {
		l.acquire(s, true)
	} else if !s.arm(c.Feed) {
		l.ready(s)
	}
	return dst
}

// begin answers the follower's position with a hello. It returns false if the stream goes no further.
func (s *outStream) begin(dst []byte, c Copy) ([]byte, bool) {
	config := &s.link.primary.config
	above := config.Tenants.Above(s.asked.tenant)
	if slices.Contains(above, s.asked.node) {
		return s.finish(dst, &Ended{endRing, "the node that is asked is this node or follows it"}), false
	}
	m := hello{durable: c.Feed.End(feed.Durable), above: append([]string{config.ID}, above[:min(len(above), maxAbove-1)]...)}
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
	s.most.Store(s.at)
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

// read encodes the next records of the tenant that are on disk, and the forks between them.
func (s *outStream) read(c offer) error {
	if s.feed != c.Feed && s.feed != nil && c.DB.HistoryAt(s.at) != s.history {
		return &Ended{endLater, "the tenant was replaced"}
	}
	if err := c.Feed.Cover(); err != nil { // it was, unless the tenant was opened again meanwhile
		return err
	}
	s.durable = c.Feed.End(feed.Durable)
	blocks, err := c.Feed.Read(engine.Everything(), nil, s.at, feed.Durable, readBudget)
	if err != nil {
		return err
	}
	forks := c.DB.Forks(s.term)
	for _, b := range blocks { // a fork before a block on disk is on disk
		forks = s.appendForks(forks, math.MaxUint64)
		if b.Before != s.at {
			return &Ended{endGone, "the copy's position is within a block"}
		}
		s.pieces.add(recordBlock, b.Record[wal.HeaderSize:])
		s.at = b.After
	}
	forks = s.appendForks(forks, c.covered)
	s.forks = len(forks) > 0 && forks[0].At == s.at
	s.all = s.at >= s.durable
	s.feed, s.history = c.Feed, c.DB.HistoryAt(s.at)
	s.most.Store(s.at)
	return nil
}

// appendForks encodes the forks at the change that the pieces end with, of histories up to a term, and returns the others.
func (s *outStream) appendForks(forks []engine.Fork, term uint64) []engine.Fork {
	for len(forks) > 0 && forks[0].At == s.at && forks[0].Term <= term {
		s.pieces.add(recordFork, forks[0].Record.Data[wal.HeaderSize:])
		s.term = forks[0].Term
		forks = forks[1:]
	}
	return forks
}

// free returns how many more bytes may be on their way to the follower.
func (s *outStream) free() int { return int(window - min(window, s.sent.Load()-s.taken.Load())) }

// send appends one frame of the pieces, as long as the window permits, and the last change on the primary's disk.
func (s *outStream) send(dst []byte) []byte {
	free := s.free()
	if free == 0 {
		s.link.stall(s)
		return dst
	}
	at := len(dst)
	dst = beginFrame(dst, kindWrites, s.id)
	dst = binary.LittleEndian.AppendUint64(dst, s.durable)
	dst, n := s.pieces.take(dst, min(maxPiece, free))
	dst = endFrame(dst, at)
	s.sent.Add(uint64(n))
	if s.pieces.empty() {
		s.link.handed = append(s.link.handed, handed{s, s.at, s.all})
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

// acked takes an acknowledgement of the follower. It may not be of more than was sent: Confirmed believes it.
func (s *outStream) acked(m ack) error {
	if sent, most := s.sent.Load(), s.most.Load(); m.taken > sent || m.applied > most || m.synced > m.applied {
		return fmt.Errorf("%w: an acknowledgement of %d bytes and of changes %d and %d, where %d bytes up to change %d were sent",
			errFrame, m.taken, m.applied, m.synced, sent, most)
	}
	s.taken.Store(max(s.taken.Load(), m.taken))
	s.copies.acked(s, m)
	if s.free() > 0 {
		s.link.resume(s)
	}
	return nil
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
