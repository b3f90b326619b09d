package node

import (
	"bytes"
	"net"
	"testing"

	"fenec/internal/http1"
)

// line is a client with one connection that allocates nothing. It expects each answer in one read.
type line struct {
	conn    net.Conn
	request []byte
	answer  []byte
}

func dial(t testing.TB, address, target string) *line {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &line{conn, []byte("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"), make([]byte, 64<<10)}
}

func (l *line) ask(t testing.TB) []byte {
	if _, err := l.conn.Write(l.request); err != nil {
		t.Fatal(err)
	}
	n, err := l.conn.Read(l.answer)
	if err != nil || !bytes.HasPrefix(l.answer, []byte("HTTP/1.1 200 ")) {
		t.Fatalf("%v %q", err, l.answer[:n])
	}
	return l.answer[:n]
}

// byID starts a node with a tenant of numbered documents.
func byID(t testing.TB) *running {
	r := start(t, Config{})
	r.fill("x", 1000)
	return r
}

const oneByID = "/t/x/c?id=eq.500"

// BenchmarkGetByID compares a node with a bare connection loop. The difference is the cost of the node.
func BenchmarkGetByID(b *testing.B) {
	r := byID(b)
	l := dial(b, r.url[len("http://"):], oneByID)
	answer := bytes.Clone(l.ask(b))
	body := answer[bytes.Index(answer, []byte("\r\n\r\n"))+4:]
	b.Run("node", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.ask(b)
		}
	})
	b.Run("loop", func(b *testing.B) {
		s := &http1.Server{Handler: http1.HandlerFunc(func(r *http1.Request) http1.Answer {
			return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(r.Scratch(), body...)}
		})}
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		go s.Serve(socket)
		bare := dial(b, socket.Addr().String(), oneByID)
		bare.ask(b)
		b.ReportAllocs()
		for b.Loop() {
			bare.ask(b)
		}
		b.StopTimer()
		bare.conn.Close()
		if err := s.Shutdown(b.Context()); err != nil {
			b.Log(err)
		}
	})
}

func BenchmarkHandle(b *testing.B) {
	for _, query := range []string{"id=eq.500", "n=gte.10&s=like.s1*&limit=2", "where=n+%3E+990&select=n"} {
		b.Run(query, func(b *testing.B) {
			r := byID(b)
			l := dial(b, r.url[len("http://"):], "/t/x/c?"+query)
			l.ask(b)
			b.ReportAllocs()
			for b.Loop() {
				l.ask(b)
			}
		})
	}
}
