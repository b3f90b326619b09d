package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/vfs/crashfs"
)

func TestALiveQuerySendsItsRowsAndTheirChanges(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 3)
	w := r.watch("/t/x/c/changes?n=gte.2&select=n")
	if seq := w.header.Get("Fenec-Seq"); seq != "4" || w.header.Get("Fenec-History") == "" || w.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got headers %v, want position 4, a history and no-store", w.header)
	}
	w.expect(`seed 4 [{"id":2,"n":2} {"id":3,"n":3}]`)
	if want := "4@" + w.header.Get("Fenec-History"); w.id != want {
		t.Errorf("seed: got id %s, want %s", w.id, want)
	}
	r.insert("x", 4, 1)
	w.expect(`change 5 [{"id":4,"n":4}] [] false`)
	r.query("x", "set c {n: 0} where id = 2")
	w.expect(`change 6 [] [2] false`)
	r.query("x", "put c {n: 1}") // outside the filter before and after: a stream keeps no list of its rows
	w.expect(`change 7 [] [5] false`)
	r.want(200, "POST", "/t/x/batch", `{"query": "put c {n: 9}"}`+"\n"+`{"query": "del c where n = 4"}`+"\n"+`{"query": "set c {s: 'x'} where n = 3"}`)
	w.expect(`change 10 [{"id":3,"n":3} {"id":6,"n":9}] [4] false`)
	r.query("x", "create collection d (n int)")
	r.query("x", "put d {n: 5}") // another collection moves the cursor without an event
	r.query("x", "del c where id = 99")
	r.query("x", "create index on c (n) @sorted")
	w.expect(`change 13 [] [] true`)
	r.query("x", "alter collection c add field extra int")
	r.query("x", "put c {n: 2, s: 'b', extra: 1}")
	e := w.next()
	if e.Seq == 14 {
		e = w.next()
	}
	if e.String() != `change 15 [{"id":7,"n":2}] [] false` && e.String() != `change 15 [{"id":7,"n":2}] [] true` {
		t.Errorf("got %s", e)
	}
	w.same(r, "/t/x/c?n=gte.2&select=id,n")
	all := r.watch("/t/x/c/changes")
	if e := all.next(); e.Seq != 15 || len(e.Rows) != 6 {
		t.Errorf("whole collection: got %s, want 6 rows at 15", e)
	}
	all.same(r, "/t/x/c")
	r.query("x", "drop collection c")
	w.expectEnd("collection c was dropped")
	all.expectEnd("collection c was dropped")
	r.query("x", "create collection c (n int)")
	r.want(404, "GET", "/t/x/e/changes", "")
	if w = r.watch("/t/x/c/changes", "Last-Event-ID", w.id); w.next().name != "seed" {
		t.Error("a stream of a dropped collection resumed in another one of its name, want a seed")
	}
}

func TestAStreamResumesFromItsCursor(t *testing.T) {
	r := start(t, Config{Changes: 6})
	r.fill("x", 2)
	w := r.watch("/t/x/c/changes")
	w.expect(`seed 3 [{"id":1,"n":1,"s":"s1"} {"id":2,"n":2,"s":"s2"}]`)
	id, history := w.id, w.header.Get("Fenec-History")
	w.stop()
	r.insert("x", 3, 2)
	r.query("x", "del c where id < 3")
	const change = `change 7 [{"id":3,"n":3,"s":"s3"} {"id":4,"n":4,"s":"s4"}] [1 2] false`
	for _, restart := range []bool{false, true} {
		if restart {
			eventually(t, "the streams have ended", func() bool { return r.streaming.Load() == 0 })
			r.closeIdle("x")
		}
		for _, headers := range [][]string{
			{"?since=3"},
			{"?since=" + id},
			{"?since=3", "Fenec-History", history},
			{"?since=0", "Last-Event-ID", id},
			{"?since=0&n=gt.-1", "Last-Event-ID", "3"},
			{"?since=3", "Last-Event-ID", ""},
			{"?since=3", "Fenec-After", "7", "Fenec-History", history},
		} {
			w := r.watch("/t/x/c/changes"+headers[0], headers[1:]...)
			w.expect(change)
			if seq := w.header.Get("Fenec-Seq"); seq != "3" {
				t.Errorf("resumed stream: got position %s, want 3", seq)
			}
			w.stop()
		}
		// A stream from the last change sends no event until the next one.
		w := r.watch("/t/x/c/changes?since=7")
		for _, since := range []string{"8", "9223372036854775807", "7@1-00000000000000000000000000000000", "0"} {
			seeded := r.watch("/t/x/c/changes?since=" + since)
			if e := seeded.next(); e.name != "seed" || e.Seq != 7 || len(e.Rows) != 2 || seeded.header.Get("Fenec-Seq") != "7" {
				t.Errorf("stream after %s: got %s, want a seed of 2 rows at 7", since, e)
			}
			seeded.stop()
		}
		if !restart {
			w.stop()
			continue
		}
		r.query("x", "put c {n: 5}")
		w.expect(`change 8 [{"id":5,"n":5,"s":null}] [] false`)
		r.insert("x", 6, 10) // more than --changes at once
		if e := w.next(); e.name != "seed" || e.Seq != 18 || len(e.Rows) != 13 {
			t.Errorf("stream far behind: got %s, want a seed of 13 rows at 18", e)
		}
		w.same(r, "/t/x/c")
	}
}

func TestInvalidLiveQueriesAreRefused(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 3)
	r.url += "/t/x"
	const shape = ` does not go with a live query: it is a set of rows, which takes filters, select and since"}`
	steps := []step{
		{"a negative cursor", "GET", "/c/changes?since=-1", "", 400, `{"error":"since: expected the number of a change, 0 or above, got \"-1\""}`},
		{"not a number", "GET", "/c/changes?since=abc", "", 400, `{"error":...`},
		{"a fraction", "GET", "/c/changes?since=1.5", "", 400, `{"error":...`},
		{"an empty cursor", "GET", "/c/changes?since=", "", 400, `{"error":...`},
		{"a cursor without a value", "GET", "/c/changes?since", "", 400, `{"error":"\"since\" has no value: expected since=..."}`},
		{"a cursor past 64 bits", "GET", "/c/changes?since=99999999999999999999", "", 400, `{"error":...`},
		{"an invalid history", "GET", "/c/changes?since=1@x", "", 400, `{"error":"a history is...`},
		{"a key given twice", "GET", "/c/changes?since=1&since=1", "", 400, `{"error":"since is given twice"}`},
		{"a count", "GET", "/c/changes?count", "", 400, `{"error":"count` + shape},
		{"aggregates", "GET", "/c/changes?select=count(*)", "", 400, `{"error":"aggregates do not go...`},
		{"the time", "GET", "/c/changes?where=n%3Enow()", "", 400, `{"error":"now() does not go with a live query, whose rows change with writes and not with the time"}`},
		{"the time, hidden", "GET", "/c/changes?where=not+(n+in+[1,+now()-1])", "", 400, `{"error":"now() does...`},
		{"another collection", "GET", "/c/changes?where=n+in+(get+c+select+n)", "", 400, `{"error":"a get inside the filter...`},
		{"an unknown field", "GET", "/c/changes?zz=1", "", 404, `{"error":"c has no field zz"}`},
		{"an unknown field selected", "GET", "/c/changes?select=zz", "", 404, `{"error":"c has no field zz"}`},
		{"an invalid value", "GET", "/c/changes?n=abc", "", 400, `{"error":...`},
		{"an invalid value with a cursor", "GET", "/c/changes?n=abc&since=4", "", 400, `{"error":...`},
		{"an incomplete condition", "GET", "/c/changes?where=(n", "", 400, `{"error":...`},
		{"an unknown collection", "GET", "/d/changes", "", 404, `{"error":"there is no collection d"}`},
		{"an unknown collection with a cursor", "GET", "/d/changes?since=1", "", 404, `{"error":...`},
		{"a server's collection", "GET", "/_consumers/changes", "", 404, `{"error":...`},
		{"another method", "POST", "/c/changes", "{}", 405, `{"error":...`},
		{"a path below", "GET", "/c/changes/x", "", 404, `{"error":...`},
	}
	for _, key := range []string{"order", "limit", "offset", "lookup", "near", "match", "group", "having"} {
		steps = append(steps, step{key, "GET", "/c/changes?" + key + "=n", "", 400, `{"error":"` + key + shape})
	}
	r.play(steps)
	for _, id := range []string{"x", "-1", "@", "4@x", "4@1-00"} {
		r.want(400, "GET", "/c/changes", "", "Last-Event-ID", id)
	}
	if n := r.streaming.Load(); n != 0 {
		t.Errorf("got %d streams counted after refusals, want 0", n)
	}
	head := r.want(200, "HEAD", "/c/changes?n=1", "")
	if head.header.Get("Fenec-Seq") != "4" || head.header.Get("Content-Type") != "text/event-stream" || r.streaming.Load() != 0 {
		t.Errorf("HEAD: got headers %v, want position 4 and text/event-stream", head.header)
	}
}

func TestAStreamEndsIfAFieldItReadsIsDroppedOrRenamed(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	w := r.watch("/t/x/c/changes?n=gt.0")
	w.next()
	by := r.watch("/t/x/c/changes?select=s")
	by.next()
	r.query("x", "alter collection c drop field n")
	w.expectEnd("c has no field n")
	if !strings.HasPrefix(w.id, "2@") {
		t.Errorf("got cursor %s, want the last change that was sent, 2", w.id)
	}
	by.expect(`change 3 [] [] true`)
	r.query("x", "alter collection c rename field s to text")
	by.expectEnd("c has no field s")
	r.want(404, "GET", "/t/x/c/changes?n=gt.0", "", "Last-Event-ID", w.id)
}

func TestAnExpiredRowLeavesAStreamWhenItIsDeleted(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", "create collection c (at timestamp @ttl(1m))")
	r.query("x", "put c {at: now()}")
	w := r.watch("/t/x/c/changes?select=id")
	w.expect(`seed 2 [{"id":1}]`)
	clock.Advance(2 * time.Minute)
	r.tenants.Expire()
	w.expect(`change 3 [] [1] false`)
	if e := r.watch("/t/x/c/changes").next(); len(e.Rows) != 0 {
		t.Errorf("got %s, want no rows", e)
	}
}

func TestStreamsEndOnDeleteAndShutdown(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(r *running)
		want string
	}{
		"a delete":   {func(r *running) { r.wantAdmin(204, "DELETE", "tenants/x", "") }, "tenant x is being moved or deleted"},
		"a shutdown": {func(r *running) { go r.stop() }, "the node is stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Config{IdleClose: time.Nanosecond})
			r.fill("x", 1)
			w, other := r.watch("/t/x/c/changes"), r.watch("/t/x/c/changes?n=9")
			w.next()
			other.next()
			r.tenants.Sweep()
			r.insert("x", 2, 1)
			tc.end(r)
			w.expect(`change 3 [{"id":2,"n":2,"s":"s2"}] [] false`)
			w.expectEnd(tc.want)
			other.expect(`change 3 [] [2] false`)
			other.expectEnd(tc.want)
			if !strings.HasPrefix(w.id, "3@") {
				t.Errorf("got cursor %s, want change 3", w.id)
			}
		})
	}
}

func TestANodeOverAFileServesLiveQueries(t *testing.T) {
	r := start(t, Config{File: t.TempDir() + "/one.fenec"})
	r.want(200, "POST", "/query", `{"query": "create collection c (n int)"}`)
	w := r.watch("/c/changes")
	w.expect(`seed 1 []`)
	r.want(201, "POST", "/c", `{"n": 1}`)
	w.expect(`change 2 [{"id":1,"n":1}] [] false`)
	go r.stop()
	w.expectEnd("the node is stopping")
}

func TestATenantWithAStreamIsNotClosedAsIdle(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now, IdleClose: time.Minute})
	r.fill("x", 1)
	w := r.watch("/t/x/c/changes")
	w.next()
	r.budget.tenants.MaxMemory = 1
	clock.Advance(time.Hour)
	r.tenants.Sweep()
	if !r.isOpen("x") {
		t.Error("the tenant was closed while it had a stream")
	}
	w.stop()
	eventually(t, "the stream has ended", func() bool { return r.streaming.Load() == 0 })
	r.closeIdle("x")
}

func TestStreamsHaveALimitApartFromConnections(t *testing.T) {
	r := start(t, Config{MaxStreams: 2, MaxConnections: 2})
	r.fill("x", 1)
	one, two := r.watch("/t/x/c/changes"), r.watch("/t/x/c/changes")
	got := r.want(503, "GET", "/t/x/c/changes", "")
	if got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "2 live queries are open") {
		t.Errorf("above the limit: got %v %s, want Retry-After", got.header, got.body)
	}
	metrics := r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken).body
	for _, want := range []string{"fenec_streams 2\n", "fenec_streams_max 2\n", "fenec_connections 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("got metrics without %q", want)
		}
	}
	one.stop()
	eventually(t, "the stream has ended", func() bool { return r.streaming.Load() == 1 })
	r.watch("/t/x/c/changes").next()
	two.next()
	r.want(200, "GET", "/t/x/c", "")
}

// inBubble runs a test of a node in virtual time, with pipes for connections.
func inBubble(t *testing.T, c Config, test func(r *running)) {
	synctest.Test(t, func(t *testing.T) {
		c.AdminToken = adminToken
		if c.File == "" {
			c.Dir = "/data"
		}
		n, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- n.Serve(p) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			p.made <- theirs
			return ours, nil
		}}}
		test(&running{Node: n, t: t, url: "http://x", client: client})
		client.CloseIdleConnections()
		if err := n.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
	})
}

func TestAStreamSendsHeartbeatsAndMovesTheCursor(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 1)
		w := r.watch("/t/x/c/changes")
		w.next()
		began := time.Now()
		for i := 1; i <= 3; i++ {
			if e, err := w.read(); err != nil || e.name != "" || e.id != "" || time.Since(began) != time.Duration(i)*heartbeat {
				t.Errorf("after %v: got %v, %v, want a heartbeat", time.Since(began), e, err)
			}
		}
		r.query("x", "create collection other (n int)")
		history := w.header.Get("Fenec-History")
		if e, err := w.read(); err != nil || e.name != "" || e.id != "3@"+history {
			t.Errorf("got %v, %v, want a cursor at 3", e, err)
		}
		// A client that reads nothing for a minute is disconnected.
		for range 3 {
			r.insert("x", 1, 1)
		}
		time.Sleep(2 * time.Minute)
		if open := r.streaming.Load(); open != 0 {
			t.Errorf("got %d open streams without a reader, want 0", open)
		}
		w.stop()
	})
}

// TestASlowReaderReachesTheCurrentRows has a client read its stream after many changes.
func TestASlowReaderReachesTheCurrentRows(t *testing.T) {
	for name, changes := range map[string]int{"from the feed": 1 << 20, "read again": 64} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Config{Changes: changes})
			r.fill("x", 0)
			c := r.opened("GET /t/x/c/changes HTTP/1.1\r\nHost: x\r\n\r\n")
			c.SetReadBuffer(64 << 10)
			text := strings.Repeat("long ", 20_000)
			for i := range 70 { // more than the sockets take
				r.want(201, "POST", "/t/x/c", fmt.Sprintf(`{"n": %d, "s": %q}`, i, text))
			}
			r.query("x", "del c where n < 60")
			r.query("x", "put c {n: 1000}")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			w := &watching{t: t, cancel: func() { c.Close() }, body: resp.Body, in: bufio.NewReader(resp.Body), rows: map[int64]string{}}
			seeds := 0
			for last := uint64(0); last < 132; {
				e := w.next()
				if e.Seq <= last && e.name == "change" {
					t.Fatalf("got change %d after %d", e.Seq, last)
				}
				if e.name == "seed" {
					seeds++
				}
				last = e.Seq
			}
			w.same(r, "/t/x/c")
			if changes == 64 && seeds < 2 || changes > 64 && seeds != 1 {
				t.Errorf("got %d seeds with %d changes kept", seeds, changes)
			}
			c.Close()
		})
	}
}

// opened sends bytes on a new connection, which it returns.
func (r *running) opened(bytes string) *net.TCPConn {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, bytes); err != nil {
		r.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func TestAnUnreadStreamDoesNotDelayADelete(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 0)
	for i := range 40 { // more than the sockets take
		r.want(201, "POST", "/t/x/c", fmt.Sprintf(`{"n": %d, "s": %q}`, i, strings.Repeat("x", 200_000)))
	}
	r.opened("GET /t/x/c/changes HTTP/1.1\r\nHost: x\r\n\r\n")
	eventually(t, "the stream is open", func() bool { return r.streaming.Load() == 1 })
	began := time.Now()
	r.wantAdmin(204, "DELETE", "tenants/x", "")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the delete took %v, want at most 20s", took)
	}
}

func TestRequestsAfterALiveQueryOnItsConnectionAreIgnored(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	const request = "GET /t/x/c/changes HTTP/1.1\r\nHost: x\r\n\r\n"
	c := r.opened(request + "GET /t/x/c HTTP/1.1\r\nHost: x\r\n\r\n" + "POST /t/x/c HTTP/1.1\r\nContent-Length: 8\r\n\r\n{\"n\": 9}")
	b := bufio.NewReader(c)
	resp, err := http.ReadResponse(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{t: t, cancel: func() { c.Close() }, body: resp.Body, in: bufio.NewReader(resp.Body), rows: map[int64]string{}}
	w.expect(`seed 2 [{"id":1,"n":1,"s":"s1"}]`)
	r.insert("x", 2, 1)
	w.expect(`change 3 [{"id":2,"n":2,"s":"s2"}] [] false`)
	r.wantAdmin(204, "DELETE", "tenants/x", "")
	w.expectEnd("deleted")
	if rest, err := io.ReadAll(b); len(rest) != 0 {
		t.Errorf("after the stream: got %q, %v, want nothing", rest, err)
	}
}

func TestTenThousandDroppedStreamsLeakNothing(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 5)
	r.count("x")
	before, files := runtime.NumGoroutine(), descriptors(t)
	const request = "GET /t/x/c/changes?n=gt.2 HTTP/1.1\r\nHost: x\r\n\r\n"
	const together = 20
	for round := range 10_000 / together {
		var conns [together]*net.TCPConn
		for i := range conns {
			conns[i] = r.dropped(request)
		}
		if round%50 == 0 {
			r.insert("x", round, 1)
		}
		for i, c := range conns {
			if i%2 == 0 { // half of the clients read first, half are killed
				bufio.NewReader(c).ReadString('\n')
			} else {
				c.SetLinger(0)
			}
			c.Close()
		}
		eventually(t, "fewer than 100 streams are open", func() bool { return r.streaming.Load() < 100 })
	}
	eventually(t, "streams, goroutines and descriptors are released", func() bool {
		return r.streaming.Load() == 0 && runtime.NumGoroutine() <= before && descriptors(t) <= files
	})
	one := r.tenants.Find([]byte("x"))
	if n := len(streamsOf(one).running) + len(streamsOf(one).shapes); n != 0 {
		t.Errorf("got %d streams and shapes, expected 0", n)
	}
	r.closeIdle("x")
}

// dropped sends a request on a new connection, which the caller closes.
func (r *running) dropped(request string) *net.TCPConn {
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err == nil {
		_, err = io.WriteString(c, request)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}
