package replication

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/fail"
)

// Copies are the copies of one tenant on other nodes that this node feeds. A write waits for them as --sync says.
type Copies struct {
	primary *Primary
	tenant  string
	open    bool // the tenant is open here; under Primary.mu

	forgotten atomic.Bool  // the Primary has another value for the tenant, or none
	count     atomic.Int32 // of streams

	mu      sync.Mutex
	streams []*outStream
	moved   chan struct{} // closed when a stream has made progress or ended; nil if no caller waits
}

// Replica is how far a copy of a tenant has come.
type Replica struct {
	Addr    string
	Sent    uint64 // the last change handed to the operating system for it
	Applied uint64 // the last change that its reads see
	Synced  uint64 // the last change on its disk
	Counts  bool   // for --sync replica
}

func (c *Copies) add(s *outStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, s)
	c.count.Store(int32(len(c.streams)))
}

func (c *Copies) remove(s *outStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.streams, s); i >= 0 {
		c.streams = slices.Delete(c.streams, i, i+1)
		c.count.Store(int32(len(c.streams)))
		c.wakeLocked()
	}
}

// current returns the value that the streams of the tenant are in: c, unless the tenant was closed since.
func (c *Copies) current() *Copies {
	for c.forgotten.Load() {
		c = c.primary.Copies(c.tenant)
	}
	return c
}

func (c *Copies) all() []*outStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.streams)
}

func (c *Copies) wakeLocked() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// handed notes what the operating system has taken.
func (c *Copies) handed(h handed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := h.stream
	s.connected = s.connected || h.all
	s.state.handed = max(s.state.handed, h.change)
	c.wakeLocked()
}

// late notes that a copy takes nothing: until it has caught up again no write waits for it.
func (c *Copies) late(s *outStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.connected = false
	c.wakeLocked()
}

func (c *Copies) acked(s *outStream, m ack) {
	c.mu.Lock()
	s.applied, s.synced = m.applied, m.synced
	c.wakeLocked()
	c.mu.Unlock()
	if m.summed && s.comparing.CompareAndSwap(false, true) {
		c.primary.pool.run(func() {
			defer s.comparing.Store(false)
			if !s.isGone() {
				c.compare(s, m)
			}
		})
	}
}

// compare compares the sum of a copy with the tenant's, if both are at one change.
func (c *Copies) compare(s *outStream, m ack) {
	here, ok := c.primary.config.Tenants.Find(c.tenant)
	if !ok {
		return
	}
	defer here.Release()
	if seq, history := here.DB.Position(); seq != m.applied || history != m.history {
		return
	}
	seq, history, sum, ok := here.DB.Sum()
	if !ok || seq != m.applied || history != m.history || sum == m.sum {
		return
	}
	c.primary.config.Log.Error().Str("tenant", c.tenant).Str("replica", s.link.peer).Uint64("change", seq).
		Msg("a replica holds other content than its primary at the same change: it is sent an image")
	c.primary.config.Diverged(c.tenant)
	s.link.endWith(s, &Ended{endDiverged, "the copy holds other content than its primary at the same change"})
}

// Replicas returns the copies and how far they have come.
func (c *Copies) Replicas() []Replica {
	c = c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Replica, len(c.streams))
	for i, s := range c.streams {
		out[i] = Replica{s.link.peer, s.state.handed, s.applied, s.synced, s.asked.counts}
	}
	return out
}

// Nodes returns the ids of the nodes that the copies are on.
func (c *Copies) Nodes() []string {
	c = c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]string, len(c.streams))
	for i, s := range c.streams {
		ids[i] = s.asked.node
	}
	return ids
}

// Handed blocks until every connected copy has been handed a change: its record is with the operating system on its way. A copy is
// connected from when it has been handed everything that there was until its connection is lost or its window has been full for as
// long as silence, so no copy that is cut off or takes nothing holds up a write for longer.
func (c *Copies) Handed(ctx context.Context, change uint64) error {
	if c = c.current(); c.count.Load() == 0 {
		return nil
	}
	return c.await(ctx, nil, func() bool {
		for _, s := range c.streams {
			if s.connected && s.state.handed < change {
				return false
			}
		}
		return true
	})
}

// Confirmed blocks until one copy that counts has a change on its disk. It fails with fail.Timeout after wait.
func (c *Copies) Confirmed(ctx context.Context, change uint64, wait time.Duration) error {
	c = c.current()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return c.await(ctx, timer.C, func() bool {
		for _, s := range c.streams {
			if s.asked.counts && s.synced >= change {
				return true
			}
		}
		return false
	})
}

// Connected reports whether a copy that counts is connected.
func (c *Copies) Connected() bool {
	c = c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.streams, func(s *outStream) bool { return s.asked.counts && s.connected })
}

// await blocks until done, which is called under the lock, returns true.
func (c *Copies) await(ctx context.Context, late <-chan time.Time, done func() bool) error {
	for {
		c.mu.Lock()
		if done() {
			c.mu.Unlock()
			return nil
		}
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		select {
		case <-moved:
		case <-late:
			return fail.New(fail.Timeout, "no replica has confirmed the change in time")
		case <-ctx.Done():
			return fail.Stopped(ctx, "waiting for a replica")
		}
	}
}
