package http1

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

type bodyFunc func(p []byte) (int, error)

func (f bodyFunc) Read(p []byte) (int, error) { return f(p) }

func readerOf(b *body) io.Reader {
	return bodyFunc(func(p []byte) (int, error) { return b.read(p, time.Time{}, 0) })
}

// textConn is a connection that returns some bytes and then ends.
type textConn struct {
	net.Conn
	*bytes.Reader
}

func (c textConn) Read(p []byte) (int, error)      { return c.Reader.Read(p) }
func (c textConn) SetReadDeadline(time.Time) error { return nil }

// readText reads a head as a connection does.
func readText(data []byte) (*Request, int, *Error) {
	var p headParser
	n, err := p.parse(data)
	if err != nil || n == 0 || n > MaxHead {
		return nil, n, err
	}
	r := &Request{}
	if err := r.read(&p, data[:n]); err != nil {
		return nil, n, err
	}
	return r, n, nil
}

// FuzzRequestHead holds our reading of a head against net/http's: it may refuse
// more, but what both take they must take for the same.
func FuzzRequestHead(f *testing.F) {
	for _, rule := range rules {
		if len(rule.send) < 5000 {
			f.Add([]byte(rule.send))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, n, bad := readText(data)
		if bad != nil || ours == nil {
			return
		}
		b := bufio.NewReader(bytes.NewReader(data))
		theirs, err := http.ReadRequest(b)
		if err != nil {
			return // such as a bad escape in the target, which is the handler's to judge
		}
		if ours.Method != theirs.Method {
			t.Errorf("method %q, net/http %q", ours.Method, theirs.Method)
		}
		// An absolute-form is reduced, and only a suffix of what net/http has.
		if string(ours.Target) != theirs.RequestURI && (ours.first() == "/" || !strings.HasSuffix(theirs.RequestURI, strings.TrimPrefix(string(ours.Target), "/"))) {
			t.Errorf("target %q, net/http %q", ours.Target, theirs.RequestURI)
		}
		if string(ours.Query) != theirs.URL.RawQuery {
			t.Errorf("query %q, net/http %q", ours.Query, theirs.URL.RawQuery)
		}
		if ours.Length() != theirs.ContentLength {
			t.Errorf("length %d, net/http %d", ours.Length(), theirs.ContentLength)
		}
		if chunked := slices.Equal(theirs.TransferEncoding, []string{"chunked"}); chunked != ours.chunked {
			t.Errorf("chunked %v, net/http %v", ours.chunked, theirs.TransferEncoding)
		}
		if !ours.close && theirs.Close {
			t.Errorf("kept, net/http would close")
		}
		if !strings.Contains(theirs.RequestURI, "://") && string(ours.Host) != theirs.Host {
			t.Errorf("host %q, net/http %q", ours.Host, theirs.Host)
		}
		compareHeaders(t, ours.Headers, theirs.Header, "Host")
		// Where the body begins is where net/http would begin to read it.
		if !ours.chunked && ours.length > 0 && ours.length < 1<<20 {
			want, err := io.ReadAll(theirs.Body)
			if have := data[n:]; err == nil && !bytes.HasPrefix(have, want) {
				t.Errorf("the body begins %q, net/http has %q", have, want)
			}
		}
	})
}

// first is the first byte of the request line's target.
func (r *Request) first() string {
	return string(r.Head[len(r.Method)+1 : len(r.Method)+2])
}

// compareHeaders compares fields by name, each name's values in their order.
func compareHeaders(t *testing.T, ours []Header, theirs http.Header, but ...string) {
	t.Helper()
	got := http.Header{}
	for _, h := range ours {
		name := textproto.CanonicalMIMEHeaderKey(string(h.Name))
		if !slices.Contains(but, name) {
			got[name] = append(got[name], string(h.Value))
		}
	}
	for _, list := range theirs["Connection"] { // what it names is none of ours
		for _, name := range strings.Split(list, ",") {
			if name := textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); name != "Keep-Alive" && name != "Upgrade" && name != "Close" {
				delete(theirs, name)
			}
		}
	}
	for _, name := range []string{"Transfer-Encoding", "Connection", "Content-Length", "Trailer"} { // net/http takes some of them out
		delete(got, name)
		theirs.Del(name)
	}
	// net/http adds this one for an old client's sake.
	if got.Get("Pragma") == "no-cache" && got.Get("Cache-Control") == "" {
		theirs.Del("Cache-Control")
	}
	if len(got) != len(theirs) {
		t.Errorf("headers %q, net/http %q", got, theirs)
	}
	for name, values := range got {
		if !slices.Equal(values, theirs[name]) {
			t.Errorf("header %s is %q, net/http %q", name, values, theirs[name])
		}
	}
}

// FuzzChunkedBody holds our reading of a chunked body against net/http's.
func FuzzChunkedBody(f *testing.F) {
	for _, rule := range rules {
		if _, chunks, ok := strings.Cut(rule.send, "chunked\r\n\r\n"); ok && len(chunks) < 5000 {
			f.Add([]byte(chunks))
		}
	}
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &inbound{nc: textConn{Reader: bytes.NewReader(data)}, buf: make([]byte, 16)}
		b := body{in: in, state: bodyChunkSize, bad: 400, late: 408}
		got, err := io.ReadAll(readerOf(&b))
		if err != nil {
			return
		}
		text := bytes.NewReader(append([]byte(head), data...))
		buffered := bufio.NewReader(text)
		theirs, err := http.ReadRequest(buffered)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(theirs.Body)
		if err != nil {
			// It bounds trailers and extensions elsewhere; what it read must agree.
			if !bytes.HasPrefix(got, want) {
				t.Errorf("read %q, net/http %q and then %v", got, want, err)
			}
			return
		}
		if !bytes.Equal(got, want) {
			t.Errorf("read %q, net/http %q", got, want)
		}
		left := in.end - in.start + in.nc.(textConn).Len()
		if theirLeft := buffered.Buffered() + text.Len(); left != theirLeft {
			t.Errorf("%d bytes are left, net/http leaves %d", left, theirLeft)
		}
	})
}

var responses = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.0 200 OK\r\n\r\nto the end",
	"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 2000 OK\r\n\r\n",
	"HTTP/1.1 099 OK\r\n\r\n",
	"HTTP/2.0 200 OK\r\n\r\n",
	"HTTP/1.1  200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
	"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
}

// FuzzResponseHead holds our reading of an answer's head against net/http's.
func FuzzResponseHead(f *testing.F) {
	for _, text := range responses {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		end := bytes.Index(data, []byte("\r\n\r\n"))
		if end < 0 {
			return
		}
		ours, bad := parseResponse(data[:end+4], method)
		if bad != nil {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), &http.Request{Method: method})
		if err != nil {
			return
		}
		if ours.Status != theirs.StatusCode {
			t.Errorf("status %d, net/http %d", ours.Status, theirs.StatusCode)
		}
		want := theirs.ContentLength
		if head || bodiless(ours.Status) {
			want = 0
		}
		if ours.Length != want {
			t.Errorf("length %d, net/http %d", ours.Length, want)
		}
		if chunked := slices.Equal(theirs.TransferEncoding, []string{"chunked"}); chunked != ours.Chunked && want != 0 {
			t.Errorf("chunked %v, net/http %v", ours.Chunked, theirs.TransferEncoding)
		}
		if !ours.Close && theirs.Close {
			t.Error("kept, net/http would close")
		}
		compareHeaders(t, ours.Headers, theirs.Header)
	})
}

// FuzzConversation sends anything to a server: it answers or closes, and every
// answer is one net/http reads.
func FuzzConversation(f *testing.F) {
	for _, rule := range rules {
		if len(rule.send) < 5000 {
			f.Add([]byte(rule.send + again))
		}
	}
	s := &Server{Handler: echo}
	s.init()
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		c := newConn(s, memoryConn{textConn{Reader: bytes.NewReader(data)}, &out})
		c.serve()
		for b := bufio.NewReader(&out); ; {
			if _, err := b.Peek(1); err == io.EOF {
				return
			}
			resp, err := http.ReadResponse(b, nil)
			if err != nil {
				t.Fatalf("an answer cannot be read: %v", err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil && resp.Header.Get("Content-Length") != strconv.Itoa(0) {
				// Answers to HEAD have no body; only after a whole one the connection is reused.
				return
			}
		}
	})
}

type memoryConn struct {
	textConn
	out *bytes.Buffer
}

func (c memoryConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c memoryConn) RemoteAddr() net.Addr             { return nil }
func (c memoryConn) SetWriteDeadline(time.Time) error { return nil }
