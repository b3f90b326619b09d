package replication

import (
	"fmt"
	"net"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/feed"

	"github.com/rs/zerolog"
)

// window is how many bytes of a stream may be on their way: sent, and not taken by the follower yet.
const window = 4 << 20

// openers is how many tenants are opened, synced or summed at a time.
const openers = 4

// maxStreams is how many streams a connection has at most.
const maxStreams = 1 << 17

// Copy is an open tenant, in use until it is released.
type Copy struct {
	DB      *engine.DB
	Feed    *feed.Feed
	Release func()
}

// Tenants are the tenants of a node that can be fed to others. Its methods are called from several goroutines.
type Tenants interface {
	// Find returns a tenant that is open, at once; ok is false if it is not open. Names come from other nodes as they are.
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
	pool   pool // opens tenants, and reads what takes longer

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
	p := &Primary{config: c, links: map[*primaryLink]struct{}{}, copies: map[string]*Copies{}}
	p.pool.most, p.pool.work = openers, &p.work
	return p
}

// Serve feeds the node at the other end of a connection until it is lost or the Primary is closed. It closes conn.
func (p *Primary) Serve(conn net.Conn) error {
	l := &primaryLink{
		link: newLink(conn), primary: p, streams: map[uint32]*outStream{}, stalled: map[*outStream]time.Time{},
		peer: conn.RemoteAddr().String(),
	}
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

// Copies returns the copies elsewhere of a tenant that is open here. It may be used until the tenant is closed, and after that too if
// it is opened again.
func (p *Primary) Copies(tenant string) *Copies {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.copiesLocked(tenant)
	c.open = true
	return c
}

func (p *Primary) copiesLocked(tenant string) *Copies {
	c := p.copies[tenant]
	if c == nil {
		c = &Copies{primary: p, tenant: tenant}
		p.copies[tenant] = c
	}
	return c
}

// attach adds a stream to the copies of its tenant.
func (p *Primary) attach(s *outStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.copies = p.copiesLocked(s.asked.tenant)
	s.copies.add(s)
}

// detach undoes attach.
func (p *Primary) detach(s *outStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.copies.remove(s)
	p.forgetLocked(s.copies)
}

// forgetLocked forgets the copies of a tenant that is neither open nor fed.
func (p *Primary) forgetLocked(c *Copies) {
	if !c.open && c.count.Load() == 0 && p.copies[c.tenant] == c {
		c.forgotten.Store(true)
		delete(p.copies, c.tenant)
	}
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
	if c := p.copies[tenant]; c != nil {
		c.open = false
		p.forgetLocked(c)
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
	queue   []*outStream             // that have something to do, first come first served
	stalled map[*outStream]time.Time // whose window is full, and since when; the zero time once that was noted

	handed []handed // of the frames that are being written; of the writing goroutine
}

// handed is a change whose record is in the frames being written, or was in earlier ones.
type handed struct {
	stream *outStream
	change uint64
	all    bool // there was no later change when it was read
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
		return l.open(f.stream, m)
	case kindAck:
		var m ack
		if err := m.decode(f.payload); err != nil {
			return err
		}
		if s := l.stream(f.stream); s != nil {
			return s.acked(m)
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
func (l *primaryLink) open(id uint32, m open) error {
	if old := l.stream(id); old != nil {
		l.drop(old)
	}
	s := &outStream{link: l, id: id, asked: m}
	s.waker.Wake = func() { l.ready(s) }
	l.mu.Lock()
	if len(l.streams) == maxStreams {
		l.mu.Unlock()
		return fmt.Errorf("%w: more than %d streams on one connection", errFrame, maxStreams)
	}
	l.streams[id] = s
	l.mu.Unlock()
	l.primary.attach(s)
	l.ready(s)
	return nil
}

// drop forgets a stream.
func (l *primaryLink) drop(s *outStream) {
	l.mu.Lock()
	if l.streams[s.id] == s {
		delete(l.streams, s.id)
	}
	delete(l.stalled, s)
	s.gone = true
	offered := s.offered
	s.offered = nil
	l.mu.Unlock()
	if offered != nil {
		offered.Release()
	}
	l.primary.detach(s)
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
		h.stream.copies.handed(h)
	}
	clear(l.handed)
	l.handed = l.handed[:0]
}

// tick implements ends: a copy that has taken nothing for too long is one that no write waits for.
func (l *primaryLink) tick() {
	var late []*outStream
	l.mu.Lock()
	for s, since := range l.stalled {
		if !since.IsZero() && time.Since(since) >= silence {
			l.stalled[s] = time.Time{}
			late = append(late, s)
		}
	}
	l.mu.Unlock()
	for _, s := range late {
		s.copies.late(s)
	}
}

// stall makes the next acknowledgement put a stream with a full window into the queue. A tenant that was opened for it is released.
func (l *primaryLink) stall(s *outStream) {
	l.mu.Lock()
	if _, ok := l.stalled[s]; !ok && !s.gone {
		l.stalled[s] = time.Now()
	}
	offered := s.offered
	s.offered = nil
	l.mu.Unlock()
	if offered != nil {
		offered.Release()
	}
	if s.free() > 0 { // it came meanwhile
		l.resume(s)
	}
}

// resume puts a stream into the queue if its window was full.
func (l *primaryLink) resume(s *outStream) {
	l.mu.Lock()
	_, stalled := l.stalled[s]
	delete(l.stalled, s)
	l.mu.Unlock()
	if stalled {
		l.ready(s)
	}
}

// offer is a tenant that is open, in use until it is released.
type offer struct {
	Copy
	covered uint64 // forks up to the history of this term are on disk
}

// acquire opens the tenant of s on the pool and then puts s back into the queue. What is in the tenant's file is on disk then, and with
// forks its forks too.
func (l *primaryLink) acquire(s *outStream, forks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.acquiring || s.gone {
		return
	}
	s.acquiring = true
	l.primary.pool.run(func() {
		o, err := l.opened(s, forks)
		l.mu.Lock()
		s.acquiring = false
		kept := err == nil && o != nil && !s.gone
		if kept {
			s.offered = o
		}
		l.mu.Unlock()
		switch {
		case err != nil:
			l.endWith(s, asEnded(err))
		case kept:
			l.ready(s)
		case o != nil:
			o.Release()
		}
	})
}

// opened opens the tenant of s. It returns nil if the stream is gone.
func (l *primaryLink) opened(s *outStream, forks bool) (*offer, error) {
	if s.isGone() {
		return nil, nil
	}
	c, err := l.primary.config.Tenants.Acquire(s.asked.tenant)
	if err != nil {
		return nil, err
	}
	o := offer{Copy: c}
	ahead := !s.begun && s.asked.seq > c.Feed.End(feed.Durable) // the copy must not hold what can be lost here
	if err = c.Feed.Cover(); err == nil && (forks || ahead) {
		o, err = covered(c)
	}
	if err != nil {
		c.Release()
		return nil, err
	}
	return &o, nil
}

// covered syncs a tenant.
func covered(c Copy) (o offer, err error) {
	o.Copy = c
	_, history := c.DB.Position()
	if o.covered, _, err = engine.ParseHistory(history); err != nil {
		return o, err
	}
	return o, c.DB.Sync()
}

// take returns the tenant of s, in use: the one that was opened for it, or one that is open anyway.
func (l *primaryLink) take(s *outStream) (o offer, ok bool) {
	l.mu.Lock()
	offered := s.offered
	s.offered = nil
	l.mu.Unlock()
	switch {
	case offered != nil:
		return *offered, true
	case !s.begun:
		return offer{}, false
	}
	o.Copy, ok = l.primary.config.Tenants.Find(s.asked.tenant)
	return o, ok
}
