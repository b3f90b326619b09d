package http1

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func streamOf(status int, length int64, raw string, write func(w *Writer) error) Answer {
	a := Answer{Status: status, Length: length, Stream: write}
	if raw != "" {
		a.Raw = []byte(raw)
	}
	return a
}

var long = strings.Repeat("0123456789abcdef", 8<<10) // 128 KiB

var streams = map[string]func(r *Request) Answer{
	"/chunks": func(r *Request) Answer {
		return streamOf(200, 0, "", func(w *Writer) error {
			for _, s := range []string{"one ", "", "two ", long, "three"} {
				w.WriteString(s)
			}
			w.Flush()
			w.WriteString(" four")
			return nil
		})
	},
	"/empty": func(r *Request) Answer { return streamOf(200, 0, "", func(w *Writer) error { return nil }) },
	"/length": func(r *Request) Answer {
		return streamOf(200, int64(len(long))+3, "", func(w *Writer) error {
			io.WriteString(w, "abc")
			_, err := io.Copy(w, strings.NewReader(long))
			return err
		})
	},
	"/short": func(r *Request) Answer {
		return streamOf(200, 10, "", func(w *Writer) error { _, err := w.WriteString("abc"); return err })
	},
	"/long": func(r *Request) Answer {
		return streamOf(200, 2, "", func(w *Writer) error { _, err := w.WriteString("abc"); return err })
	},
	"/early": func(r *Request) Answer {
		return streamOf(200, 0, "", func(w *Writer) error { w.WriteString("abc"); return errors.New("no more") })
	},
	"/rawearly": func(r *Request) Answer {
		return streamOf(0, 0, "HTTP/1.1 200 OK\r\n\r\n", func(w *Writer) error { return errors.New("no more") })
	},
	"/shorter": func(r *Request) Answer {
		return streamOf(200, int64(len(long))+1, "", func(w *Writer) error { _, err := w.WriteString(long); return err })
	},
	"/fails": func(r *Request) Answer {
		return streamOf(200, 0, "", func(w *Writer) error { w.WriteString("abc"); w.Flush(); return errors.New("no more") })
	},
	"/panics": func(r *Request) Answer {
		return streamOf(200, 0, "", func(w *Writer) error { w.WriteString("abc"); w.Flush(); panic("no more") })
	},
	"/raw": func(r *Request) Answer {
		return Answer{Raw: []byte("HTTP/1.1 203 Mine\r\nContent-Length: 3\r\nX-A:  b\r\n\r\nraw")}
	},
	"/rawstream": func(r *Request) Answer {
		return streamOf(0, 3, "HTTP/1.1 203 Mine\r\nContent-Length: 3\r\n\r\n", func(w *Writer) error { _, err := w.WriteString("raw"); return err })
	},
	"/nothing": func(r *Request) Answer { return Answer{Status: 204, Body: []byte("not sent")} },
	"/longhead": func(r *Request) Answer {
		return Answer{Status: 200, Headers: []Header{{[]byte("X-A"), []byte(long[:2*headRoom])}}, Body: append(r.Scratch(), "short"...)}
	},
	"/none":    func(r *Request) Answer { return Answer{} },
	"/panic":   func(r *Request) Answer { return streamOf(200, 0, "", func(w *Writer) error { panic("at once") }) },
	"/same":    func(r *Request) Answer { return Answer{Status: 304, Body: []byte("not sent")} },
	"/large":   func(r *Request) Answer { return Answer{Status: 200, Body: []byte(long)} },
	"/scratch": func(r *Request) Answer { return Answer{Status: 200, Body: append(r.Scratch(), long[:40000]...)} },
	"/grown":   func(r *Request) Answer { return Answer{Status: 200, Body: append(r.Grow(len(long)), long...)} },
	"/odd":     func(r *Request) Answer { return Answer{Status: 299, Body: []byte("odd")} },
	"/close":   func(r *Request) Answer { return Answer{Status: 200, Body: []byte("bye"), Close: true} },
	"/split": func(r *Request) Answer {
		return Answer{Status: 200, Headers: []Header{{[]byte("X-A"), []byte("a\r\nX-B: b")}}}
	},
}

var anyStream = HandlerFunc(func(r *Request) Answer { return streams[string(r.Path)](r) })

func TestAnswersAreFramed(t *testing.T) {
	addr := start(t, &Server{Handler: anyStream})
	for _, one := range []struct {
		name, path, body string
		kept             bool
		broken           bool
		status           int
	}{
		{"a stream is chunked", "/chunks", "one two " + long + "three four", true, false, 200},
		{"an empty stream is an empty body", "/empty", "", true, false, 200},
		{"a stream of known length has a length", "/length", "abc" + long, true, false, 200},
		{"a stream that stays short is a 500 before anything went out", "/short", `{"error":"the answer could not be written"}`, false, false, 500},
		{"a stream that would be too long is a 500 before anything went out", "/long", `{"error":"the answer could not be written"}`, false, false, 500},
		{"a stream that fails at once is a 500", "/early", `{"error":"the answer could not be written"}`, false, false, 500},
		{"a stream beside raw bytes that fails at once is a 502", "/rawearly", `{"error":"the node's answer ended before its first byte"}`, false, false, 502},
		{"a stream that stays short later breaks the connection", "/shorter", "0123", false, true, 200},
		{"a stream that fails breaks the connection", "/fails", "abc", false, true, 200},
		{"a stream that panics breaks the connection", "/panics", "abc", false, true, 200},
		{"raw bytes go out as they are", "/raw", "raw", true, false, 203},
		{"a stream beside raw bytes is not framed", "/rawstream", "raw", true, false, 203},
		{"a 204 has no body", "/nothing", "", true, false, 204},
		{"a 304 has no body", "/same", "", true, false, 304},
		{"a large body arrives", "/large", long, true, false, 200},
		{"a body grown from the scratch buffer arrives", "/scratch", long[:40000], true, false, 200},
		{"a scratch buffer made larger arrives", "/grown", long, true, false, 200},
		{"an answer without a status is a 500", "/none", `{"error":"the handler returned no answer"}`, true, false, 500},
		{"a stream that panics at once is a 500", "/panic", `{"error":"the answer could not be written"}`, false, false, 500},
		{"a long head before a scratch body arrives", "/longhead", "short", true, false, 200},
		{"a status without a name is sent", "/odd", "odd", true, false, 299},
		{"an answer may close", "/close", "bye", false, false, 200},
		{"a header's value cannot end its line", "/split", "", true, false, 200},
	} {
		t.Run(one.name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				if method == "HEAD" && (strings.HasPrefix(one.path, "/raw") || one.broken || one.status >= 500) {
					continue
				}
				c := dial(t, addr)
				b := bufio.NewReader(c)
				for range 3 { // buffers are reused
					send(t, c, method+" "+one.path+" HTTP/1.1\r\nHost: a\r\n\r\n")
					if one.broken {
						all, _ := io.ReadAll(b)
						if _, got, _ := strings.Cut(string(all), "\r\n\r\n"); !strings.Contains(got, one.body) || strings.Contains(got, "0\r\n\r\n") {
							t.Errorf("got %q", got)
						}
						return
					}
					resp, body := receive(t, b, method)
					want := one.body
					if method == "HEAD" {
						want = ""
						if resp.ContentLength >= 0 && resp.StatusCode == 200 && resp.ContentLength != int64(len(one.body)) {
							t.Errorf("HEAD says %d bytes", resp.ContentLength)
						}
					}
					if resp.StatusCode != one.status || body != want || resp.Header.Get("X-B") != "" {
						t.Errorf("%s got %d and %d bytes, %v", method, resp.StatusCode, len(body), resp.Header)
					}
					if !one.kept {
						if _, err := b.ReadByte(); err != io.EOF || !resp.Close {
							t.Errorf("the connection goes on: %v", err)
						}
						break
					}
				}
			}
		})
	}
}

func TestAStreamToHTTP10EndsWithTheConnection(t *testing.T) {
	addr := start(t, &Server{Handler: anyStream})
	c := dial(t, addr)
	send(t, c, "GET /chunks HTTP/1.0\r\n\r\n")
	resp, body := receive(t, bufio.NewReader(c), "GET")
	if body != "one two "+long+"three four" || resp.TransferEncoding != nil {
		t.Errorf("got %d bytes, %v", len(body), resp.TransferEncoding)
	}
}

func TestAFlushedBlockArrivesAtOnce(t *testing.T) {
	next := make(chan string)
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return streamOf(200, 0, "", func(w *Writer) error {
			for s := range next {
				w.WriteString(s)
				if err := w.Flush(); err != nil {
					return err
				}
			}
			return nil
		})
	})})
	c := dial(t, addr)
	send(t, c, again)
	b := bufio.NewReader(c)
	next <- "event\n"
	for line := ""; line != "event\n"; {
		var err error
		if line, err = b.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(next)
	if rest, _ := io.ReadAll(io.LimitReader(b, 7)); string(rest) != "\r\n0\r\n\r\n" {
		t.Errorf("the end is %q", rest)
	}
}

func TestTheRequestsIdIsKeptOrGenerated(t *testing.T) {
	addr := start(t, &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Body: append(r.Scratch(), r.ID...)}
	})})
	for _, one := range []struct {
		name, id string
		taken    bool
	}{
		{"a good one is taken", "abc-123:4", true},
		{"one of 128 bytes is taken", strings.Repeat("a", 128), true},
		{"a longer one is replaced", strings.Repeat("a", 129), false},
		{"one with a blank is replaced", "a b", false},
		{"one with a quote is replaced", `a"b`, false},
		{"one over 0x7f is replaced", "a\xff", false},
		{"an empty one is replaced", "", false},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := dial(t, addr)
			send(t, c, "GET / HTTP/1.1\r\nHost: a\r\nx-request-id: "+one.id+"\r\n\r\n")
			resp, body := receive(t, bufio.NewReader(c), "GET")
			if resp.Header.Get("X-Request-Id") != body || (body == one.id) != one.taken || body == "" {
				t.Errorf("got %q, answered %q", body, resp.Header.Get("X-Request-Id"))
			}
		})
	}
}
