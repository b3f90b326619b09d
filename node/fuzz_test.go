package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"unicode/utf8"
)

// pipes is a listener of connections in memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// wire sends raw requests to a node.
type wire struct {
	node  *Node
	pipes *pipes
	conn  net.Conn
	in    *bufio.Reader
}

// wired starts a node over a directory with one tenant x and returns a wire to it.
func wired(t testing.TB) *wire {
	n, err := New(Config{Dir: t.TempDir(), AdminToken: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{node: n, pipes: &pipes{made: make(chan net.Conn), closed: make(chan struct{})}}
	served := make(chan error, 1)
	go func() { served <- n.Serve(w.pipes) }()
	t.Cleanup(func() {
		w.drop()
		if err := n.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	if status, _ := w.send(t, "PUT", "/_admin/tenants/x", nil); status != 201 {
		t.Fatal("the tenant could not be created")
	}
	for _, statement := range []string{
		"create collection c (n int @sorted, s text @hash, f float, b bool, t timestamp, y bytes, l [text], meta json)",
		`put c [{n: 1, s: "a", f: 1.5, b: true, t: 0, l: ["a"], meta: {a: {b: 1}}}, {n: 2, s: "ä", meta: [1]}, {}]`,
	} {
		body := fmt.Appendf(nil, `{"query": %q}`, statement)
		if status, answer := w.send(t, "POST", "/t/x/query", body); status != 200 {
			t.Fatalf("%s: %d %s", statement, status, answer)
		}
	}
	return w
}

func (w *wire) drop() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// send makes one request on a persistent connection, with the target as given.
func (w *wire) send(t testing.TB, method, target string, body []byte) (status int, answer []byte) {
	t.Helper()
	if w.conn == nil {
		client, server := net.Pipe()
		w.pipes.made <- server
		w.conn, w.in = client, bufio.NewReader(client)
	}
	request := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", method, target, adminToken, len(body))
	sent := make(chan struct{})
	go func(conn net.Conn) {
		defer close(sent)
		conn.Write(append(request, body...)) // the node may refuse it before it reads all of it
	}(w.conn)
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	if resp.Close {
		w.drop()
	}
	<-sent
	return resp.StatusCode, answer
}

// checkAnswer checks what holds for each answer: valid JSON, no server error, no path.
func checkAnswer(t *testing.T, what string, status int, answer []byte) {
	t.Helper()
	if status >= 500 && status != 501 {
		t.Fatalf("%s: got %d %s", what, status, answer)
	}
	if !utf8.Valid(answer) || !json.Valid(answer) || answer[0] != '{' && answer[0] != '[' {
		t.Fatalf("%s: got %d %q, want a JSON object or list", what, status, answer)
	}
	if status >= 400 {
		var e struct{ Error string }
		if err := json.Unmarshal(answer, &e); err != nil || e.Error == "" {
			t.Fatalf("%s: got %d %s, want an error in it", what, status, answer)
		}
	}
	if bytes.Contains(answer, []byte(os.TempDir())) {
		t.Fatalf("%s: got %s, want no path in it", what, answer)
	}
}

// FuzzQueryString sends any query string to every method of a collection: no answer is a 500, and no document
// is changed.
func FuzzQueryString(f *testing.F) {
	for _, seed := range []string{
		"id=eq.1", "n=not.in.(1,2)&select=n,meta.a.b&order=n.desc&limit=1&offset=1", "count&s=like.a*", "count=true&s=like.%25a*b%5C*", "count=false&meta.a=like.*", "where=n+%3E+1+or+s+is+null",
		`s=in.("a,b","\"",)`, "l=has.a&meta.a=is.null&t=gt.2020-01-01", "y=eq.AAAA&b=true&f=lt.1e400", "where=(n=1)--", "meta.a.b=eq.{\"a\":[1]}",
		"select=*&order=meta.a,f.asc", "n=gt.99999999999999999999", "%6e=1&&n=2", "n=%00", "=&.=.&a..b=c", "true=1&null=is.null", "where=n=$1", "lookup=d", "lookup=c,d&c.on=n&d.on=id&d.parent=n&d.required&c.s=like.a*&d.where=1=1", "d.limit=2&lookup=d&d.on=id&d.order=n.desc&count",
		"s=like.%F4%8F%BF%BF*&s=not.like.*1*", "n=eq.1&n=eq.1&n=eq.1", "where=s%20~%20'a'&where=1", "order=n.und.desc",
		"select=s,count(*),sum(n)&group=s&having=count(*)>1&order=sum(n).desc", "having=1)--&group=n&select=n", "select=max(*)&having=max(n)",
		"if=absent", "if=absent&if=absent", "if=%61bsent&&", "if=absent+else+set+{n:1}", "if", "select=count(distinct+n),count(distinct)&order=count(distinct+n)",
	} {
		f.Add(seed)
	}
	w := wired(f)
	create := []byte(`{"query": "create collection vectors (n int, s text, v vector<2>, meta json)"}`)
	if status, answer := w.send(f, "POST", "/t/x/query", create); status != 200 {
		f.Fatalf("%d %s", status, answer)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, c := range []byte(query) {
			if c <= ' ' || c == 0x7f {
				return // the connection loop refuses such a target
			}
		}
		before := w.everything(t)
		status, answer := w.send(t, "GET", "/t/x/c?"+query, nil)
		checkAnswer(t, query, status, answer)
		status, answer = w.send(t, "PATCH", "/t/x/c?"+query, []byte(`{"nothing": 1}`))
		checkAnswer(t, query, status, answer)
		if status == 200 {
			t.Fatalf("PATCH %s: wrote an unknown field: %s", query, answer)
		}
		status, answer = w.send(t, "POST", "/t/x/c?"+query, []byte(`{"nothing": 1}`))
		checkAnswer(t, query, status, answer)
		if status == 201 {
			t.Fatalf("POST %s: wrote an unknown field: %s", query, answer)
		}
		status, answer = w.send(t, "POST", "/t/x/vectors/near?"+query, []byte(`{"vector": [1, 0], "where": "n is not null"}`))
		checkAnswer(t, query, status, answer)
		status, answer = w.send(t, "DELETE", "/t/x/c/all?x="+query, nil)
		checkAnswer(t, query, status, answer)
		if status == 200 {
			t.Fatalf("DELETE /c/all?x=%s: the filter was ignored", query)
		}
		if after := w.everything(t); !bytes.Equal(before, after) {
			t.Fatalf("%s: changed the documents from %s to %s", query, before, after)
		}
	})
}

func (w *wire) everything(t testing.TB) []byte {
	_, answer := w.send(t, "GET", "/t/x/c", nil)
	return answer
}

// FuzzBatch sends any body to /batch, followed by a statement that fails: no statement takes effect.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		`{"query": "put c {n: 1}"}`, `{"query": "put c $1", "params": [{"n": 5}]}` + "\n" + `{"query": "del c"}`,
		"\n\r\n", `{`, `[]`, `{"query": 1}`, `{"params": [[[[]]]], "query": ""}`, "\xff", `{"query": "get c", "query": "get c"}`,
		`{"query": "create collection d (n int)"}` + "\n" + `{"query": "insert into d {n: 1}"}` + "\n" + `{"query": "drop collection c"}`,
		`{"query": "set c {n: n + 9223372036854775807}"}`, `{"query": "get c where s = \"\ud800\""}`, `{"query":"get c","params":null}`,
	} {
		f.Add([]byte(seed))
	}
	w := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(bytes.ToLower(body), []byte("compact")) {
			return // compact makes each statement a block of its own
		}
		before := w.everything(t)
		status, answer := w.send(t, "POST", "/t/x/batch", append(bytes.Clone(body), "\n{\"query\": \"get nowhere\"}"...))
		checkAnswer(t, string(body), status, answer)
		if status < 400 {
			t.Fatalf("failing batch: got %d %s, want an error", status, answer)
		}
		if !bytes.Contains(answer, []byte(`"completed":0,"at":`)) && status != 413 {
			t.Fatalf("got %d %s, want the number of the failed statement", status, answer)
		}
		if after := w.everything(t); !bytes.Equal(before, after) {
			t.Fatalf("changed the documents from %s to %s", before, after)
		}
	})
}

// FuzzQueryBody sends any body to /query.
func FuzzQueryBody(f *testing.F) {
	for _, seed := range []string{
		`{"query": "get c"}`, `{"query": "get c where n = $1", "params": [1e400]}`, `{"query": "describe c", "params": []}`, `{"query": "\u0000"}`,
		`{"query": "get c where meta = $1", "params": [{"a": [1.50, -0, 123456789012345678901234567890]}]}`, `{"query": "explain get c order n"}`,
	} {
		f.Add([]byte(seed))
	}
	w := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		lower := bytes.ToLower(body)
		for _, word := range []string{"drop", "\\u"} { // the next inputs need the collection
			if bytes.Contains(lower, []byte(word)) {
				return
			}
		}
		status, answer := w.send(t, "POST", "/t/x/query", body)
		checkAnswer(t, string(body), status, answer)
	})
}
