package replication

import (
	"context"
	"errors"
	"sync"
	"time"
)

// source is a node that tenants of this node follow. Its goroutine, run, keeps one connection to it.
type source struct {
	follower *Follower
	addr     string
	ctx      context.Context
	cancel   context.CancelFunc
	images   pool // fetches images

	mu      sync.Mutex // taken last, also under the locks of a log and a feed
	streams map[*inStream]struct{}
	link    *sourceLink // nil while there is no connection
	err     error       // why there is none
	heard   int64       // when the node was last heard before this connection, in Unix nanoseconds; 0 for never
}

func newSource(f *Follower, addr string) *source {
	c := &source{follower: f, addr: addr, streams: map[*inStream]struct{}{}, images: pool{most: imagesAtOnce, work: &f.work}}
	c.ctx, c.cancel = context.WithCancel(f.ctx)
	return c
}

// add makes the source feed a stream.
func (c *source) add(s *inStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = struct{}{}
	if c.link != nil {
		c.link.readyLocked(s)
	} else if c.err != nil {
		s.settle()
	}
}

// remove forgets a stream, and reports whether it was the last one.
func (c *source) remove(s *inStream) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
	return len(c.streams) == 0
}

// ready makes the writing goroutine serve a stream, if there is a connection.
func (c *source) ready(s *inStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil {
		c.link.readyLocked(s)
	}
}

// contact returns when the node was last heard, and why there is no connection to it.
func (c *source) contact() (at time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.heard, c.err
	if c.link != nil {
		n, err = max(n, c.link.heard.Load()), nil
	}
	if n > 0 {
		at = time.Unix(0, n)
	}
	return at, err
}

// run keeps a connection until the source is cancelled.
func (c *source) run() {
	backoff := firstBackoff
	for n := 0; c.ctx.Err() == nil; n++ {
		if n > 0 {
			c.follower.reconnects.Add(1)
		}
		began := time.Now()
		err := c.serve()
		if time.Since(began) > lastBackoff {
			backoff = firstBackoff
		}
		c.lost(err)
		select {
		case <-c.ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// serve connects and feeds the streams until the connection is lost.
func (c *source) serve() error {
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	conn, err := c.follower.config.Connect(ctx, c.addr)
	cancel()
	if err != nil {
		return err
	}
	l := &sourceLink{link: newLink(conn), source: c, byID: map[uint32]*inStream{}, due: map[*inStream]struct{}{}}
	l.drains = true
	defer context.AfterFunc(c.ctx, l.cut)()
	c.mu.Lock()
	c.link, c.err = l, nil
	for s := range c.streams {
		s.queued = false // it may have been in the queue of the connection before
		l.readyLocked(s)
	}
	c.mu.Unlock()
	return l.run(l)
}

// lost notes that there is no connection.
func (c *source) lost(err error) {
	if err == nil {
		err = errors.New("the connection ended")
	}
	c.mu.Lock()
	before := c.err
	if c.link != nil {
		c.heard = max(c.heard, c.link.heard.Load())
	}
	c.link, c.err = nil, err
	streams := make([]*inStream, 0, len(c.streams))
	for s := range c.streams {
		streams = append(streams, s)
	}
	c.mu.Unlock()
	if c.ctx.Err() == nil && (before == nil || before.Error() != err.Error()) {
		c.follower.config.Log.Warn().Str("primary", c.addr).Int("tenants", len(streams)).Err(err).Msg("the connection to a primary is lost")
	}
	for _, s := range streams {
		s.disconnected()
	}
}

// sourceLink is the follower's end of a connection.
type sourceLink struct {
	*link
	source *source

	// Under source.mu.
	queue []*inStream // that have something to send
	byID  map[uint32]*inStream
	last  uint32                 // the last number given to a stream
	due   map[*inStream]struct{} // whose sum is to be sent
}

func (l *sourceLink) readyLocked(s *inStream) {
	if !s.queued {
		s.queued = true
		l.queue = append(l.queue, s)
		l.notify()
	}
}

// number gives a stream a number, under which frames of it arrive.
func (l *sourceLink) number(s *inStream) uint32 {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	l.last++
	l.byID[l.last] = s
	return l.last
}

// forget ignores the frames of a stream from now on.
func (l *sourceLink) forget(s *inStream, id uint32) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	if l.byID[id] == s {
		delete(l.byID, id)
	}
}

// sumLater has the sum of a stream's copy sent with the next tick.
func (l *sourceLink) sumLater(s *inStream) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	l.due[s] = struct{}{}
}

// handle implements ends.
func (l *sourceLink) handle(f frame) error {
	l.source.mu.Lock()
	s := l.byID[f.stream]
	l.source.mu.Unlock()
	if s == nil {
		return nil // on its way when the stream ended
	}
	switch f.kind {
	case kindHello:
		var m hello
		if err := m.decode(f.payload); err != nil {
			return err
		}
		s.hello(l, f.stream, m)
	case kindWrites:
		return s.writes(l, f.stream, f.payload)
	case kindEnd:
		var m end
		if err := m.decode(f.payload); err != nil {
			return err
		}
		s.ended(l, f.stream, m)
	default:
		return errFrame
	}
	return nil
}

// fill implements ends.
func (l *sourceLink) fill(dst []byte) []byte {
	for len(dst) < fillSize {
		l.source.mu.Lock()
		if len(l.queue) == 0 {
			l.source.mu.Unlock()
			break
		}
		s := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		s.queued = false
		l.source.mu.Unlock()
		dst = s.serve(l, dst)
	}
	return dst
}

// sent implements ends.
func (l *sourceLink) sent() {}

// sumsAtOnce is how many sums of copies are computed in a second.
const sumsAtOnce = 64

// tick implements ends: it has the sums of copies computed that have changed.
func (l *sourceLink) tick() {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	n := 0
	for s := range l.due {
		if n == sumsAtOnce {
			break
		}
		n++
		delete(l.due, s)
		l.source.follower.pool.run(func() { s.sum(l) })
	}
}
