package http1

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// limited reads a body of at most 100 bytes.
var limited = HandlerFunc(func(r *Request) Answer {
	body, err := r.Body(100)
	if err != nil {
		return err.(*Error).Answer()
	}
	return Answer{Status: 200, Body: body}
})

func TestABodyOverTheHandlersLimitIs413AndTheClientReadsIt(t *testing.T) {
	addr := start(t, &Server{Handler: limited})
	for name, head := range map[string]string{
		"with a length": "Content-Length: 3000000\r\n\r\n",
		"chunked":       "Transfer-Encoding: chunked\r\n\r\n2dc6c0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			// All of it is sent before anything is read, as simple clients do:
			// a reset would lose the answer.
			send(t, c, "POST / HTTP/1.1\r\nHost: a\r\n"+head+strings.Repeat("x", 3000000))
			if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 413 || !resp.Close {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestABodyOfExactlyTheLimitIsAccepted(t *testing.T) {
	addr := start(t, &Server{Handler: limited})
	full := strings.Repeat("x", 100)
	for name, text := range map[string]string{
		"with a length": "Content-Length: 100\r\n\r\n" + full,
		"chunked":       "Transfer-Encoding: chunked\r\n\r\n64\r\n" + full + "\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			send(t, c, "POST / HTTP/1.1\r\nHost: a\r\n"+text)
			if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 || body != full {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}

// digest answers with a body's length and SHA-256, read whole or as a stream.
var digest = HandlerFunc(func(r *Request) Answer {
	h := sha256.New()
	var n int64
	if string(r.Path) == "/stream" {
		var err error
		if n, err = io.Copy(h, r.BodyReader()); err != nil {
			return err.(*Error).Answer()
		}
	} else {
		body, err := r.Body(0)
		if err != nil {
			return err.(*Error).Answer()
		}
		twice, err := r.Body(0)
		if err != nil || !bytes.Equal(body, twice) {
			return ErrorAnswer(500, "the second reading differs")
		}
		h.Write(body)
		n = int64(len(body))
	}
	return Answer{Status: 200, Body: fmt.Appendf(r.Scratch(), "%d %x", n, h.Sum(nil))}
})

func TestBodiesOfAnySizeArriveWhole(t *testing.T) {
	addr := start(t, &Server{Handler: digest})
	client := &http.Client{}
	defer client.CloseIdleConnections()
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 3900, 4096, 5000, 65536, 100_000, 1 << 20, 3<<20 + 7} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		want := fmt.Sprintf("%d %x", size, sha256.Sum256(data))
		for _, path := range []string{"/", "/stream"} {
			for name, body := range map[string]io.Reader{
				"length":  bytes.NewReader(data),
				"chunked": io.MultiReader(bytes.NewReader(data)), // hides the length
			} {
				resp, err := client.Post("http://"+addr+path, "", body)
				if err != nil {
					t.Fatalf("%d bytes, %s: %v", size, name, err)
				}
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(got) != want {
					t.Errorf("%d bytes to %s, %s: got %s, want %s", size, path, name, got, want)
				}
			}
		}
	}
}

func TestAClientThatExpectsItGetsA100Continue(t *testing.T) {
	addr := start(t, &Server{Handler: limited})
	const head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n"

	t.Run("once the body is wanted", func(t *testing.T) {
		c := dial(t, addr)
		b := bufio.NewReader(c)
		for range 2 {
			send(t, c, head+"Content-Length: 5\r\n\r\n")
			if resp, _ := receive(t, b, "POST"); resp.StatusCode != 100 {
				t.Fatalf("got %d, want 100", resp.StatusCode)
			}
			send(t, c, "hello")
			if resp, body := receive(t, b, "POST"); resp.StatusCode != 200 || body != "hello" {
				t.Fatalf("got %d %s", resp.StatusCode, body)
			}
		}
	})
	t.Run("not where the body came with the head", func(t *testing.T) {
		c := dial(t, addr)
		send(t, c, head+"Content-Length: 5\r\n\r\nhello")
		if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 || body != "hello" {
			t.Errorf("got %d %s", resp.StatusCode, body)
		}
	})
	t.Run("not where the body is too long", func(t *testing.T) {
		c := dial(t, addr)
		send(t, c, head+"Content-Length: 500\r\n\r\n")
		if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 413 || !resp.Close {
			t.Errorf("got %d %s", resp.StatusCode, body)
		}
	})
	t.Run("not where the body is not wanted, and then the connection closes", func(t *testing.T) {
		c := dial(t, start(t, &Server{Handler: echo}))
		send(t, c, "POST /unread HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		if resp, _ := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 || !resp.Close {
			t.Errorf("got %d, close %v", resp.StatusCode, resp.Close)
		}
	})
	t.Run("never in HTTP/1.0", func(t *testing.T) {
		c := dial(t, addr)
		send(t, c, "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		send(t, c, "hello")
		if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 || body != "hello" {
			t.Errorf("got %d %s", resp.StatusCode, body)
		}
	})
}

func TestAConnectionThatEndsInsideABodyIsRefused(t *testing.T) {
	addr := start(t, &Server{Handler: limited})
	for name, text := range map[string]string{
		"with a length":     "Content-Length: 5\r\n\r\nhel",
		"in a chunk":        "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"in a chunk's size": "Transfer-Encoding: chunked\r\n\r\n5",
		"before the end":    "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			send(t, c, "POST / HTTP/1.1\r\nHost: a\r\n"+text)
			c.CloseWrite()
			if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 400 || !strings.Contains(body, "ended inside the body") {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	addr := start(t, &Server{Handler: echo})
	c := dial(t, addr)
	var text strings.Builder
	for i := range 500 {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&text, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		case 1:
			fmt.Fprintf(&text, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET ", i)
		case 2:
			fmt.Fprintf(&text, "PUT /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", i)
		}
	}
	go io.WriteString(c, text.String())
	b := bufio.NewReader(c)
	for i := range 500 {
		want := [...]string{"GET /%d 1.1 \"\"", "POST /%d 1.1 \"GET \"", "PUT /%d 1.1 \"\\r\\n\\r\\n\""}[i%3]
		if _, body := receive(t, b, "GET"); body != fmt.Sprintf(want, i) {
			t.Fatalf("answer %d is %s", i, body)
		}
	}
}
