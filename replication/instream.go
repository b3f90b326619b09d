package replication

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/engine/wal"
)

// inStream follows one tenant of a source.
type inStream struct {
	follower *Follower
	source   *source
	tenant   string
	target   Target
	waker    feed.Waker
	ctx      context.Context // of the fetching of images
	cancel   context.CancelFunc
	settled  chan struct{} // closed by settle
	once     sync.Once

	queued bool // under source.mu

	mu      sync.Mutex // not held while a tenant is used
	idle    sync.Cond  // broadcast when busy ends
	phase   phase
	busy    bool   // records are applied, or an image is fetched
	id      uint32 // on the connection
	link    *sourceLink
	taken   uint64 // bytes of records that were applied
	pending []wal.Record
	bytes   uint64 // of pending
	parts   gathering
	armed   *feed.Feed
	retry   *time.Timer

	answered bool // the primary has answered on this connection, and nothing has gone wrong since
	above    []string
	known    bool
	durable  uint64 // the last change on the primary's disk, if known
	applied  uint64
	goal     uint64 // the change with which the copy has caught up
	caughtUp bool
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
	now, busy := s.phase, s.busy
	s.mu.Unlock()
	switch {
	case now == stopped:
		return s.sendClose(l, dst)
	case now == waiting && !busy:
		return s.open(l, dst)
	case now == flowing:
		return s.ack(l, dst, false)
	}
	return dst
}

func (s *inStream) sendClose(l *sourceLink, dst []byte) []byte {
	s.mu.Lock()
	id, mine := s.id, s.link == l
	s.link = nil
	s.mu.Unlock()
	if !mine {
		return dst
	}
	l.forget(s, id)
	at := len(dst)
	return endFrame(beginFrame(dst, kindClose, id), at)
}

// open asks to be fed from the position of the copy.
func (s *inStream) open(l *sourceLink, dst []byte) []byte {
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		s.fail(err, retryEvery)
		return dst
	}
	defer c.Release()
	m := open{tenant: s.tenant, node: s.follower.config.ID, counts: s.target.Counts}
	seq, history := c.DB.Position()
	s.mu.Lock()
	if !s.image && seq > 0 {
		m.seq, m.history = seq, history
	}
	old := s.id
	s.mu.Unlock()
	id := l.number(s, old)
	s.mu.Lock()
	if s.phase == waiting {
		s.phase = opening
	}
	s.id, s.link, s.taken, s.pending, s.bytes, s.parts, s.applied = id, l, 0, nil, 0, gathering{}, seq
	s.mu.Unlock()
	at := len(dst)
	return endFrame(m.append(beginFrame(dst, kindOpen, id)), at)
}

// ack appends how far the copy has come, with its sum if summed.
func (s *inStream) ack(l *sourceLink, dst []byte, summed bool) []byte {
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		s.fail(err, retryEvery)
		return dst
	}
	defer c.Release()
	s.mu.Lock()
	id, mine := s.id, s.link == l && s.phase == flowing
	m := ack{taken: s.taken + uint64(s.parts.partial()), applied: s.applied}
	s.mu.Unlock()
	if !mine {
		return dst
	}
	m.synced = min(s.arm(c.Feed), m.applied)
	if summed {
		var seq uint64
		if seq, m.history, m.sum, m.summed = c.DB.Sum(); seq != m.applied {
			m.summed = false
		}
	}
	if !m.summed {
		m.history, m.sum = "", 0
	}
	at := len(dst)
	return endFrame(m.append(beginFrame(dst, kindAck, id)), at)
}

// arm returns the last change of the copy on disk, and makes the next one wake the stream.
func (s *inStream) arm(f *feed.Feed) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed != f && s.armed != nil {
		s.armed.Leave(&s.waker)
	}
	s.armed = f
	for {
		end := f.End(feed.Durable)
		if f.Await(&s.waker, feed.Durable, end) {
			return end
		}
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
		s.phase = waiting
		s.beginLocked(func() { s.takeImage(common, ok) })
		return
	}
	s.phase = flowing
	s.advanceLocked(seq)
	l.sumLater(s)
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
	if s.target.Force {
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

// advanceLocked notes that the copy has reached a change.
func (s *inStream) advanceLocked(seq uint64) {
	s.applied = seq
	if !s.caughtUp && s.phase == flowing && seq >= s.goal {
		s.caughtUp = true
		s.follower.pool.run(func() {
			if err := s.follower.config.Followers.CaughtUp(s.tenant); err != nil {
				s.follower.config.Log.Error().Str("tenant", s.tenant).Err(err).Msg("that a copy has caught up cannot be stored")
			}
		})
	}
}

// beginLocked runs work on the pool. The stream is busy meanwhile.
func (s *inStream) beginLocked(work func()) {
	s.busy = true
	s.follower.pool.run(func() {
		work()
		s.mu.Lock()
		s.busy = false
		s.idle.Broadcast()
		s.mu.Unlock()
		s.source.ready(s)
	})
}

// writes takes a piece of the tenant's records.
func (s *inStream) writes(l *sourceLink, id uint32, payload []byte) error {
	r := reader{b: payload}
	durable := r.number()
	if r.failed {
		return errFrame
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.id != id || s.phase != flowing {
		return nil
	}
	s.durable = max(s.durable, durable)
	err := s.parts.add(r.b, func(record wal.Record, size int) {
		s.pending = append(s.pending, record)
		s.bytes += uint64(size)
	})
	switch {
	case err != nil:
		return err
	case len(s.pending) == 0:
		s.source.ready(s) // so that the rest of a large record comes
	case !s.busy:
		s.beginLocked(s.apply)
	}
	return nil
}

// apply applies the records that have come, on the pool.
func (s *inStream) apply() {
	for {
		s.mu.Lock()
		records, bytes, id := s.pending, s.bytes, s.id
		s.pending, s.bytes = nil, 0
		if len(records) == 0 || s.phase != flowing {
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		seq, err := s.follow(records)
		if err != nil {
			s.failedToApply(err)
			return
		}
		s.mu.Lock()
		if s.id == id {
			s.taken += bytes
			s.advanceLocked(seq)
			if l := s.link; l != nil {
				l.sumLater(s)
			}
		}
		s.mu.Unlock()
		s.source.ready(s)
	}
}

func (s *inStream) follow(records []wal.Record) (seq uint64, err error) {
	c, err := s.follower.config.Followers.Acquire(s.tenant)
	if err != nil {
		return 0, err
	}
	defer c.Release()
	if err := c.DB.Follow(s.follower.ctx, records...); err != nil {
		return 0, err
	}
	seq, _ = c.DB.Position()
	return seq, nil
}

// failedToApply decides how a stream goes on whose records could not be applied.
func (s *inStream) failedToApply(err error) {
	switch fail.KindOf(err) {
	case fail.Storage, fail.Full:
		s.fail(err, retryEvery)
		if err := s.follower.config.Followers.Reopen(s.tenant); err != nil {
			s.follower.config.Log.Error().Str("tenant", s.tenant).Err(err).Msg("a copy whose disk has failed cannot be opened again")
		}
	case fail.Damaged:
		s.differs("a record of the primary cannot be applied: " + err.Error())
	default:
		s.fail(err, firstBackoff)
	}
}

// takeImage replaces the copy by an image of the primary, on the pool.
func (s *inStream) takeImage(common uint64, ok bool) {
	select {
	case s.source.images <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	defer func() { <-s.source.images }()
	image, size, err := s.follower.config.Image(s.ctx, s.source.addr, s.tenant)
	if err == nil {
		err = s.follower.config.Followers.Replace(s.tenant, image, size, common, ok)
		image.Close()
	}
	if err != nil {
		s.fail(fmt.Errorf("taking an image: %w", err), retryEvery)
		return
	}
	s.follower.images.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images++
	s.image = false
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
		s.again(nil)
	case endDiverged:
		s.differs(m.sentence)
	case endLater:
		s.fail(errors.New(m.sentence), firstBackoff)
	default:
		s.fail(&Ended{m.status, m.sentence}, retryEvery)
	}
}

// differs takes an image in place of a copy that holds other content than its primary. The second time it gives up.
func (s *inStream) differs(why string) {
	s.mu.Lock()
	again := s.diverged
	s.diverged, s.image = true, true
	s.mu.Unlock()
	s.follower.config.Log.Error().Str("tenant", s.tenant).Str("primary", s.source.addr).Bool("again", again).Msg(why)
	if again {
		s.mu.Lock()
		s.gaveUp = true
		s.err, s.phase = &Ended{endDiverged, why + ", after an image too: it no longer follows"}, stopped
		s.mu.Unlock()
		s.source.ready(s)
		return
	}
	s.again(nil)
}

// again opens the stream anew.
func (s *inStream) again(err error) {
	s.mu.Lock()
	if s.phase != stopped {
		s.phase = waiting
		if err != nil {
			s.err = err
		}
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

// stop ends the stream and waits until nothing of it is being applied.
func (s *inStream) stop() {
	s.cancel()
	s.mu.Lock()
	s.phase = stopped
	if s.retry != nil {
		s.retry.Stop()
	}
	armed := s.armed
	s.armed = nil
	s.mu.Unlock()
	if armed != nil {
		armed.Leave(&s.waker)
	}
	s.source.ready(s)
	s.mu.Lock()
	for s.busy {
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
	if lost != nil {
		out.Err = lost
	}
	return out
}
