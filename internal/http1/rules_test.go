package http1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// echo answers with what it was asked, the body last.
var echo = HandlerFunc(func(r *Request) Answer {
	if string(r.Path) == "/unread" {
		return Answer{Status: 200, Body: []byte("unread")}
	}
	body, err := r.Body(0)
	if err != nil {
		return err.(*Error).Answer()
	}
	out := fmt.Appendf(r.Scratch(), "%s %s 1.%d %q", r.Method, r.Target, r.Minor, body)
	return Answer{Status: 200, Body: out}
})

// dial connects to a server of the test and gives up on it after a while.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("sending: %v", err)
	}
}

// receive reads one answer with net/http, whose reading ours is judged by.
func receive(t testing.TB, b *bufio.Reader, method string) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(b, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer's body broke off after %q: %v", body, err)
	}
	return resp, string(body)
}

const again = "GET /again HTTP/1.1\r\nHost: a\r\n\r\n"

var rules = []struct {
	name   string
	send   string
	status int
	kept   bool
	want   string // what the answer's body contains
}{
	{"a plain request is served and its connection kept", "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, `GET /a?b 1.1 ""`},
	{"a body with a length is read", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200, true, `"hello"`},
	{"a body of length 0 is empty", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 200, true, `""`},
	{"a chunked body is read", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=\"y\"\r\nde\r\n0\r\nX-T: 1\r\n\r\n", 200, true, `"abcde"`},
	{"an unread body of some length is read away", "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200, true, "unread"},
	{"an unread chunked body is read away", "POST /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200, true, "unread"},
	{"a long unread body ends the connection", "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\nhello", 200, false, "unread"},
	{"one empty line before a request is passed over", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /"},
	{"a second empty line is refused", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "empty"},
	{"a client that asks for it is closed", "GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", 200, false, "GET /"},
	{"options of Connection in any case and number are no names", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive,, UPGRADE ,\r\nConnection:" + strings.Repeat(",upgrade", 200) + "\r\n\r\n", 200, true, "GET /"},
	{"a Connection that names 64 headers is taken", "GET / HTTP/1.1\r\nHost: a\r\nConnection: " + strings.Repeat("x,", 64) + "\r\n\r\n", 200, true, "GET /"},
	{"a Connection that names more is refused", "GET / HTTP/1.1\r\nHost: a\r\nConnection: y\r\nConnection: " + strings.Repeat("x,", 64) + "\r\n\r\n", 400, false, "more than 64"},
	{"a Connection that names the Host is refused", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, hOST\r\n\r\n", 400, false, "hOST"},
	{"a Connection that names the length is refused", "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 1\r\n\r\nx", 400, false, "Content-Length"},
	{"a Connection that names the token is refused", "GET / HTTP/1.1\r\nHost: a\r\nConnection: authorization\r\nAuthorization: x\r\n\r\n", 400, false, "authorization"},
	{"a Connection that names the Host but for Unicode is taken", "GET / HTTP/1.1\r\nHost: a\r\nConnection: ho\u017ft\r\n\r\n", 200, true, "GET /"},
	{"HTTP/1.0 is served and closed", "GET / HTTP/1.0\r\n\r\n", 200, false, "GET / 1.0"},
	{"HTTP/1.0 is closed though it would be kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, false, "GET / 1.0"},
	{"a later HTTP/1 is served as 1.1", "GET / HTTP/1.7\r\nHost: a\r\n\r\n", 200, true, "GET / 1.1"},
	{"HTTP/2 is 505", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, false, "HTTP/2"},
	{"HTTP/0.9 is 505", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505, false, "HTTP/0"},
	{"a version in lower case is refused", "GET / http/1.1\r\nHost: a\r\n\r\n", 400, false, "version"},
	{"a version of two digits is refused", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400, false, "version"},
	{"a request line without a version is refused", "GET /\r\nHost: a\r\n\r\n", 400, false, "version"},
	{"two spaces in the request line are refused", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "target"},
	{"a space in the target is refused", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "version"},
	{"a tab in the target is refused", "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "target"},
	{"a NUL in the target is refused", "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "0x00"},
	{"a space at the end of the request line is refused", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, false, "version"},
	{"a method that is no token is refused", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "not a request"},
	{"a blank before the method is refused", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "not a request"},
	{"an unknown method is passed to the handler", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "BREW /"},
	{"bytes over 0x7f in a target are the handler's to judge", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /\xc3\xa4"},
	{"an absolute address is reduced to its path", "GET http://other:80/a?b HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /a?b"},
	{"an absolute address without a path is the root", "GET HTTPS://other HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET / 1.1"},
	{"an absolute address with only a query has the root", "GET http://other?b HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /?b"},
	{"an absolute address without a host is refused", "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "URL"},
	{"an address of another scheme is refused", "GET ftp://other/a HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "URL"},
	{"an address with a user is refused", "GET http://u@other/a HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "URL"},
	{"a target without a slash is refused", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "neither"},
	{"a CONNECT is refused", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "neither"},
	{"an asterisk is OPTIONS' target", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "OPTIONS *"},
	{"an asterisk is nothing to GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "neither"},
	{"a segment of one dot is refused", "GET /a/./b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "segment"},
	{"a segment of two dots is refused", "GET /a/.. HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "segment"},
	{"dots written as escapes are dots", "GET /a/%2e%2E/b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "segment"},
	{"a dot beside an escaped one makes two", "GET /.%2e/b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "segment"},
	{"dots in an absolute address are refused", "GET http://a/../b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false, "segment"},
	{"three dots are a name", "GET /... HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /..."},
	{"a name with dots is a name", "GET /a..b/.c/%2ed HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /a..b"},
	{"dots in the query are accepted", "GET /a?x=/../ HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, "GET /a?x=/../"},
	{"HTTP/1.1 without a Host is refused", "GET / HTTP/1.1\r\n\r\n", 400, false, "Host"},
	{"an empty Host is taken", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 200, true, "GET /"},
	{"two Hosts are refused", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400, false, "more than one Host"},
	{"a Host that is none is refused", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, false, "invalid Host"},
	{"a repeated length is refused though equal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, false, "more than one Content-Length"},
	{"a list of lengths is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx", 400, false, "Content-Length"},
	{"a signed length is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400, false, "Content-Length"},
	{"an empty length is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx", 400, false, "Content-Length"},
	{"a length in hexadecimal is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx", 400, false, "Content-Length"},
	{"a length past 18 digits is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\nx", 400, false, "Content-Length"},
	{"a body over 64 MiB is 413", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 67108865\r\n\r\nx", 413, false, "67108865"},
	{"a length beside chunked is refused", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false, "both"},
	{"chunked beside a length is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", 400, false, "both"},
	{"an unknown transfer coding is 501", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, false, "gzip"},
	{"a coding before chunked is 501", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, false, "gzip"},
	{"chunked twice is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false, "more than one Transfer"},
	{"chunked in HTTP/1.0 is refused", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false, "HTTP/1.0"},
	{"a bare line feed after the request line is refused", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400, false, "line feed"},
	{"a bare line feed after a header is refused", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400, false, "line feed"},
	{"a bare line feed for the blank line is refused", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400, false, "line feed"},
	{"a bare carriage return in a value is refused", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400, false, "carriage return"},
	{"a bare carriage return in a line is refused", "GET / HTTP/1.1\r\nHost: a\r\n\rb\r\n\r\n", 400, false, "carriage return"},
	{"a folded header is refused", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, false, "folded"},
	{"a header folded by a tab is refused", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n", 400, false, "folded"},
	{"a blank before the first header is refused", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, false, "folded"},
	{"a space before the colon is refused", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, false, "Host"},
	{"a tab before the colon is refused", "GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n", 400, false, "blank"},
	{"a header without a colon is refused", "GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400, false, "colon"},
	{"a header without a name is refused", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400, false, "no name"},
	{"a name with a bracket is refused", "GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n", 400, false, "0x28"},
	{"a name over 0x7f is refused", "GET / HTTP/1.1\r\nHost: a\r\n\xc3\xa4: b\r\n\r\n", 400, false, "0xc3"},
	{"a NUL in a value is refused", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400, false, "0x00"},
	{"a DEL in a value is refused", "GET / HTTP/1.1\r\nHost: a\r\nX: long enough \x7f to matter\r\n\r\n", 400, false, "0x7f"},
	{"an escape in a value is refused", "GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[0m\r\n\r\n", 400, false, "0x1b"},
	{"a tab and bytes over 0x7f in a value are taken", "GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\xff\x80 and a long value after them\r\n\r\n", 200, true, "GET /"},
	{"an unknown expectation is 417", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx", 417, false, "tea"},
	{"a chunk size that is no number is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400, false, "chunk"},
	{"a chunk without a size is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n", 400, false, "chunk"},
	{"a blank before a chunk's size is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\nx\r\n0\r\n\r\n", 400, false, "chunk"},
	{"a blank after a chunk's size is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n", 400, false, "chunk"},
	{"a chunk size past 60 bits is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400, false, "range"},
	{"a chunk longer than its size is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", 400, false, "longer"},
	{"a chunk line ended by a bare line feed is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400, false, "line feed"},
	{"a chunk's data ended by a bare line feed is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\n0\r\n\r\n", 400, false, "line feed"},
	{"a carriage return in a chunk extension is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\rb\r\nx\r\n0\r\n\r\n", 400, false, "control"},
	{"a chunk extension without end is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", maxChunkLine+1), 400, false, "over"},
	{"a body of extensions is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\nx\r\n", 20) + "0\r\n\r\n", 400, false, "extensions"},
	{"trailers without end are refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: "+strings.Repeat("a", 2000)+"\r\n", 20) + "\r\n", 400, false, "trailers"},
	{"a trailer without a colon is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n", 400, false, "trailer"},
	{"a trailer with a space before its colon is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX : y\r\n\r\n", 400, false, "trailer"},
	{"a folded trailer is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n z\r\n\r\n", 400, false, "trailer"},
	{"a length among the trailers is refused", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n", 400, false, "trailer"},
	{"a head of 64 KiB is served", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", MaxHead-len("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")) + "\r\n\r\n", 200, true, "GET /"},
	{"a head a byte longer is 431", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", MaxHead+1-len("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")) + "\r\n\r\n", 431, false, "65536"},
	{"a head of many headers is served", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X:\r\n", 10000) + "\r\n", 200, true, "GET /"},
	{"a head without end is 431", "GET /" + strings.Repeat("a", 300<<10), 431, false, "65536"},
}

func TestARequestIsReadByTheRules(t *testing.T) {
	addr := start(t, &Server{Handler: echo})
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, addr)
			go io.WriteString(c, rule.send) // an early refusal may come before all of it is out
			b := bufio.NewReader(c)
			resp, body := receive(t, b, "GET")
			if resp.StatusCode != rule.status || !strings.Contains(body, rule.want) {
				t.Errorf("got %d %s, want %d and %q", resp.StatusCode, body, rule.status, rule.want)
			}
			if resp.Header.Get("X-Request-Id") == "" || resp.Header.Get("Date") == "" {
				t.Errorf("the answer lacks a field: %v", resp.Header)
			}
			if rule.status != 200 {
				checkRefusal(t, resp, body)
			}
			if resp.Close == rule.kept {
				t.Errorf("Connection: close is %v", resp.Close)
			}
			if !rule.kept {
				if n, err := b.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the connection goes on: %d bytes, %v", n, err)
				}
				return
			}
			send(t, c, again)
			if resp, body := receive(t, b, "GET"); resp.StatusCode != 200 || body != `GET /again 1.1 ""` {
				t.Errorf("the next request got %d %s", resp.StatusCode, body)
			}
		})
	}
}

func checkRefusal(t *testing.T, resp *http.Response, body string) {
	t.Helper()
	if !strings.HasPrefix(body, `{"error":"`) || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a refusal that is no JSON: %v %s", resp.Header, body)
	}
}
