package replication

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Times of a connection. Either side sends something at least every aliveEvery, and a side that has heard nothing for silence
// considers the connection lost.
const (
	aliveEvery = time.Second
	silence    = 3 * time.Second
)

// fillSize is about how many bytes of frames are collected before they are sent.
const fillSize = 256 << 10

// writeSize is how many bytes are sent with one write. The other side has silence to take them, so a slow connection is not one
// that is lost.
const writeSize = 32 << 10

// link is one end of the connection between two nodes. One goroutine reads frames, another one writes them.
type link struct {
	conn   net.Conn
	drains bool          // what has come is read though nothing more can be sent: it may be the last records of a primary
	heard  atomic.Int64  // when something came the last time, in Unix nanoseconds; 0 for never
	wake   chan struct{} // has a value if there may be something to send
	ended  chan struct{} // closed when the link ends
	close  sync.Once
}

// ends is what a link does with its frames. handle is called by the reading goroutine, the others by the writing one. None of them
// waits for a tenant to be opened or read: meanwhile the other side would hear nothing and consider the connection lost.
type ends interface {
	// handle takes a frame. An error ends the link.
	handle(f frame) error
	// fill appends frames to dst, about fillSize bytes at most.
	fill(dst []byte) []byte
	// sent is called after all that fill returned has been handed to the operating system.
	sent()
	// tick is called once a second.
	tick()
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// notify makes the writing goroutine call fill. It never blocks.
func (l *link) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// cut ends the link. It does not wait.
func (l *link) cut() {
	l.close.Do(func() {
		close(l.ended)
		l.conn.Close()
	})
}

// run serves the link until it is cut or lost, and returns the first error.
func (l *link) run(e ends) error {
	read := make(chan error, 1)
	go func() {
		err := l.read(e)
		l.cut()
		read <- err
	}()
	err := l.write(e)
	if err != nil && l.drains && !errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.Join(err, <-read) // until the end, or silence
	}
	l.cut()
	return errors.Join(err, <-read)
}

func (l *link) read(e ends) error {
	r := frameReader{r: bufio.NewReaderSize(hearing{l}, 64<<10)}
	for {
		f, err := r.next()
		if err != nil {
			return err
		}
		if f.kind == kindAlive {
			continue
		}
		if err := e.handle(f); err != nil {
			return err
		}
	}
}

// hearing reads from the connection of a link. A read fails if nothing comes for as long as silence, in the middle of a frame too.
type hearing struct{ *link }

func (h hearing) Read(b []byte) (int, error) {
	if err := h.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	n, err := h.conn.Read(b)
	if n > 0 {
		h.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

func (l *link) write(e ends) error {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	var buf []byte
	for ticked := false; ; {
		buf = e.fill(buf[:0])
		if ticked {
			e.tick()
			if ticked = false; len(buf) == 0 {
				buf = endFrame(beginFrame(buf, kindAlive, 0), 0)
			}
		}
		if err := l.send(buf); err != nil {
			return err
		}
		e.sent()
		if len(buf) == 0 {
			select {
			case <-l.ended:
				return nil
			case <-l.wake:
			case <-ticker.C:
				ticked = true
			}
			continue
		}
		if cap(buf) > 2*fillSize {
			buf = nil
		}
		select {
		case <-ticker.C:
			ticked = true
		default:
		}
	}
}

// send hands bytes to the operating system.
func (l *link) send(b []byte) error {
	for len(b) > 0 {
		if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		n, err := l.conn.Write(b[:min(len(b), writeSize)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
