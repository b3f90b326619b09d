package replication

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/feed"
	"fenec/engine/wal"
)

// inStream follows one tenant of a source. This file is its conversation with the primary; apply.go is what it does to the copy.
type inStream struct {
	follower *Follower
	source   *source
	tenant   string
	target   Target
	waker    feed.Waker
	settled  chan struct{} // closed by settle
	once     sync.Once

	queued bool // under source.mu

	mu       sync.Mutex // not held while a tenant is used
	idle     sync.Cond  // broadcast when running ends
	phase    phase
	working  bool   // a function of the stream waits for the pool or runs on it
	running  bool   // it runs, and may use the copy
	stopping bool   // no more records are taken
	cancel   func() // ends the fetching of an image; nil if none is fetched
	id       uint32 // on the connection
	link     *sourceLink
	next     *open // from where the stream can be opened; nil if that has to be found out

	received uint64 // bytes of records that have come
	granted  uint64 // bytes of records that were acknowledged
	taken    uint64 // bytes of records that were applied
	pending  []wal.Record
	bytes    uint64 // of pending
	parts    gathering
	feed     *feed.Feed // of the copy
	armed    *feed.Feed // the feed that may wake the stream
	summed   *ack       // the sum of the copy at some change, to be sent with an acknowledgement of that change
	retry    *time.Timer

	answered bool // the primary has answered on this connection, and nothing has gone wrong since
	above    []string
	known    bool
	durable  uint64 // the last change on the primary's disk, if known
	applied  uint64
	goal     uint64 // the change with which the copy has caught up
	caughtUp bool
	noted    bool // that is stored
	image    bool // the next open asks for an image
	diverged bool // an image was taken because the copy held other content
	gaveUp   bool // it held other content after that too
	images   int
	err      error
}

// phase is where a stream is.
type phase uint8

const (
	waiting phase = iota // has to be opened
	opening              // open was sent, hello has not come
	flowing              // records come
	pausing              // waits for its retry
	stopped              // for good: nothing more happens
)

// retryEvery is how long a stream that was refused waits before it is opened again.
const retryEvery = 5 * time.Second

func (s *inStream) settle() { s.once.Do(func() { close(s.settled) }) }

// wake is called by a feed, under its lock, when more of the copy is on disk.
func (s *inStream) wake() { s.source.ready(s) }

// serve appends what the stream has to send.
func (s *inStream) serve(l *sourceLink, dst []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l && s.phase != opening && s.phase != flowing {
		dst = s.closeLocked(dst) // the primary would go on, and its writes wait for this copy
	}
	switch {
	case s.phase == flowing && s.link == l:
		dst = s.ackLocked(dst)
	case s.phase == waiting && !s.working && s.next != nil:
		dst = s.openLocked(l, dst)
	case s.phase == waiting && !s.working:
		s.beginLocked(&s.follower.pool, s.prepare)
	}
	return dst
}

func (s *inStream) closeLocked(dst []byte) []byte {
	s.link.forget(s, s.id)
	s.link = nil
	at := len(dst)
	return endFrame(beginFrame(dst, kindClose, s.id), at)
}

// prepare finds out from where the copy can be fed.
func (s *inStream) prepare() {
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		s.fail(err, retryEvery)
		return
	}
	defer c.Release()
	seq, history := c.DB.Position()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed, s.applied = c.Feed, seq
	s.next = &open{tenant: s.tenant, node: s.follower.config.ID, counts: s.target.Counts}
	if !s.image {
		s.next.seq, s.next.history = seq, history
	}
}

// openLocked asks to be fed from the position of the copy.
func (s *inStream) openLocked(l *sourceLink, dst []byte) []byte {
	m := s.next
	s.phase, s.next = opening, nil
	s.id, s.link = l.number(s), l
	s.received, s.granted, s.taken, s.pending, s.bytes, s.parts, s.summed = 0, 0, 0, nil, 0, gathering{}, nil
	at := len(dst)
	return endFrame(m.append(beginFrame(dst, kindOpen, s.id)), at)
}

// ackLocked appends how far the copy has come, with its sum if it is known.
func (s *inStream) ackLocked(dst []byte) []byte {
	m := ack{}
	if s.summed != nil && s.summed.applied == s.applied {
		m = *s.summed
	}
	s.summed = nil
	s.granted = max(s.granted, s.taken+uint64(s.parts.partial()))
	m.taken, m.applied, m.synced = s.granted, s.applied, min(s.armLocked(), s.applied)
	at := len(dst)
	return endFrame(m.append(beginFrame(dst, kindAck, s.id)), at)
}

// armLocked returns the last change of the copy on disk, and makes the next one wake the stream.
func (s *inStream) armLocked() uint64 {
	if s.armed != s.feed && s.armed != nil {
		s.armed.Leave(&s.waker)
	}
	s.armed = s.feed
	for {
		end := s.feed.End(feed.Durable)
		if s.feed.Await(&s.waker, feed.Durable, end) {
			return end
		}
	}
}

// sum has the sum of the copy sent.
func (s *inStream) sum(l *sourceLink) {
	s.mu.Lock()
	id, mine := s.id, s.link == l && s.phase == flowing
	s.mu.Unlock()
	if !mine {
		return
	}
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		return // what applies the next record meets it too
	}
	defer c.Release()
	m := ack{}
	if m.applied, m.history, m.sum, m.summed = c.DB.Sum(); !m.summed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l && s.id == id && s.phase == flowing && s.applied == m.applied {
		s.summed = &m
		s.source.ready(s)
	}
}

// hello takes the primary's answer to an open.
func (s *inStream) hello(l *sourceLink, id uint32, m hello) {
	defer s.settle()
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		s.fail(err, retryEvery)
		return
	}
	defer c.Release()
	seq, history := c.DB.Position()
	if err := s.check(m, seq, history); err != nil {
		s.refused(l, err)
		return
	}
	common, ok := uint64(0), seq == 0
	if m.image && !ok {
		common, ok = c.DB.Common(m.branches)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.id != id || s.phase != opening {
		return
	}
	s.above, s.err, s.answered = m.above, nil, true
	s.known, s.durable, s.goal = true, m.durable, m.durable
	if m.image {
		s.phase, s.link = waiting, nil // the primary has ended the stream
		l.forget(s, id)
		s.beginLocked(&s.source.images, func() { s.takeImage(m.history, common, ok) })
		return
	}
	s.phase = flowing
	s.advanceLocked(seq)
	l.sumLater(s)
	if s.caughtUp && !s.noted && !s.working {
		s.beginLocked(&s.follower.pool, func() {}) // stores it
	}
	s.source.ready(s) // the first acknowledgement
}

// check returns why a copy at a position must not follow a primary, nil if it may.
func (s *inStream) check(m hello, seq uint64, history string) error {
	feeds := func(id string) bool { return slices.Contains(s.follower.config.Feeds(s.tenant), id) }
	if slices.Contains(m.above, s.follower.config.ID) || slices.ContainsFunc(m.above, feeds) {
		return &Ended{endRing, "the node at " + s.target.From + " is this node or follows it"}
	}
	term, lineage, err := engine.ParseHistory(m.history)
	if err != nil {
		return err
	}
	s.mu.Lock()
	forced := s.target.Force && !s.caughtUp // once: what the primary is replaced by later is judged as for any copy
	s.mu.Unlock()
	if forced {
		return nil
	}
	if want := s.target.Lineage; want != "" && lineage != want {
		return &Ended{endDiverged, fmt.Sprintf("the primary's lineage is %s: expected %s", lineage, want)}
	}
	ownTerm, own, err := engine.ParseHistory(history)
	switch {
	case err != nil:
		return err
	case seq == 0:
		return nil // a copy that was never written to takes any lineage
	case lineage != own:
		return &Ended{endDiverged, fmt.Sprintf("the primary is another tenant: its lineage is %s, this copy's is %s", lineage, own)}
	case term < ownTerm:
		return &Ended{endDiverged, fmt.Sprintf("the primary is older than this copy: its history is %s, this copy's is %s", m.history, history)}
	}
	return nil
}

// ended takes the primary's end of a stream.
func (s *inStream) ended(l *sourceLink, id uint32, m end) {
	defer s.settle()
	s.mu.Lock()
	mine := s.link == l && s.id == id && s.phase != stopped
	s.mu.Unlock()
	if !mine {
		return
	}
	switch m.status {
	case endGone:
		s.again()
	case endDiverged:
		s.differs(m.sentence)
	case endLater:
		s.fail(errors.New(m.sentence), firstBackoff)
	default:
		s.fail(&Ended{m.status, m.sentence}, retryEvery)
	}
}

// again opens the stream anew.
func (s *inStream) again() {
	s.mu.Lock()
	if s.phase != stopped {
		s.phase = waiting
		s.dropLocked()
	}
	s.mu.Unlock()
	s.source.ready(s)
}

// refused notes why the copy must not follow its primary, and asks again later: the primary may be replaced.
func (s *inStream) refused(l *sourceLink, err error) {
	s.mu.Lock()
	first := s.err == nil || s.err.Error() != err.Error()
	s.mu.Unlock()
	if first {
		s.follower.config.Log.Error().Str("tenant", s.tenant).Str("primary", s.source.addr).Err(err).Msg("a copy cannot follow its primary and is kept as it is")
	}
	s.fail(err, retryEvery)
}

// fail notes why the stream does not follow, and opens it again later.
func (s *inStream) fail(err error, later time.Duration) {
	defer s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == stopped {
		return
	}
	s.err, s.phase, s.answered = err, pausing, false
	s.dropLocked()
	if s.retry != nil {
		s.retry.Stop()
	}
	s.retry = time.AfterFunc(later, func() {
		s.mu.Lock()
		if s.phase == pausing {
			s.phase = waiting
		}
		s.mu.Unlock()
		s.source.ready(s)
	})
	s.source.ready(s) // to close the stream
}

// disconnected notes that the connection is lost: the stream is opened again on the next one.
func (s *inStream) disconnected() {
	defer s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.answered = nil, false
	if s.phase != stopped {
		s.phase = waiting
	}
}

// stop ends the stream and waits until nothing of it is done to the copy. What has come is applied before: the copy may be promoted.
func (s *inStream) stop() {
	s.mu.Lock()
	for s.stopping = true; s.phase != stopped && len(s.pending) > 0; {
		s.idle.Wait()
	}
	s.phase = stopped
	if s.retry != nil {
		s.retry.Stop()
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.armed != nil {
		s.armed.Leave(&s.waker)
		s.armed = nil
	}
	s.source.ready(s) // to close the stream
	for s.running {
		s.idle.Wait()
	}
	s.mu.Unlock()
	s.settle()
}

// status returns how the stream follows.
func (s *inStream) status() Status {
	contact, lost := s.source.contact()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		From: s.target.From, Connected: s.answered && s.phase != stopped, CaughtUp: s.caughtUp, Known: s.known, Durable: s.durable,
		Contact: contact, Images: s.images, Diverged: s.gaveUp, Err: s.err,
	}
	if s.durable > s.applied {
		out.Behind = s.durable - s.applied
	}
	if lost != nil && s.phase != stopped {
		out.Err = lost
	}
	return out
}
