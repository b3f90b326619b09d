package http1

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// start serves on a loopback port until the test ends.
func start(t testing.TB, s *Server) string {
	t.Helper()
	return startLogged(t, s, io.Discard)
}

func startLogged(t testing.TB, s *Server, log io.Writer) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Log = zerolog.New(log)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if err := <-ended; err != ErrClosed {
			t.Errorf("Serve returned %v", err)
		}
	})
	return l.Addr().String()
}

func TestAGoClientIsServed(t *testing.T) {
	addr := start(t, &Server{Handler: echo})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Post("http://"+addr+"/a/b?c", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != `POST /a/b?c 1.1 "hello"` || resp.StatusCode != 200 {
			t.Fatalf("got %d %q", resp.StatusCode, got)
		}
	}
}
