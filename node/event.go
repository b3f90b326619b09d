package node

import (
	"errors"
	"strconv"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/feed"
)

// usualEvent is the first capacity of an event, in bytes.
const usualEvent = 256

// advance is how a shape changed from one change number to another, the same for every stream at the first.
type advance struct {
	from, to uint64
	event    []byte // nil if no change in it concerns the shape
	end      error  // why there are no more events, nil if there may be
}

// advance makes the advance from s.seq, whose memory the stream then holds. It returns nil if there was no change since, and
// an error if there is no room.
func (s *stream) advance() (*advance, error) {
	s.memory.release() // of an advance that was undone
	next := &advance{from: s.seq, to: s.seq}
	moved, err := s.read(next)
	if fail.KindOf(err) == fail.Busy {
		return nil, err
	}
	s.memory.keep(int64(cap(next.event)))
	if next.end = err; err == nil && !moved {
		return nil, nil
	}
	return next, nil
}

// read reads the changes after next.from and makes an event of those of the shape. moved reports whether there were any
// changes.
func (s *stream) read(next *advance) (moved bool, err error) {
	most := uint64(s.node.config.Changes)
	changed, err := s.feed.Changed(s.scope, s.ids[:0], s.collection, next.from, most)
	s.ids = changed.IDs
	seed := func(v *engine.View) error { return s.seed(v, next) }
	switch {
	case isLost(err):
		return true, s.tenant.DB.View(s.ctx, s.scope, seed)
	case err != nil:
		return false, err
	case changed.Dropped:
		next.to = changed.Seq
		return false, s.dropped()
	case changed.Seq == next.from:
		return false, nil
	case len(changed.IDs) == 0 && !changed.Schema:
		next.to = changed.Seq
		return true, nil
	}
	return true, s.tenant.DB.View(s.ctx, s.scope, func(v *engine.View) error {
		// More may have landed before the view: an event has whole blocks, with their rows as of one change.
		more, err := s.feed.Changed(s.scope, changed.IDs, s.collection, changed.Seq, most)
		s.ids = more.IDs
		switch {
		case isLost(err):
			return seed(v)
		case err != nil:
			return err
		case more.Dropped:
			next.to = v.Seq
			return s.dropped()
		}
		schema := changed.Schema || more.Schema
		if schema && s.altered(next.from, v.Seq) {
			return seed(v)
		}
		return s.change(v, next, schema)
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
func (s *stream) seed(v *engine.View, next *advance) error {
	next.to = v.Seq
	collection := s.feed.Collection(s.scope, s.shape.collection, v.Seq)
	if s.collection != 0 && collection != s.collection {
		return s.dropped()
	}
	event := appendNumber(append(newEvent("seed", v.Seq, v.HistoryAt(v.Seq)), '{'), "seq", int64(v.Seq))
	event, err := s.shape.in(v, &s.memory.account).appendAll(append(event, `,"rows":`...))
	if err != nil {
		return err
	}
	next.event = append(event, "}\n\n"...)
	return nil
}

// change makes the event with the current state of the documents s.ids.
func (s *stream) change(v *engine.View, next *advance, schema bool) error {
	next.to = v.Seq
	event := appendNumber(append(newEvent("change", v.Seq, v.HistoryAt(v.Seq)), '{'), "seq", int64(v.Seq))
	event = append(event, `,"puts":[`...)
	outside, rows := s.ids[:0], s.shape.in(v, &s.memory.account)
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
	next.event = append(event, "}\n\n"...)
	return nil
}

// newEvent begins an event whose data follows. history is that of the change seq.
func newEvent(name string, seq uint64, history string) []byte {
	event := append(append(append(make([]byte, 0, usualEvent), "event: "...), name...), '\n')
	return append(appendID(event, seq, history), "data: "...)
}

// appendID appends the line with the client's cursor.
func appendID(dst []byte, seq uint64, history string) []byte {
	return append(appendCursor(append(dst, "id: "...), seq, history), '\n')
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
