package router

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// plainNode answers every request on every connection with the same bytes, without an allocation a request.
func plainNode(t testing.TB, answer string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf, text := make([]byte, 8<<10), []byte(answer)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					if !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
						continue
					}
					c.Write(text)
				}
			}()
		}
	}()
	return l.Addr().String()
}

var answer200 = ok(string(bytes.Repeat([]byte("x"), 200)))

// forwarding is a router in front of a plain node, and a function that makes one request through it.
func forwarding(t testing.TB) (rt *running, request func()) {
	rt, node := routed(t, Config{}, answering(answer200))
	fresh, err := newLink(plainNode(t, answer200), "secret", &rt.transport)
	if err != nil {
		t.Fatal(err)
	}
	rt.node("n1").link.Swap(fresh).pool.close()
	node.close()
	conn := dial(t, rt.addr)
	text := []byte("GET /t/acme/c?id=eq.1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
	got := make([]byte, len(answer200))
	return rt, func() {
		if _, err := conn.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != answer200 {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestForwardingAllocatesNothing(t *testing.T) {
	_, request := forwarding(t)
	for range 100 {
		request()
	}
	if n := testing.AllocsPerRun(1000, request); n >= 1 {
		t.Errorf("a request through the router allocates %v times", n)
	}
}

func BenchmarkForward(b *testing.B) {
	_, request := forwarding(b)
	b.ReportAllocs()
	for b.Loop() {
		request()
	}
}
