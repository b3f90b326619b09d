package router

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/internal/http1"
)

// kept returns the forwarded part of a head, by the parser that the router uses.
func kept(t *testing.T, head string) (lines string, ok bool) {
	t.Helper()
	text := "HTTP/1.1 204 No Content\r\n" + head + "\r\n"
	ours, theirs := net.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		io.WriteString(theirs, text) // as much of it as is read
		theirs.Close()
	}()
	up := http1.NewUpstream(ours)
	defer func() {
		up.Close()
		<-written
	}()
	rep, err := up.ReadHead("GET", time.Time{})
	if err != nil || string(rep.Head) != text {
		return "", false // it ends earlier than what is compared with
	}
	return string(appendLines(nil, rep.Head, rep.Headers, hops(rep.Headers))), true
}

// FuzzKeptHeaders compares what goes on with what net/http reads of the same head: nothing about the connection is left
// in it, nothing else is missing, and the order stays.
func FuzzKeptHeaders(f *testing.F) {
	for _, seed := range []string{
		"", "A: 1\r\n", "Connection: close\r\nB: 2\r\n", "connection: x , y\r\nX: 1\r\nZ: 2\r\ny:3\r\n", "TE:\r\nT: \r\n",
		"Connection: a\r\nConnection: b\r\nA: 1\r\nB: 2\r\nC:\t3 \r\n", "Proxy-X: 1\r\nproxy: 2\r\nFenec-RouterX: 3\r\nfenec-route: 4\r\n",
		"Connection: ,,\r\nUpgrade: h2c\r\nupgrades: 1\r\nKeep-Alive: 5\r\nExpect: x\r\nTrailer: y\r\n", "Connection: connection\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, head string) {
		lines, ok := kept(t, head)
		if !ok {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 204 No Content\r\n"+head+"\r\n")), nil)
		if err != nil {
			return // stricter than we are in what it does not need here
		}
		named := map[string]bool{}
		for _, value := range theirs.Header["Connection"] {
			for _, member := range strings.Split(value, ",") {
				named[strings.ToLower(strings.Trim(member, " \t"))] = true
			}
		}
		var want bytes.Buffer
		for _, line := range strings.SplitAfter(head, "\r\n") {
			name, _, _ := strings.Cut(strings.ToLower(line), ":")
			switch {
			case name == "connection", name == "keep-alive", name == "te", name == "trailer", name == "transfer-encoding",
				name == "upgrade", name == "expect", strings.HasPrefix(name, "proxy-"), strings.HasPrefix(name, "fenec-router"):
			case named[name] && name != "close" && name != "":
			default:
				want.WriteString(line)
			}
		}
		if lines != want.String() {
			t.Errorf("of %q goes on %q, want %q", head, lines, want.String())
		}
	})
}
