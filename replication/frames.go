package replication

import (
	"encoding/binary"
	"errors"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
)

// Frames are the records of one tenant as frames for a tool that reads them without a connection of a follower: a hello, then
// writes.
type Frames struct {
	stream outStream
	tenant Copy
	told   bool // the hello
	buf    []byte
}

// NewFrames returns the frames of a tenant after a position. Without a history the change counts on this copy's. It fails with
// fail.Conflict if this copy did not pass through the position, or if what follows is no longer kept.
func NewFrames(c Copy, since uint64, history string) (*Frames, error) {
	if history == "" {
		history = c.DB.HistoryAt(since)
	}
	if _, _, err := engine.ParseHistory(history); err != nil {
		return nil, err
	}
	f := &Frames{tenant: c}
	f.stream.asked = open{seq: since, history: history}
	term, ok := f.stream.continues(c)
	if !ok {
		var gone *feed.Gone
		if err := c.Feed.Check(since); errors.As(err, &gone) {
			return nil, fail.New(fail.Conflict, "%v; `?image=1` answers an image", err)
		}
		return nil, fail.New(fail.Conflict, "change %d of history %s is not a change of this copy", since, history)
	}
	f.stream.at, f.stream.term, f.stream.begun = since, term, true
	_, now := c.DB.Position()
	m := hello{history: now, durable: c.Feed.End(feed.Durable)}
	f.buf = endFrame(m.append(beginFrame(nil, kindHello, 0)), 0)
	return f, nil
}

// Next returns the next frames, valid until the next call; none if there is nothing more at the moment.
func (f *Frames) Next() ([]byte, error) {
	s := &f.stream
	if !f.told {
		f.told = true
		return f.buf, nil
	}
	f.buf = f.buf[:0]
	if s.pieces.empty() {
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	for len(f.buf) < fillSize && !s.pieces.empty() {
		at := len(f.buf)
		f.buf = beginFrame(f.buf, kindWrites, 0)
		f.buf = binary.LittleEndian.AppendUint64(f.buf, s.durable)
		f.buf, _ = s.pieces.take(f.buf, maxPiece)
		f.buf = endFrame(f.buf, at)
	}
	return f.buf, nil
}

// read reads the next records. A fork after them is synced first.
func (f *Frames) read() error {
	s := &f.stream
	if err := s.read(offer{Copy: f.tenant}); err != nil || !s.forks || !s.pieces.empty() {
		return err
	}
	o, err := covered(f.tenant)
	if err != nil {
		return err
	}
	return s.read(o)
}
