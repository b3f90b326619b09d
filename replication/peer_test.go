package replication

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/feed"
)

// peer is the other end of a connection to a host, of which the test sends and reads each frame.
type peer struct {
	w    *world
	conn net.Conn
	r    frameReader
}

// peer connects to a host as a node that follows.
func (w *world) peer(to *host) *peer {
	w.t.Helper()
	conn, err := w.network.Host("peer").Dial(context.Background(), "tcp", to.name+":80")
	if err != nil {
		w.t.Fatal(err)
	}
	return &peer{w, conn, frameReader{r: bufio.NewReader(conn)}}
}

func (p *peer) send(k kind, stream uint32, payload []byte) {
	p.w.t.Helper()
	if _, err := p.conn.Write(endFrame(append(beginFrame(nil, k, stream), payload...), 0)); err != nil {
		p.w.t.Fatal(err)
	}
}

// open opens a stream from where a copy that has everything would be.
func (p *peer) open(stream uint32, h *host, tenant string, counts bool) {
	p.w.t.Helper()
	seq, history := h.get(tenant).now().Position()
	p.send(kindOpen, stream, open{tenant: tenant, node: "peer", seq: seq, history: history, counts: counts}.append(nil))
}

// next returns the next frame of a kind.
func (p *peer) next(k kind) frame {
	p.w.t.Helper()
	for {
		f, err := p.r.next()
		if err != nil {
			p.w.t.Fatalf("instead of a frame of kind %d: %v", k, err)
		}
		if f.kind == k {
			return f
		}
	}
}

// stayAlive sends alive frames until the connection ends, and drops what arrives.
func (p *peer) stayAlive() (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		go io.Copy(io.Discard, p.conn)
		for {
			if _, err := p.conn.Write(endFrame(beginFrame(nil, kindAlive, 0), 0)); err != nil {
				return
			}
			time.Sleep(aliveEvery)
		}
	}()
	return func() {
		p.conn.Close()
		<-done
	}
}

// alone runs a test with a primary that has the tenant t with a collection c.
func alone(t *testing.T, test func(w *world, one *host)) {
	t.Helper()
	run(t, []string{"one"}, func(w *world) {
		one := w.hosts["one"]
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		test(w, one)
	})
}

// putLarge puts a row of about some bytes.
func (h *host) putLarge(name string, bytes int) {
	h.w.t.Helper()
	h.exec(name, `put c {n: 1, s: "`+strings.Repeat("x", bytes)+`"}`)
}

func TestAWriteIsHandedOverOnlyWhenItsBytesAreWritten(t *testing.T) {
	alone(t, func(w *world, one *host) {
		p := w.peer(one)
		p.open(1, one, "t", false)
		p.next(kindHello)
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			io.Copy(io.Discard, p.conn)
		}()
		began := time.Now()
		one.putLarge("t", 200<<10) // the connection takes 64 KiB
		if took := time.Since(began); took != time.Second {
			t.Errorf("the write took %v, want 1s: until the other side reads", took)
		}
		p.conn.Close()
	})
}

// TestACopyIsConnectedWhileWritesGoOn: the first row is three fills, and as its last one is written there is another row to send.
func TestACopyIsConnectedWhileWritesGoOn(t *testing.T) {
	alone(t, func(w *world, one *host) {
		one.putLarge("t", 600<<10)
		p := w.peer(one)
		seq, history := one.get("t").now().Position()
		p.send(kindOpen, 1, open{tenant: "t", node: "peer", seq: seq - 1, history: history, counts: true}.append(nil))
		p.next(kindHello)
		synctest.Wait() // the first fill is being written
		one.putLarge("t", 600<<10)
		go io.Copy(io.Discard, io.LimitReader(p.conn, 800<<10)) // with what the connection holds, the first row and not the second
		synctest.Wait()
		r := one.primary.Copies("t").Replicas()
		if len(r) != 1 || r[0].Sent != seq || !one.primary.Copies("t").Connected() {
			t.Errorf("a copy that was handed all that there was when it was opened is not connected, because more was written since: %v", r)
		}
		p.conn.Close()
	})
}

func TestACopyThatTakesNothingIsWaitedForNoLongerThanTheSilence(t *testing.T) {
	alone(t, func(w *world, one *host) {
		p := w.peer(one)
		p.open(1, one, "t", true)
		p.next(kindHello)
		wait := p.stayAlive()
		began := time.Now()
		for range 12 {
			one.putLarge("t", 500<<10) // 6 MB, and the window is 4
		}
		if took := time.Since(began); took > silence+2*aliveEvery {
			t.Errorf("the writes took %v", took)
		}
		if r := one.primary.Copies("t").Replicas(); len(r) != 1 {
			t.Errorf("copies: %v, want the one that is alive", r)
		}
		// Once it takes what is on its way, it catches up, and writes wait for it again.
		s := one.primary.Copies("t").all()[0]
		connected := one.primary.Copies("t").Connected
		if connected() {
			t.Error("a copy that takes nothing is connected")
		}
		for !connected() {
			before := s.sent.Load()
			p.send(kindAck, 1, ack{taken: before}.append(nil))
			time.Sleep(time.Millisecond)
			if s.sent.Load() == before && !connected() {
				t.Fatal("the copy is not connected though it has taken everything")
			}
		}
		wait()
	})
}

// TestOneLargeBlockDoesNotHoldUpOtherTenants: between a write of one tenant and its record on the connection are at most what is in
// the connection and two fills.
func TestOneLargeBlockDoesNotHoldUpOtherTenants(t *testing.T) {
	alone(t, func(w *world, one *host) {
		one.create("large", false)
		one.exec("large", `create collection c (n int, s text)`)
		p := w.peer(one)
		p.open(1, one, "t", false)
		p.open(2, one, "large", false)
		p.next(kindHello)
		p.next(kindHello)
		synctest.Wait()
		var writes []func()
		statement := `put c [`
		for n := range 6 {
			statement += fmt.Sprintf(`{n: %d, s: "%s"}, `, n, strings.Repeat("y", 500<<10))
		}
		for name, text := range map[string]string{"large": statement + `{n: 8}]`, "t": `put c {n: 1}`} {
			done := make(chan struct{})
			writes = append(writes, func() { <-done })
			go func() {
				defer close(done)
				if name == "t" {
					time.Sleep(time.Millisecond) // the large block is on its way
				}
				one.exec(name, text)
			}()
		}
		time.Sleep(2 * time.Millisecond)
		before, all := 0, 0
		for seen := false; all < 3000<<10; {
			f := p.next(kindWrites)
			if all += len(f.payload); f.stream == 1 {
				seen = true
			} else if !seen {
				before = all
			}
		}
		if before == 0 || before > 3*fillSize {
			t.Errorf("%d bytes of the large block came before the record of the other tenant, want at most %d", before, 3*fillSize)
		}
		for _, wait := range writes {
			wait()
		}
		p.conn.Close()
	})
}

func TestAnOpeningTenantIsOpenedOnceAndReleased(t *testing.T) {
	alone(t, func(w *world, one *host) {
		var opened atomic.Int32
		one.acquiring = func(string) {
			opened.Add(1)
			time.Sleep(time.Second)
		}
		p := w.peer(one)
		p.open(1, one, "t", false)
		for range 5 {
			time.Sleep(100 * time.Millisecond)
			one.primary.Opened("t")
		}
		p.next(kindHello)
		synctest.Wait()
		if uses := one.get("t").inUse(); opened.Load() != 1 || uses != 0 {
			t.Errorf("the tenant was opened %d times for one stream and is in use %d times, want 1 and 0", opened.Load(), uses)
		}
		p.open(2, one, "t", false) // and it ends while the tenant is opened
		time.Sleep(100 * time.Millisecond)
		p.send(kindClose, 2, nil)
		p.open(3, one, "t", false)
		time.Sleep(500 * time.Millisecond)
		p.conn.Close()
		time.Sleep(5 * time.Second)
		if uses := one.get("t").inUse(); uses != 0 {
			t.Errorf("the tenant is in use %d times after its streams have ended", uses)
		}
		if len(one.primary.Copies("t").Replicas()) != 0 {
			t.Error("streams are left")
		}
	})
}

// TestHostileFramesEndTheirConnection: whatever a node sends, the primary ends that connection and goes on feeding others.
func TestHostileFramesEndTheirConnection(t *testing.T) {
	for name, send := range map[string]func(p *peer){
		"a length of 0":          func(p *peer) { p.conn.Write([]byte{0, 0, 0, 0}) },
		"a length of 4 GiB":      func(p *peer) { p.conn.Write([]byte{255, 255, 255, 255, 1}) },
		"a changed byte":         func(p *peer) { b := endFrame(beginFrame(nil, kindAlive, 1), 0); b[5] ^= 1; p.conn.Write(b) },
		"an unknown kind":        func(p *peer) { p.send(kinds, 1, nil) },
		"a frame of a primary":   func(p *peer) { p.send(kindHello, 1, nil) },
		"an open without a node": func(p *peer) { p.send(kindOpen, 1, []byte{1, 't'}) },
		"an open with more":      func(p *peer) { p.send(kindOpen, 1, append(open{tenant: "t"}.append(nil), 1)) },
		"a text past its end":    func(p *peer) { p.send(kindOpen, 1, []byte{255, 't'}) },
		"a flag of 2":            func(p *peer) { b := open{tenant: "t"}.append(nil); b[len(b)-1] = 2; p.send(kindOpen, 1, b) },
		"a short ack":            func(p *peer) { p.send(kindAck, 9, []byte{1, 2, 3}) },
		"an ack of more bytes than were sent": func(p *peer) {
			p.open(1, p.w.hosts["one"], "t", true)
			p.next(kindHello)
			p.send(kindAck, 1, ack{taken: 1}.append(nil))
		},
		"an ack of a change that was not sent": func(p *peer) {
			p.open(1, p.w.hosts["one"], "t", true)
			p.next(kindHello)
			p.send(kindAck, 1, ack{applied: 1 << 60, synced: 1 << 60}.append(nil))
		},
		"an ack of a change on disk that is not applied": func(p *peer) {
			p.open(1, p.w.hosts["one"], "t", true)
			p.next(kindHello)
			p.send(kindAck, 1, ack{applied: 0, synced: 1}.append(nil))
		},
		"an ack before the hello": func(p *peer) {
			one := p.w.hosts["one"]
			one.mu.Lock()
			one.acquiring = func(string) { time.Sleep(time.Second) }
			one.mu.Unlock()
			p.send(kindOpen, 1, open{tenant: "t", node: "peer", seq: 1 << 60, counts: true}.append(nil))
			p.send(kindAck, 1, ack{applied: 1 << 60, synced: 1 << 60}.append(nil))
		},
		"half a frame and silence": func(p *peer) { p.conn.Write(beginFrame(nil, kindOpen, 1)) },
		"silence":                  func(*peer) {},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(w *world, one, two *host) {
				p := w.peer(one)
				send(p)
				began := time.Now()
				for {
					_, err := p.r.next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatalf("the connection ends with %v, want its end", err)
					}
				}
				limit := time.Duration(0)
				if strings.HasSuffix(name, "silence") {
					limit = silence
				}
				if took := time.Since(began); took > limit {
					t.Errorf("the connection ended after %v, want %v", took, limit)
				}
				one.exec("t", `put c {n: 1}`)
				w.same("t", one, two)
				if r := one.primary.Copies("t").Replicas(); len(r) != 1 || w.status(two).Images != 1 || one.follower.Reconnects() > 0 {
					t.Errorf("the copies are %v and the other node's status is %+v", r, w.status(two))
				}
			})
		})
	}
}

func TestFramesOfUnknownStreamsAreIgnored(t *testing.T) {
	alone(t, func(w *world, one *host) {
		p := w.peer(one)
		p.send(kindClose, 7, nil)
		p.send(kindAck, 7, ack{taken: 1 << 60}.append(nil))
		p.send(kindOpen, 0, open{tenant: "../../etc", node: "peer"}.append(nil))
		var m end
		if err := m.decode(p.next(kindEnd).payload); err != nil || m.status != endAbsent {
			t.Errorf("the stream of no tenant ends with %+v, %v", m, err)
		}
		p.open(7, one, "t", false)
		p.next(kindHello)
		p.open(7, one, "t", false) // instead of the other one of that number
		p.next(kindHello)
		if r := one.primary.Copies("t").Replicas(); len(r) != 1 {
			t.Errorf("%d copies, want 1", len(r))
		}
		p.conn.Close()
		time.Sleep(time.Second)
		if len(one.primary.copies) != 1 {
			t.Errorf("the primary remembers %d tenants, want 1", len(one.primary.copies))
		}
	})
}

// primaryPeer makes a host follow a node that the test plays.
func (w *world) primaryPeer(h *host) *peer {
	w.t.Helper()
	l, err := w.network.Host("peer").Listen(80)
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	h.follower.Follow("t", Target{From: "peer"})
	conn, err := l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	return &peer{w, conn, frameReader{r: bufio.NewReader(conn)}}
}

// TestAHostilePrimaryChangesNoCopy: the copy is what it was, and memory is bounded.
func TestAHostilePrimaryChangesNoCopy(t *testing.T) {
	record := func(kind byte, payload []byte) []byte {
		b := binary.LittleEndian.AppendUint64(nil, 100) // the last change on its disk
		b = binary.LittleEndian.AppendUint32(append(b, kind), uint32(len(payload)))
		return append(b, payload...)
	}
	for name, tc := range map[string]struct {
		send func(p *peer, stream uint32)
		lost bool // the connection has to end
	}{
		"records before a hello":    {func(p *peer, stream uint32) { p.send(kindWrites, stream, record(1, []byte("x"))) }, false},
		"frames of unknown streams": {func(p *peer, _ uint32) { p.send(kindWrites, 99, nil); p.send(kindEnd, 98, nil) }, false},
		"a frame of a follower":     {func(p *peer, stream uint32) { p.send(kindAck, stream, nil) }, true},
		"a malformed hello":         {func(p *peer, stream uint32) { p.send(kindHello, stream, []byte{1}) }, true},
		"a hello with too many ids": {func(p *peer, stream uint32) {
			p.send(kindHello, stream, hello{history: p.history(), above: make([]string, maxAbove+1)}.append(nil))
		}, true},
		"a hello of no history": {func(p *peer, stream uint32) { p.send(kindHello, stream, hello{history: "7-zz"}.append(nil)) }, false},
		"no block": {func(p *peer, stream uint32) {
			p.hello(stream)
			p.send(kindWrites, stream, record(1, []byte("no block")))
		}, false},
		"an empty record":     {func(p *peer, stream uint32) { p.hello(stream); p.send(kindWrites, stream, record(1, nil)) }, false},
		"a record of no kind": {func(p *peer, stream uint32) { p.hello(stream); p.send(kindWrites, stream, record(9, []byte("x"))) }, true},
		"a record of 4 GiB": {func(p *peer, stream uint32) {
			p.hello(stream)
			p.send(kindWrites, stream, append(make([]byte, 8), 1, 255, 255, 255, 255, 0))
		}, true},
		"a short writes": {func(p *peer, stream uint32) { p.hello(stream); p.send(kindWrites, stream, []byte{1}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(w *world, one, two *host) {
				two.follower.Stop("t")
				before := two.rows("t", "get c order id")
				two.imaging = func(context.Context, string) error { return errors.New("no image") }
				p := w.primaryPeer(two)
				stream := p.next(kindOpen).stream
				tc.send(p, stream)
				synctest.Wait()
				for lost := false; !lost; {
					switch _, err := p.r.next(); {
					case err == nil && !tc.lost:
						lost = true // it goes on
					case err != nil && tc.lost:
						lost = true
					case err != nil:
						t.Fatalf("the connection is lost: %v", err)
					}
				}
				p.conn.Close()
				if after := two.rows("t", "get c order id"); after != before {
					t.Errorf("the copy held %s and holds %s", before, after)
				}
			})
		})
	}
}

// TestMoreThanWasGrantedEndsTheConnection: a primary that ignores the window cannot fill the memory.
func TestMoreThanWasGrantedEndsTheConnection(t *testing.T) {
	s, l := idleStream()
	piece := append(make([]byte, 8), make([]byte, maxPiece)...)
	piece[8] = recordBlock
	binary.LittleEndian.PutUint32(piece[9:], 1<<29)
	for range window / maxPiece {
		if err := s.writes(l, 0, piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.writes(l, 0, piece[:9]); !errors.Is(err, errFrame) {
		t.Errorf("a byte more than the window: %v", err)
	}
	s.received--
	s.mu.Lock()
	s.feed = feed.New(0)
	s.ackLocked(nil)
	s.mu.Unlock()
	if err := s.writes(l, 0, piece); err != nil {
		t.Errorf("after an acknowledgement: %v", err)
	}
}

// idleStream returns a stream that records flow to, on a connection of which nothing is served.
func idleStream() (*inStream, *sourceLink) {
	source := &source{streams: map[*inStream]struct{}{}}
	l := &sourceLink{link: newLink(nil), source: source, byID: map[uint32]*inStream{}, due: map[*inStream]struct{}{}}
	s := &inStream{source: source, link: l, phase: flowing, settled: make(chan struct{})}
	s.idle.L = &s.mu
	source.link = l
	return s, l
}

func (p *peer) history() string {
	_, history := p.w.hosts["two"].get("t").now().Position()
	return history
}

func (p *peer) hello(stream uint32) {
	p.w.t.Helper()
	p.send(kindHello, stream, hello{history: p.history(), above: []string{"peer"}}.append(nil))
}
