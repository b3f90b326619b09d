package replication

import (
	"bufio"
	"errors"
	"net"
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

// fillSize is about how many bytes of frames are sent with one write.
const fillSize = 256 << 10

// link is one end of the connection between two nodes. One goroutine reads frames, another one writes them.
type link struct {
	conn  net.Conn
	heard atomic.Int64  // when the last frame came, in Unix nanoseconds; 0 for never
	wake  chan struct{} // has a value if there may be something to send
	ended chan struct{} // closed when the link ends
	close sync.Once
}

// end is what a link does with its frames. handle is called by the reading goroutine, the others by the writing one.
type ends interface {
	// handle takes a frame. An error ends the link.
	handle(f frame) error
	// fill appends frames to dst, about fillSize bytes at most.
	fill(dst []byte) []byte
	// sent is called after all that fill returned has been handed to the operating system.
	sent()
	// tick appends to dst what is sent once a second.
	tick(dst []byte) []byte
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
	l.cut()
	return errors.Join(err, <-read)
}

func (l *link) read(e ends) error {
	r := frameReader{r: bufio.NewReaderSize(l.conn, 64<<10)}
	for {
		if err := l.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		f, err := r.next()
		if err != nil {
			return err
		}
		l.heard.Store(time.Now().UnixNano())
		if f.kind == kindAlive {
			continue
		}
		if err := e.handle(f); err != nil {
			return err
		}
	}
}

func (l *link) write(e ends) error {
	timer := time.NewTimer(aliveEvery)
	defer timer.Stop()
	var buf []byte
	ticked := time.Now()
	for {
		buf = e.fill(buf[:0])
		if now := time.Now(); now.Sub(ticked) >= aliveEvery {
			ticked = now
			if buf = e.tick(buf); len(buf) == 0 {
				buf = endFrame(beginFrame(buf, kindAlive, 0), 0)
			}
		}
		if len(buf) == 0 {
			select {
			case <-l.ended:
				return nil
			case <-l.wake:
			case <-timer.C:
				timer.Reset(aliveEvery)
			}
			continue
		}
		if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		if _, err := l.conn.Write(buf); err != nil {
			return err
		}
		e.sent()
		if cap(buf) > 2*fillSize {
			buf = nil
		}
	}
}
