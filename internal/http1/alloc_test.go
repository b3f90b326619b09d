package http1

import (
	"io"
	"strings"
	"testing"
)

// TestASmallRequestAllocatesNothing pins the loop: reading, parsing, answering
// and writing a request on an open connection allocate nothing.
func TestASmallRequestAllocatesNothing(t *testing.T) {
	body := []byte(strings.Repeat("x", 200))
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		if r.Context().Err() != nil || r.Get("accept") == nil {
			return Answer{Status: 500}
		}
		if string(r.Path) == "/read" {
			if got, err := r.Body(0); err != nil || len(got) != 200 {
				return Answer{Status: 500}
			}
		}
		return Answer{Status: 200, Headers: JSON, Body: append(r.Scratch(), body...)}
	})})
	c := dial(t, addr)
	for name, text := range map[string]string{
		"a GET":                         "GET /t/x/c?id=eq.1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\nUser-Agent: one\r\n\r\n",
		"a POST whose body is not read": "POST /unread HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\nContent-Length: 200\r\n\r\n" + string(body),
		"a POST":                        "POST /read HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\nContent-Length: 200\r\n\r\n" + string(body),
	} {
		request := []byte(text)
		answer := make([]byte, 4096)
		length := 0
		round := func() {
			c.Write(request)
			if length == 0 {
				n, _ := c.Read(answer)
				length = n
				if !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
					t.Errorf("%s: %s", name, answer[:n])
				}
				return
			}
			if _, err := io.ReadFull(c, answer[:length]); err != nil {
				t.Error(err)
			}
		}
		round()
		// The Date field is formatted once a second.
		if got := testing.AllocsPerRun(2000, round); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}
