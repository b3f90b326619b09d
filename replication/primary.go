package replication

import (
	"net"
	"sync"

	"fenec/engine"
	"fenec/engine/feed"

	"github.com/rs/zerolog"
)

// window is how many bytes of a stream may be on their way: sent, and not taken by the follower yet.
const window = 4 << 20

// openers is how many tenants are opened at a time for streams that have something to read there.
const openers = 4

// Copy is an open tenant, in use until it is released.
type Copy struct {
	DB      *engine.DB
	Feed    *feed.Feed
	Release func()
}

// Tenants are the tenants of a node that can be fed to others. Its methods are called from several goroutines.
type Tenants interface {
	// Find returns a tenant that is open, at once; ok is false if it is not open.
	Find(name string) (c Copy, ok bool)
	// Acquire returns a tenant, and opens it if it is not open. Its error is an *Ended if the tenant cannot be fed.
	Acquire(name string) (Copy, error)
	// Above returns the ids of the nodes that a tenant of this node follows, directly and in turn; none for a primary.
	Above(name string) []string
}

// Ended is an error that ends a stream: a status of HTTP and a sentence.
type Ended struct {
	Status   int
	Sentence string
}

func (e *Ended) Error() string { return e.Sentence }

// PrimaryConfig configures a Primary.
type PrimaryConfig struct {
	ID      string // of this node, the same as its Follower's
	Tenants Tenants
	Log     zerolog.Logger
	// Diverged is called when a copy is found to differ; it may be nil.
	Diverged func(tenant string)
}

// Primary feeds the tenants of a node to the nodes that follow them. Its methods may be called from any goroutine.
type Primary struct {
	config PrimaryConfig
	slots  chan struct{} // one for each tenant that is being opened

	mu     sync.Mutex
	ended  bool
	links  map[*primaryLink]struct{}
	copies map[string]*Copies
	work   sync.WaitGroup
}

// NewPrimary returns a Primary. The caller ends it with Close.
func NewPrimary(c PrimaryConfig) *Primary {
	if c.Diverged == nil {
		c.Diverged = func(string) {}
	}
	return &Primary{config: c, slots: make(chan struct{}, openers), links: map[*primaryLink]struct{}{}, copies: map[string]*Copies{}}
}

// Serve feeds the node at the other end of a connection until it is lost or the Primary is closed. It closes conn.
func (p *Primary) Serve(conn net.Conn) error {
	l := &primaryLink{link: newLink(conn), primary: p, streams: map[uint32]*outStream{}, peer: conn.RemoteAddr().String()}
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return conn.Close()
	}
	p.links[l] = struct{}{}
	p.work.Add(1)
	p.mu.Unlock()
	defer p.work.Done()
	err := l.run(l)
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	l.dropAll()
	return err
}

// Close ends all connections and waits for them.
func (p *Primary) Close() {
	p.mu.Lock()
	p.ended = true
	for l := range p.links {
		l.cut()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// Copies returns the copies of a tenant elsewhere that this node feeds. The same value serves the tenant as long as it is open or
// fed.
func (p *Primary) Copies(tenant string) *Copies {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.copies[tenant]
	if c == nil {
		c = &Copies{primary: p, tenant: tenant}
		p.copies[tenant] = c
	}
	return c
}

// Opened makes the streams of a tenant go on after it was opened.
func (p *Primary) Opened(tenant string) {
	for _, s := range p.streamsOf(tenant) {
		s.link.ready(s)
	}
}

// End ends the streams of a tenant, and of all connections, with a status and a sentence: it was deleted, or replaced.
func (p *Primary) End(tenant string, why *Ended) {
	for _, s := range p.streamsOf(tenant) {
		s.link.endWith(s, why)
	}
}

// Closed forgets a tenant that was closed, unless it is fed.
func (p *Primary) Closed(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.copies[tenant]; c != nil && c.count.Load() == 0 {
		delete(p.copies, tenant)
	}
}

// Count returns how many copies of its tenants the Primary feeds.
func (p *Primary) Count() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.copies {
		n += int64(c.count.Load())
	}
	return n
}

func (p *Primary) streamsOf(tenant string) []*outStream {
	p.mu.Lock()
	c := p.copies[tenant]
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.all()
}

// primaryLink is the primary's end of a connection.
type primaryLink struct {
	*link
	primary *Primary
	peer    string

	mu      sync.Mutex // taken last, also under the locks of a log and a feed
	streams map[uint32]*outStream
	queue   []*outStream // that have something to do, first come first served

	handed []handed // of the frames that are being written; of the writing goroutine
}

// handed is a change whose record is in the frames being written.
type handed struct {
	stream *outStream
	change uint64
}

// ready puts a stream into the queue of the writing goroutine.
func (l *primaryLink) ready(s *outStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.queued || s.gone {
		return
	}
	s.queued = true
	l.queue = append(l.queue, s)
	l.notify()
}

// endWith makes the writing goroutine end a stream.
func (l *primaryLink) endWith(s *outStream, why *Ended) {
	l.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	l.mu.Unlock()
	l.ready(s)
}

func (l *primaryLink) next() *outStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	s := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	s.queued = false
	return s
}

// handle implements ends.
func (l *primaryLink) handle(f frame) error {
	switch f.kind {
	case kindOpen:
		var m open
		if err := m.decode(f.payload); err != nil {
			return err
		}
		l.open(f.stream, m)
	case kindAck:
		var m ack
		if err := m.decode(f.payload); err != nil {
			return err
		}
		if s := l.stream(f.stream); s != nil {
			s.acked(m)
		}
	case kindClose:
		if s := l.stream(f.stream); s != nil {
			l.drop(s)
		}
	default:
		return errFrame
	}
	return nil
}

func (l *primaryLink) stream(id uint32) *outStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[id]
}

// open begins a stream. One that had its number ends.
func (l *primaryLink) open(id uint32, m open) {
	if old := l.stream(id); old != nil {
		l.drop(old)
	}
	s := &outStream{link: l, id: id, asked: m}
	s.waker.Wake = func() { l.ready(s) }
	s.copies = l.primary.Copies(m.tenant)
	s.copies.add(s)
	l.mu.Lock()
	l.streams[id] = s
	l.mu.Unlock()
	l.ready(s)
}

// drop forgets a stream.
func (l *primaryLink) drop(s *outStream) {
	l.mu.Lock()
	if l.streams[s.id] == s {
		delete(l.streams, s.id)
	}
	s.gone = true
	offered := s.offered
	s.offered = nil
	l.mu.Unlock()
	if offered != nil {
		offered.Release()
	}
	s.copies.remove(s)
	s.disarm()
}

func (l *primaryLink) dropAll() {
	l.mu.Lock()
	streams := make([]*outStream, 0, len(l.streams))
	for _, s := range l.streams {
		streams = append(streams, s)
	}
	l.mu.Unlock()
	for _, s := range streams {
		l.drop(s)
	}
}

// fill implements ends: it serves the streams that have something to do, in turns.
func (l *primaryLink) fill(dst []byte) []byte {
	for len(dst) < fillSize {
		s := l.next()
		if s == nil {
			break
		}
		dst = s.serve(dst)
	}
	return dst
}

// sent implements ends.
func (l *primaryLink) sent() {
	for _, h := range l.handed {
		h.stream.copies.handed(h.stream, h.change)
	}
	clear(l.handed)
	l.handed = l.handed[:0]
}

// tick implements ends.
func (l *primaryLink) tick(dst []byte) []byte { return dst }

// acquire opens a tenant on a goroutine of its own and then puts the stream back into the queue.
func (l *primaryLink) acquire(s *outStream) {
	l.primary.work.Go(func() {
		select {
		case l.primary.slots <- struct{}{}:
		case <-l.ended:
			return
		}
		c, err := l.primary.config.Tenants.Acquire(s.asked.tenant)
		<-l.primary.slots
		if err != nil {
			l.endWith(s, asEnded(err))
			return
		}
		if !l.offer(s, c) {
			c.Release()
			return
		}
		l.ready(s)
	})
}

// offer keeps a tenant open until the writing goroutine has served s. It returns false if the stream is gone.
func (l *primaryLink) offer(s *outStream, c Copy) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.gone {
		return false
	}
	s.offered = &c
	return true
}

// take returns the tenant of s, in use: the one that was opened for it, or one that is open anyway.
func (l *primaryLink) take(s *outStream) (c Copy, ok bool) {
	l.mu.Lock()
	offered := s.offered
	s.offered = nil
	l.mu.Unlock()
	if offered != nil {
		return *offered, true
	}
	return l.primary.config.Tenants.Find(s.asked.tenant)
}
