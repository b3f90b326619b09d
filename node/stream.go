package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"
	"fenec/node/tenants"
)

const (
	// heartbeat is the longest silence of a stream.
	heartbeat = 15 * time.Second
	// keptIDs is how many ids a stream keeps room for between events.
	keptIDs = 256
)

// stream is one live query, run by the goroutine of its connection. It holds at most one event: changes that land while it
// is sent are read from the feed afterwards, or the rows are read again.
type stream struct {
	node   *Node
	tenant *tenants.Tenant
	feed   *feed.Feed
	ctx    context.Context
	scope  engine.Scope
	shape  *shape

	request []byte // its id

	collection uint64 // its number
	seq        uint64 // the last change that the client knows, or will know after event
	history    string // the history of seq when the stream began
	reported   uint64 // the last seq that was sent to the client
	sentAt     time.Time

	out   *http1.Writer
	waker feed.Waker
	ids   []int64
	first []byte   // the event to begin with; nil if there is none
	held  *advance // to send once its changes are as durable as their acknowledgements mean; nil if there is none

	memory memory // of the event being made, held or sent
}

// run sends events until the client disconnects or the stream must end; then the last event has the reason.
func (s *stream) run(out *http1.Writer) error {
	defer s.close()
	s.out, s.waker.Wake = out, out.Wake
	streamsOf(s.tenant).add(out)
	defer streamsOf(s.tenant).remove(out)
	defer s.feed.Leave(&s.waker)
	if s.ending() != nil { // the node or tenant may have begun to end before the stream was added
		out.Shutdown(endGrace)
	}
	s.reported, s.sentAt = s.seq, time.Now()
	first := s.first
	s.first = nil
	if err := s.deliver(first); err != nil { // the seed, or the head alone
		return err
	}
	for {
		end := s.ending() // checked first, so that the changes before it are sent
		settled := s.feed.End(feed.Settled)
		moved, err := s.follow(settled)
		if err == nil && !moved {
			if err = end; err == nil && s.feed.Await(&s.waker, feed.Settled, settled) {
				err = s.wait()
			}
		}
		if fail.KindOf(err) == fail.Busy {
			if err = end; err == nil {
				err = s.awaitRoom()
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, errUnsent), s.ctx.Err() != nil:
			return err
		default:
			event := newEvent("error", s.seq, s.tenant.DB.HistoryAt(s.seq))
			return s.send(s.appendError(event, err))
		}
	}
}

// ending returns why the stream must end, nil if it need not.
func (s *stream) ending() error {
	select {
	case <-s.node.stop:
		return tenants.ErrStopping
	case <-s.tenant.Gone():
		return s.leaving()
	default:
		return nil
	}
}

func (s *stream) leaving() error {
	if s.node.stopping.Load() {
		return tenants.ErrStopping
	}
	return errLeaving(s.tenant.Name)
}

// awaitRoom waits until there is room for the event that could not be made, and sends heartbeats meanwhile. Nothing is lost:
// the changes are read once there is room.
func (s *stream) awaitRoom() error {
	ending, over := make(chan struct{}), make(chan struct{})
	var waits sync.WaitGroup
	waits.Go(func() {
		defer close(ending)
		select {
		case <-s.node.stop:
		case <-s.tenant.Gone():
		case <-over:
		}
	})
	s.memory.wait(roomWait, ending)
	close(over)
	waits.Wait()
	if time.Since(s.sentAt) < heartbeat {
		return nil
	}
	return s.sendAlive()
}

// wait waits until there may be a change, and sends heartbeats. It returns an error if the client has disconnected.
func (s *stream) wait() error {
	next := s.sentAt.Add(heartbeat)
	if err := s.out.Wait(next); err != nil || time.Now().Before(next) {
		return err
	}
	return s.sendAlive()
}

// sendAlive sends a heartbeat and the client's cursor.
func (s *stream) sendAlive() error {
	alive := append(make([]byte, 0, usualEvent), ":\n"...)
	if s.reported != s.seq { // an id without data moves the client's cursor and is not an event
		alive, s.reported = appendID(alive, s.seq, s.tenant.DB.HistoryAt(s.seq)), s.seq
	}
	return s.send(append(alive, '\n'))
}

// follow sends the shape's changes since s.seq, once they are settled; settled is the last change that is. moved reports
// whether there were changes, to any collection.
func (s *stream) follow(settled uint64) (moved bool, err error) {
	next := s.held
	if s.held = nil; next == nil || !s.isThere(next) {
		if next, err = s.shape.next(s); err != nil || next == nil {
			return false, err
		}
	}
	if next.to > settled {
		s.held = next
		return false, nil
	}
	if next.end != nil {
		return false, next.end
	}
	s.seq = next.to
	if next.event == nil {
		return true, nil
	}
	s.reported = next.to
	return true, s.deliver(next.event)
}

// isThere reports whether the tenant still has an advance's changes, or has undone them because they could not be written.
func (s *stream) isThere(a *advance) bool { return a.to <= s.feed.End(feed.Landed) }

// errUnsent means that the client has disconnected or accepts no bytes.
var errUnsent = errors.New("the event was not sent")

// deliver sends an event that the stream holds memory for.
func (s *stream) deliver(event []byte) error {
	defer s.memory.release()
	return s.send(event)
}

// send sends an event, which may be empty, and the head before the first.
func (s *stream) send(event []byte) error {
	if _, err := s.out.Write(event); err != nil {
		return errors.Join(errUnsent, err)
	}
	if err := s.out.Flush(); err != nil {
		return errors.Join(errUnsent, err)
	}
	s.sentAt = time.Now()
	if cap(s.ids) > keptIDs {
		s.ids = nil
	}
	return nil
}
