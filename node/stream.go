package node

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"
	"fenec/node/tenants"
)

const (
	// heartbeat is the longest silence of a stream.
	heartbeat = 15 * time.Second
	// usualEvent is the first capacity of an event, in bytes.
	usualEvent = 256
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
	event []byte   // to send; nil if there is none
	held  *advance // to send once its changes are as durable as their acknowledgements mean; nil if there is none

	account engine.Account // of the event being made
	room    room           // for it
	takes   int64          // bytes of the budget that the event holds until it is sent
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
	if err := s.send(); err != nil { // the seed, or the head alone
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
			s.event = s.appendError(s.newEvent("error", s.tenant.DB.HistoryAt(s.seq)), err)
			return s.send()
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
	s.room.wait(&s.account, roomWait, ending)
	close(over)
	waits.Wait()
	if time.Since(s.sentAt) < heartbeat {
		return nil
	}
	return s.sendAlive()
}

// keep settles the account: the event's memory is held until it is sent.
func (s *stream) keep(event []byte) { s.takes = s.account.Settle(long(int64(cap(event)))) }

// releaseEvent returns the event's memory.
func (s *stream) releaseEvent() {
	s.room.budget.Give(s.takes)
	s.takes = 0
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
	s.event = append(make([]byte, 0, usualEvent), ":\n"...)
	if s.reported != s.seq { // an id without data moves the client's cursor and is not an event
		s.event, s.reported = s.appendID(s.event, s.tenant.DB.HistoryAt(s.seq)), s.seq
	}
	s.event = append(s.event, '\n')
	return s.send()
}

// follow sends the shape's changes since s.seq, once they are settled; settled is the last change that is. moved reports
// whether there were changes, to any collection.
func (s *stream) follow(settled uint64) (moved bool, err error) {
	next := s.held
	if s.held = nil; next == nil || !s.isThere(next) {
		if next, err = s.next(); err != nil || next == nil {
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
	s.event, s.reported = next.event, next.to
	return true, s.send()
}

// isThere reports whether the tenant still has an advance's changes, or has undone them because they could not be written.
func (s *stream) isThere(a *advance) bool { return a.to <= s.feed.End(feed.Landed) }

// next returns the advance from s.seq, nil if there was no change since. If another stream of the shape has made it, it is
// reused.
func (s *stream) next() (*advance, error) {
	if last := s.taken(); last != nil {
		return last, nil
	}
	s.shape.making.Lock()
	defer s.shape.making.Unlock()
	if last := s.taken(); last != nil {
		return last, nil
	}
	s.releaseEvent() // it was undone
	from := s.seq
	moved, err := s.changed()
	next := &advance{from: from, to: s.seq, event: s.event, end: err}
	s.seq, s.event = from, nil // later changes were not sent to the client
	if fail.KindOf(err) == fail.Busy {
		return nil, err
	}
	s.keep(next.event)
	s.room.asked = 0
	if err != nil {
		return next, nil
	}
	if !moved {
		return nil, nil
	}
	if s.shape.uses.Load() > 1 && cap(next.event) <= maxShared {
		s.shape.last.Store(next)
	}
	return next, nil
}

// taken returns the advance from s.seq if another stream of the shape has made it.
func (s *stream) taken() *advance {
	last := s.shape.last.Load()
	if last == nil || last.from != s.seq || !s.isThere(last) {
		return nil
	}
	return last
}

// changed reads the changes after s.seq and makes an event of those of the shape. moved reports whether there were any
// changes.
func (s *stream) changed() (moved bool, err error) {
	most := uint64(s.node.config.Changes)
	changed, err := s.feed.Changed(s.scope, s.ids[:0], s.collection, s.seq, most)
	s.ids = changed.IDs
	switch {
	case isLost(err):
		return true, s.tenant.DB.View(s.ctx, s.scope, s.seed)
	case err != nil:
		return false, err
	case changed.Dropped:
		s.seq = changed.Seq
		return false, s.dropped()
	case changed.Seq == s.seq:
		return false, nil
	case len(changed.IDs) == 0 && !changed.Schema:
		s.seq = changed.Seq
		return true, nil
	}
	return true, s.tenant.DB.View(s.ctx, s.scope, func(v *engine.View) error {
		// More may have landed before the view: an event has whole blocks, with their rows as of one change.
		more, err := s.feed.Changed(s.scope, changed.IDs, s.collection, changed.Seq, most)
		s.ids = more.IDs
		switch {
		case isLost(err):
			return s.seed(v)
		case err != nil:
			return err
		case more.Dropped:
			s.seq = v.Seq
			return s.dropped()
		}
		schema := changed.Schema || more.Schema
		if schema && s.altered(s.seq, v.Seq) {
			return s.seed(v)
		}
		return s.change(v, schema)
	})
}

// altered reports whether the collection's schemas after two changes read the shape from different fields, so that rows may
// differ without a write.
func (s *stream) altered(before, after uint64) bool {
	return s.shape.altered(s.feed.Schema(s.collection, before), s.feed.Schema(s.collection, after))
}

// isLost reports whether an error means that the feed cannot continue from a cursor: too far behind, or past changes that
// could not be written.
func isLost(err error) bool {
	var gone *feed.Gone
	var ahead *feed.Ahead
	return errors.As(err, &gone) || errors.As(err, &ahead)
}

func (s *stream) dropped() error {
	return fail.New(fail.NotFound, "collection %s was dropped", s.shape.collection)
}

// seed makes the event with all rows of the shape.
func (s *stream) seed(v *engine.View) error {
	s.seq = v.Seq
	collection := s.feed.Collection(s.scope, s.shape.collection, v.Seq)
	if s.collection != 0 && collection != s.collection {
		return s.dropped()
	}
	event := appendNumber(append(s.newEvent("seed", v.HistoryAt(v.Seq)), '{'), "seq", int64(v.Seq))
	event, err := s.shape.in(v, &s.account).appendAll(append(event, `,"rows":`...))
	if err != nil {
		return err
	}
	s.event = append(event, "}\n\n"...)
	return nil
}

// change makes the event with the current state of the documents s.ids.
func (s *stream) change(v *engine.View, schema bool) error {
	s.seq = v.Seq
	event := appendNumber(append(s.newEvent("change", v.HistoryAt(v.Seq)), '{'), "seq", int64(v.Seq))
	event = append(event, `,"puts":[`...)
	outside, rows := s.ids[:0], s.shape.in(v, &s.account)
	puts := len(event)
	for _, id := range s.ids {
		if len(event) > puts {
			event = append(event, ',')
		}
		start := len(event)
		var found bool
		var err error
		if event, found, err = rows.appendOne(event, id); err != nil {
			return err
		}
		if !found {
			outside = append(outside, id)
			event = event[:max(puts, start-1)]
		}
	}
	if schema {
		if err := rows.check(); err != nil {
			return err
		}
	}
	event = append(event, `],"dels":[`...)
	for i, id := range outside {
		if i > 0 {
			event = append(event, ',')
		}
		event = strconv.AppendInt(event, id, 10)
	}
	event = strconv.AppendBool(append(event, `],"schema":`...), schema)
	s.event = append(event, "}\n\n"...)
	return nil
}

// newEvent begins an event whose data follows. history is that of the change s.seq.
func (s *stream) newEvent(name, history string) []byte {
	event := append(append(append(make([]byte, 0, usualEvent), "event: "...), name...), '\n')
	return append(s.appendID(event, history), "data: "...)
}

// appendID appends the line with the client's cursor.
func (s *stream) appendID(dst []byte, history string) []byte {
	return append(appendCursor(append(dst, "id: "...), s.seq, history), '\n')
}

func (s *stream) appendError(event []byte, err error) []byte {
	message := "the live query failed: the node's log has the reason"
	var e *fail.Error
	if errors.As(err, &e) {
		message = e.Message
	} else {
		s.node.log.Error().Bytes("request", s.request).Str("tenant", s.tenant.Name).Err(err).Msg("a live query failed")
	}
	event = doc.AppendQuoted(append(event, `{"error":`...), []byte(message))
	return append(event, "}\n\n"...)
}

// errUnsent means that the client has disconnected or accepts no bytes.
var errUnsent = errors.New("the event was not sent")

// keptIDs is how many ids a stream keeps room for between events.
const keptIDs = 256

// send sends the event if there is one, and the head before the first.
func (s *stream) send() error {
	event := s.event
	s.event = nil
	if s.held == nil { // else the sent bytes are not the account's
		defer s.releaseEvent()
	}
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
