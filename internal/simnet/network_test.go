package simnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connected returns the two ends of a connection from host a to host b.
func connected(t *testing.T, n *Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen(80)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if client, err = n.Host("a").Dial(context.Background(), "tcp", "b:80"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestAConnectionBehavesAsOneOfNet(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, c2 = connected(t, New())
		return c1, c2, func() { c1.Close(); c2.Close() }, nil
	})
}

func TestACrashEndsEverythingOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := connected(t, n)
		l, err := n.Host("c").Listen(80)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ended := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ended <- err
		}()
		go func() {
			_, err := server.Write(make([]byte, 2*windowSize))
			ended <- err
		}()
		synctest.Wait()
		n.Host("b").Crash()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("it ended with %v", err)
			}
		}
		if _, err := client.Write([]byte{1}); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a write after the crash: %v", err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "tcp", "b:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a connection to the crashed host: %v", err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "tcp", "c:80"); err != nil {
			t.Errorf("a connection to another host: %v", err)
		}
		client.Close()
		server.Close()
	})
}

func TestAPartitionCutsTwoHostsOff(t *testing.T) {
	n := New()
	client, server := connected(t, n)
	n.Host("b").Partition(n.Host("a"))
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a read: %v", err)
	}
	if _, err := n.Host("a").Dial(t.Context(), "tcp", "b:80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a new connection: %v", err)
	}
	if _, err := n.Host("c").Dial(t.Context(), "tcp", "b:80"); err != nil {
		t.Errorf("a third host: %v", err)
	}
	n.Heal()
	if _, err := n.Host("a").Dial(t.Context(), "tcp", "b:80"); err != nil {
		t.Errorf("after the partition: %v", err)
	}
	client.Close()
	server.Close()
}

func TestWhatWasWrittenBeforeACloseIsRead(t *testing.T) {
	client, server := connected(t, New())
	if _, err := client.Write([]byte("all of it")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if got, err := io.ReadAll(server); err != nil || string(got) != "all of it" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := server.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a write to a closed end: %v", err)
	}
	server.Close()
}

func TestASilenceHoldsOneDirection(t *testing.T) {
	n := New()
	client, server := connected(t, n)
	a, b := n.Host("a"), n.Host("b")
	a.Silence(b)
	if _, err := client.Write([]byte("late")); err != nil {
		t.Fatalf("a write to a silenced host: %v", err)
	}
	server.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := server.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read of what is held: %d bytes, %v, want the deadline", n, err)
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != nil {
		t.Errorf("the other direction: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Dial(ctx, "tcp", "a:80"); err == nil {
		t.Error("a connection is made though no answer can arrive")
	}
	n.Heal()
	server.SetReadDeadline(time.Time{})
	got := make([]byte, 4)
	if _, err := io.ReadFull(server, got); err != nil || string(got) != "late" {
		t.Errorf("after the silence: %q, %v", got, err)
	}
	a.Silence(b)
	client.Close()
	server.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := server.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read whose end is held: %d bytes, %v, want the deadline", n, err)
	}
	server.Close()
}
