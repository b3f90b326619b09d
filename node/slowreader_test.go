package node

import (
	"bufio"
	"net/http"
	"runtime"
	"testing"
)

// TestAReaderThatStopsReadingCostsUnderAMegabyte runs the same 100 000 updates without a live query and with one whose client
// does not read, and compares the heap after them. Then the client reads all events and has the right rows.
func TestAReaderThatStopsReadingCostsUnderAMegabyte(t *testing.T) {
	const rows, rounds = 100, 1000
	held := func(read func(r *running) func()) int64 {
		before := heap()
		r := start(t, Config{})
		r.fill("x", rows)
		after := read(r)
		for range rounds {
			r.query("x", "set c {n: n + 1}")
		}
		held := heap() - before
		after()
		r.stop()
		return held
	}
	alone := held(func(*running) func() { return func() {} })
	stuck := held(func(r *running) func() {
		c := r.opened("GET /t/x/c/changes HTTP/1.1\r\nHost: x\r\n\r\n")
		return func() {
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			w := &watching{t: t, cancel: func() { c.Close() }, body: resp.Body, in: bufio.NewReader(resp.Body), rows: map[int64]string{}}
			for last := uint64(0); last < 1+rows+rows*rounds; {
				last = w.next().Seq
			}
			w.same(r, "/t/x/c")
			c.Close()
		}
	})
	if more := stuck - alone; more > 1<<20 {
		t.Errorf("got %d bytes more of heap for a client that reads nothing, expected at most a megabyte", more)
	}
	t.Logf("%d bytes more of heap for a client that reads nothing, over %d", stuck-alone, alone)
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
