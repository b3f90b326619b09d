package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// told is what the readers of a tenant were told of its changes by number: rows in the events of live queries, and the
// last change of an event or of a read that was held for it.
type told struct {
	mu   sync.Mutex
	rows map[int]int // n by id
	last uint64
	at   string // and its history
}

func (o *told) event(rows map[int]int, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, n := range rows {
		o.rows[id] = n
	}
	o.position(id)
}

// position notes a cursor, `<seq>@<history>`.
func (o *told) position(cursor string) {
	number, history, _ := strings.Cut(cursor, "@")
	if seq, err := strconv.ParseUint(number, 10, 64); err == nil && seq > o.last {
		o.last, o.at = seq, history
	}
}

// listen follows a live query until its connection breaks.
func (o *told) listen(tenant string) {
	s := &stream{rows: map[int]int{}}
	if s.connect(tenant) != nil {
		return
	}
	defer s.response.Body.Close()
	for {
		if _, err := s.next(); err != nil {
			return
		}
		o.event(s.rows, s.id)
		clear(s.rows)
	}
}

// wait waits for one change after the other, until the node is gone.
func (o *told) wait(tenant string, reads *atomic.Int64) {
	for after := uint64(1); ; after++ {
		r, err := http.NewRequest("GET", tenant+"/writes?count", nil)
		if err != nil {
			return
		}
		r.Header.Set("Fenec-After", strconv.FormatUint(after, 10))
		r.Header.Set("Fenec-Wait", "30s")
		a, err := web.Do(r)
		if err != nil {
			return
		}
		a.Body.Close()
		if a.StatusCode == 200 {
			o.mu.Lock()
			o.position(strconv.FormatUint(after, 10) + "@" + a.Header.Get("Fenec-History"))
			o.mu.Unlock()
			reads.Add(1)
		}
	}
}

// TestNothingToldByItsNumberIsLostToSIGKILL kills a node under load, again and again: what live queries and held reads
// were told of is in the file, and their cursors go on.
func TestNothingToldByItsNumberIsLostToSIGKILL(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"250", "always"} {
		t.Run("sync "+sync, func(t *testing.T) {
			dir := t.TempDir()
			node := startNode(t, dir, "--sync", sync)
			tenant := makeTenant(t, node, "acme")
			for round := range 6 {
				killedUnderLoad(t, dir, node, tenant)
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
				node = startNode(t, dir, "--sync", sync)
				tenant = node.url() + "/t/acme"
			}
			node.stop()
		})
	}
}

func killedUnderLoad(t *testing.T, dir string, node *process, tenant string) {
	t.Helper()
	var readers sync.WaitGroup
	var reads atomic.Int64
	o := &told{rows: map[int]int{}}
	for range 4 {
		readers.Go(func() { o.listen(tenant) })
		readers.Go(func() { o.wait(tenant, &reads) })
	}
	w := startWriters(4, func() string { return tenant })
	w.more(t, 150)
	eventually(t, "readers are told", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.rows) > 100 && reads.Load() > 20
	})
	node.kill()
	readers.Wait()
	w.stop()

	node = startNode(t, dir)
	defer node.stop()
	tenant = node.url() + "/t/acme"
	rows := &stream{rows: map[int]int{}}
	if err := rows.connect(tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.next(); err != nil {
		t.Fatal(err)
	}
	rows.response.Body.Close()
	for id, n := range o.rows {
		if got, ok := rows.rows[id]; !ok || got != n {
			t.Errorf("a live query was told of row %d, %d, and the file has %d, %v", id, n, got, ok)
		}
	}
	a, err := request("GET", tenant+fmt.Sprintf("/_changes?since=%d", o.last), "")
	if err != nil || a.status != 200 {
		t.Errorf("change %d was told of, and the changes after it are answered %d %s, %v", o.last, a.status, a.body, err)
	}
	resumed := &stream{rows: map[int]int{}, id: strconv.FormatUint(o.last, 10) + "@" + o.at}
	if err := resumed.connect(tenant); err != nil {
		t.Fatal(err)
	}
	defer resumed.response.Body.Close()
	must(t, 201, "POST", tenant+"/writes", `{"n": -1}`)
	if e, err := resumed.next(); err != nil || e.name != "change" {
		t.Errorf("a live query that goes on from change %d is told %+v, %v", o.last, e, err)
	}
}
