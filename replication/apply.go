package replication

import (
	"context"
	"fmt"
	"io"
	"time"

	"fenec/engine/fail"
	"fenec/engine/wal"
)

// beginLocked runs work on a pool, of which a stream has at most one function. What has come meanwhile is applied next.
func (s *inStream) beginLocked(p *pool, work func()) {
	s.working = true
	p.run(func() {
		s.mu.Lock()
		if s.running = s.phase != stopped; s.running {
			s.mu.Unlock()
			work()
			s.note()
			s.mu.Lock()
		}
		s.working, s.running = false, false
		if s.phase != stopped && len(s.pending) > 0 {
			s.beginLocked(&s.follower.pool, s.apply)
		}
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
	if s.link != l || s.id != id || s.phase != flowing || s.stopping {
		return nil
	}
	if s.received += uint64(len(r.b)); s.received > s.granted+window {
		return fmt.Errorf("%w: %d bytes of tenant %s were sent where %d were granted", errFrame, s.received, s.tenant, s.granted+window)
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
	case !s.working:
		s.beginLocked(&s.follower.pool, s.apply)
	}
	return nil
}

// apply applies the records that have come, also if their connection was lost since: the primary has answered their writes.
func (s *inStream) apply() {
	s.mu.Lock()
	records, bytes, id := s.pending, s.bytes, s.id
	s.dropLocked()
	s.mu.Unlock()
	if len(records) == 0 {
		return
	}
	seq, err := s.follow(records)
	if err != nil {
		s.failedToApply(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id {
		s.taken += bytes
		s.advanceLocked(seq)
		if l := s.link; l != nil {
			l.sumLater(s)
		}
	}
}

// dropLocked forgets the records that have come and are not applied.
func (s *inStream) dropLocked() { s.pending, s.bytes = nil, 0 }

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
	s.mu.Lock()
	s.feed = c.Feed
	s.mu.Unlock()
	return seq, nil
}

// advanceLocked notes that the copy has reached a change.
func (s *inStream) advanceLocked(seq uint64) {
	s.applied = seq
	s.caughtUp = s.caughtUp || s.phase == flowing && seq >= s.goal
}

// note stores that the copy has caught up. If that fails, the next change tries again.
func (s *inStream) note() {
	s.mu.Lock()
	due := s.caughtUp && !s.noted && s.phase == flowing
	s.mu.Unlock()
	if !due {
		return
	}
	err := s.follower.config.Followers.CaughtUp(s.tenant)
	if err != nil {
		s.follower.config.Log.Error().Str("tenant", s.tenant).Err(err).Msg("that a copy has caught up cannot be stored")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = err == nil
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
	case fail.Conflict, fail.Closed, fail.Frozen:
		s.fail(err, firstBackoff)
	default:
		s.fail(err, retryEvery)
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
		s.dropLocked()
		s.mu.Unlock()
		s.source.ready(s)
		return
	}
	s.again()
}

// takeImage replaces the copy by an image of the primary, which must be of the history that was checked.
func (s *inStream) takeImage(history string, common uint64, ok bool) {
	ctx, cancel := context.WithCancel(s.follower.ctx)
	defer cancel()
	s.mu.Lock()
	s.cancel = cancel
	if s.phase == stopped {
		cancel()
	}
	s.mu.Unlock()
	image, size, err := s.follower.config.Image(ctx, s.source.addr, s.tenant)
	if err == nil {
		timer := time.AfterFunc(imageSilence, cancel)
		err = s.follower.config.Followers.Replace(s.tenant, &patient{image, timer}, size, history, common, ok)
		timer.Stop()
		image.Close()
	}
	s.mu.Lock()
	s.cancel = nil
	if err == nil {
		s.images++
		s.image = false
	}
	s.mu.Unlock()
	switch {
	case err == nil:
		s.follower.images.Add(1)
	case fail.KindOf(err) == fail.Conflict:
		s.fail(fmt.Errorf("taking an image: %w", err), firstBackoff)
	default:
		s.fail(fmt.Errorf("taking an image: %w", err), retryEvery)
	}
}

// imageSilence is how long nothing of an image may come.
const imageSilence = 30 * time.Second

// patient is an image whose fetching a timer ends if nothing comes.
type patient struct {
	io.Reader
	timer *time.Timer
}

func (p *patient) Read(b []byte) (int, error) {
	p.timer.Reset(imageSilence)
	return p.Reader.Read(b)
}
