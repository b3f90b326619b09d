package client_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/client"
)

func TestDoSendsAnyRequest(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	if _, err := c.Do(t.Context(), http.MethodPost, "/books", []byte(`{"title": "Emma", "year": 1815}`)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Do(t.Context(), http.MethodGet, "/books?year=lt.1900&select=title", nil)
	if err != nil || strings.TrimSpace(string(got)) != `[{"title":"Emma"}]` {
		t.Errorf("got %s, %v, expected the title", got, err)
	}
	if c.Position().Seq == 0 {
		t.Error("got no position after a write by Do, expected its own")
	}
	if _, err := c.Do(t.Context(), http.MethodGet, "/films", nil); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v for an unknown collection, expected ErrNotFound", err)
	}
}

func TestDoRetriesOnlySafeMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int64{"GET": 2, "HEAD": 2, "POST": 1, "PUT": 1, "DELETE": 1} {
		server, asked := scripted(t, cuts, says(200, ""))
		_, err := newClient(t, server, client.Options{}).Do(t.Context(), method, "/", nil)
		if (err == nil) != (want == 2) || asked.Load() != want {
			t.Errorf("%s: got %d requests, expected %d; %v", method, asked.Load(), want, err)
		}
	}
}

func TestReasonReturnsAShortText(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	silent, _ := scripted(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client left
		<-r.Context().Done()
	})
	broken, _ := scripted(t, cuts)
	refusing, _ := scripted(t, says(403, `{"error":"read-only"}`))
	for url, want := range map[string]string{
		"http://" + l.Addr().String(): "connect: connection refused",
		silent:                        "no response in time",
		broken:                        "EOF",
		refusing:                      "read-only",
	} {
		c := newClient(t, url, client.Options{Patience: -1, Timeout: 200 * time.Millisecond})
		if _, err := c.Exec(t.Context(), "get books"); client.Reason(err) != want {
			t.Errorf("got the reason %q of %v, expected %q", client.Reason(err), err, want)
		}
	}
}
