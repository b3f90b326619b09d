package http1

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/rs/zerolog"
)

// TestAHeadIsReadTheSameWhereverItIsSplit gives the parser each rule's bytes in
// two pieces, for every place between them, and one at a time.
func TestAHeadIsReadTheSameWhereverItIsSplit(t *testing.T) {
	for _, rule := range rules {
		if len(rule.send) > 1000 {
			continue
		}
		want := parsed(rule.send, len(rule.send))
		for at := range len(rule.send) {
			if got := parsed(rule.send, at); got != want {
				t.Errorf("%s: split at %d it is %q, whole %q", rule.name, at, got, want)
			}
		}
		var p headParser
		var end string
		for n := 1; n <= len(rule.send) && end == ""; n++ {
			end = outcome(&p, []byte(rule.send[:n]))
			if end == "more" {
				end = ""
			}
		}
		if end == "" {
			end = "more"
		}
		if end != want {
			t.Errorf("%s: byte by byte it is %q, whole %q", rule.name, end, want)
		}
	}
}

func parsed(text string, at int) string {
	var p headParser
	b := []byte(text)
	if got := outcome(&p, b[:at]); got != "more" {
		return got
	}
	return outcome(&p, b)
}

func outcome(p *headParser, b []byte) string {
	n, err := p.parse(b)
	switch {
	case err != nil:
		return err.Message
	case n == 0:
		return "more"
	}
	text := string(p.first)
	for _, h := range p.headers {
		text += "|" + string(h.Name) + "=" + string(h.Value)
	}
	return text + "|" + string(b[n:n])
}

// TestAnAnswerIsTheSameWhereverTheRequestIsSplit sends each rule's bytes over a
// connection in two pieces, the second once the first was taken.
func TestAnAnswerIsTheSameWhereverTheRequestIsSplit(t *testing.T) {
	l := newPipes()
	s := &Server{Handler: echo, Log: zerolog.Nop()}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	for _, rule := range rules {
		if len(rule.send) > 1000 {
			continue
		}
		want := statusOf(t, l.dial(), rule.send, len(rule.send))
		if want != rule.status {
			t.Fatalf("%s: got %d", rule.name, want)
		}
		for at := range len(rule.send) {
			if got := statusOf(t, l.dial(), rule.send, at); got != want {
				t.Errorf("%s: split at %d it is %d, whole %d", rule.name, at, got, want)
			}
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}

func statusOf(t *testing.T, c net.Conn, text string, at int) int {
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.WriteString(c, text[:at])
		io.WriteString(c, text[at:])
	}()
	resp, _ := receive(t, bufio.NewReader(c), "GET")
	c.Close()
	<-done
	return resp.StatusCode
}

func TestAChunkedBodyIsReadTheSameWhereverItIsSplit(t *testing.T) {
	const text = "5;a=b\r\nhello\r\n1\r\n \r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\nrest"
	for at := range len(text) {
		ours, theirs := net.Pipe()
		go func() {
			io.WriteString(theirs, text[:at])
			io.WriteString(theirs, text[at:])
			theirs.Close()
		}()
		in := &inbound{nc: ours, buf: make([]byte, 16)} // it has to move and grow
		b := body{in: in, state: bodyChunkSize, bad: 400, late: 408}
		got, err := io.ReadAll(readerOf(&b))
		if string(got) != "hello 0123456789" || err != nil {
			t.Fatalf("split at %d: %q, %v", at, got, err)
		}
		rest, _ := io.ReadAll(io.MultiReader(bytes.NewReader(in.buf[in.start:in.end]), ours))
		if string(rest) != "rest" {
			t.Fatalf("split at %d: what follows is %q", at, rest)
		}
		ours.Close()
	}
}
