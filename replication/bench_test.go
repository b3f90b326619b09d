package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/feed"
	"fenec/engine/wal"

	"github.com/rs/zerolog"
)

// one is a tenant that is fed and follows under any name.
type one struct {
	Copy
}

func (o *one) Find(string) (Copy, bool) { return o.Copy, true }

func (o *one) Acquire(string) (Copy, error) { return o.Copy, nil }
func (o *one) Above(string) []string        { return nil }
func (o *one) Reopen(string) error          { return errors.New("not in a benchmark") }
func (o *one) CaughtUp(string) error        { return nil }
func (o *one) Replace(string, io.Reader, int64, string, uint64, bool) error {
	return errors.New("not in a benchmark")
}

func noImage(context.Context, string, string) (image io.ReadCloser, size int64, err error) {
	return nil, 0, os.ErrInvalid
}

// benchPair is a primary and a copy of it that are at one change, and the listener of the primary.
type benchPair struct {
	from, to *one
	primary  *Primary
	follower *Follower
	addr     string
	dials    func(ctx context.Context, addr string) (net.Conn, error)
}

func newBenchPair(b *testing.B, dir string, tcp bool) *benchPair {
	b.Helper()
	p := &benchPair{from: &one{}, to: &one{}}
	p.primary = NewPrimary(PrimaryConfig{ID: "from", Tenants: p.from, Log: zerolog.Nop()})
	p.follower = NewFollower(FollowerConfig{
		ID: "to", Followers: p.to, Image: noImage, Feeds: func(string) []string { return nil }, Log: zerolog.Nop(),
		Connect: func(ctx context.Context, addr string) (net.Conn, error) { return p.dials(ctx, addr) },
	})
	copies := p.primary.Copies("t0")
	o := engine.Options{Sync: wal.Policy{Always: true}, Acknowledge: copies.Handed}
	p.from.Copy = benchTenant(b, filepath.Join(dir, "from.fenec"), o, nil)
	exec(b, p.from.DB, `create collection c (n int, s text)`)
	image, _, _, err := p.from.DB.OpenImage()
	if err != nil {
		b.Fatal(err)
	}
	p.to.Copy = benchTenant(b, filepath.Join(dir, "to.fenec"), engine.Options{Sync: o.Sync, Follower: true}, image)
	image.Close()
	var work sync.WaitGroup
	if tcp {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		p.addr = l.Addr().String()
		p.dials = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
		work.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				work.Go(func() { _ = p.primary.Serve(conn) })
			}
		})
		b.Cleanup(func() { l.Close() })
	} else {
		p.dials = func(context.Context, string) (net.Conn, error) {
			here, there := net.Pipe()
			work.Go(func() { _ = p.primary.Serve(there) })
			return here, nil
		}
	}
	b.Cleanup(func() {
		p.follower.Close()
		p.primary.Close()
		p.from.DB.Close()
		p.to.DB.Close()
	})
	return p
}

func benchTenant(b *testing.B, path string, o engine.Options, image io.Reader) Copy {
	b.Helper()
	changes := feed.New(feed.DefaultKeep)
	o.Feed = changes
	var db *engine.DB
	var err error
	if image == nil {
		db, err = engine.Create(path, o)
	} else {
		db, err = engine.InstallImage(path, image, o)
	}
	if err != nil {
		b.Fatal(err)
	}
	return Copy{db, changes, func() {}}
}

func exec(b *testing.B, db *engine.DB, text string) {
	b.Helper()
	if _, err := db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil); err != nil {
		b.Fatal(err)
	}
}

// awaitCopy waits until reads of the copy see a change.
func (p *benchPair) awaitCopy(b *testing.B, seq uint64) {
	for {
		moved := p.to.Feed.Moved(feed.Landed)
		if p.to.Feed.End(feed.Landed) >= seq {
			return
		}
		select {
		case <-moved:
		case <-time.After(10 * time.Second):
			s, _ := p.follower.Status("t0")
			b.Fatalf("the copy does not reach change %d: %+v", seq, s)
		}
	}
}

// BenchmarkLag measures how long after the answer of a put reads of a copy see it, each synced on its own (--sync always). put-ns is
// the put itself, lag-ns what comes after it. The two disks are this machine's memory and the directory for temporary files.
func BenchmarkLag(b *testing.B) {
	memory := "/dev/shm"
	for _, disk := range []string{"memory", "disk"} {
		for _, tcp := range []bool{false, true} {
			b.Run(fmt.Sprintf("disk=%s/tcp=%v", disk, tcp), func(b *testing.B) {
				dir := b.TempDir()
				if disk == "memory" {
					var err error
					if dir, err = os.MkdirTemp(memory, "fenec"); err != nil {
						b.Skip("no file system in memory here")
					}
					defer os.RemoveAll(dir)
				}
				p := newBenchPair(b, dir, tcp)
				p.follower.Follow("t0", Target{From: p.addr, Counts: true})
				for !p.primary.Copies("t0").Connected() {
					time.Sleep(time.Millisecond)
				}
				var put, lag time.Duration
				b.ResetTimer()
				for b.Loop() {
					began := time.Now()
					exec(b, p.from.DB, `put c {n: 1, s: "a row as it is"}`)
					answered := time.Now()
					seq, _ := p.from.DB.Position()
					p.awaitCopy(b, seq)
					put += answered.Sub(began)
					lag += time.Since(answered)
				}
				b.ReportMetric(float64(put.Nanoseconds())/float64(b.N), "put-ns")
				b.ReportMetric(float64(lag.Nanoseconds())/float64(b.N), "lag-ns")
				b.ReportMetric(float64(lag)/float64(put), "lag/put")
			})
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdle measures what a tenant that is followed and not written to costs: bytes of memory at each end, of this package alone,
// and of processor time in a second for all of them.
func BenchmarkIdle(b *testing.B) {
	const streams = 10_000
	p := newBenchPair(b, b.TempDir(), true)
	began := heap()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		b.Fatal(err)
	}
	seq, history := p.from.DB.Position()
	peer := frameReader{r: bufio.NewReader(conn)}
	for n := range streams {
		m := open{tenant: fmt.Sprintf("t%d", n), node: "peer", seq: seq, history: history}
		if _, err := conn.Write(endFrame(m.append(beginFrame(nil, kindOpen, uint32(n+1))), 0)); err != nil {
			b.Fatal(err)
		}
	}
	for n := 0; n < streams; {
		if f, err := peer.next(); err != nil {
			b.Fatal(err)
		} else if f.kind == kindHello {
			n++
		}
	}
	primary := float64(heap()-began) / streams
	conn.Close()
	for p.primary.Count() > 0 {
		time.Sleep(time.Millisecond)
	}
	began = heap()
	for n := range streams {
		p.follower.Follow(fmt.Sprintf("t%d", n), Target{From: p.addr})
	}
	for ; ; time.Sleep(10 * time.Millisecond) {
		if _, connected := p.follower.Counts(); connected == streams {
			break
		}
	}
	both, goroutines := float64(heap()-began)/streams, runtime.NumGoroutine()
	time.Sleep((streams/sumsAtOnce + 5) * time.Second) // each stream's sum is sent once
	used := processor()
	time.Sleep(3 * time.Second)
	idle := float64((processor() - used).Milliseconds()) / 3
	for b.Loop() { // nothing: it was measured once
	}
	b.ReportMetric(primary, "primary-B/stream")
	b.ReportMetric(both-primary, "follower-B/stream")
	b.ReportMetric(float64(goroutines), "goroutines")
	b.ReportMetric(idle, "cpu-ms/s")
}
