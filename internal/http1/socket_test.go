package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// tcpPair returns a socket and the plain connection at its other end.
func tcpPair(t *testing.T) (net.Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(near)
	if _, ok := s.(*socket); !ok {
		t.Fatalf("a TCP connection became a %T", s)
	}
	t.Cleanup(func() { s.Close(); far.Close() })
	return s, far.(*net.TCPConn)
}

func TestASocketTransfersAll(t *testing.T) {
	s, far := tcpPair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB: more than the buffers of a connection
	written := make(chan error, 2)
	go func() {
		n, err := s.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		written <- err
	}()
	go func() {
		_, err := io.Copy(far, io.LimitReader(far, int64(len(sent)))) // back again
		far.CloseWrite()
		written <- err
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(sent), err)
	}
	for range 2 {
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

func TestASocketFailsAsAConnectionDoes(t *testing.T) {
	t.Run("a read past its deadline", func(t *testing.T) {
		s, _ := tcpPair(t)
		s.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("a write past its deadline", func(t *testing.T) {
		s, far := tcpPair(t)
		const size = 64 << 20 // more than the buffers of a connection
		type result struct {
			n   int
			err error
		}
		ended := make(chan result, 1)
		go func() {
			n, err := s.Write(make([]byte, size))
			ended <- result{n, err}
		}()
		if _, err := io.ReadFull(far, make([]byte, 1)); err != nil { // the other end reads no more than that
			t.Fatal(err)
		}
		s.SetWriteDeadline(time.Unix(1, 0))
		if got := <-ended; got.n == 0 || got.n == size || !errors.Is(got.err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", got.n, got.err)
		}
	})
	t.Run("after a reset", func(t *testing.T) {
		s, far := tcpPair(t)
		far.SetLinger(0)
		far.Close()
		if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read %d, %v", n, err)
		}
		if n, err := s.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write %d, %v", n, err)
		}
	})
	t.Run("once it is closed", func(t *testing.T) {
		s, _ := tcpPair(t)
		read := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			read <- err
		}()
		s.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
	})
	t.Run("a read of no bytes is none", func(t *testing.T) {
		s, _ := tcpPair(t)
		if n, err := s.Read(nil); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}
