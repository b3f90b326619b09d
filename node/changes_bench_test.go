package node

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/edge"
	"fenec/internal/http1"
)

// BenchmarkChanges alternates between putting documents of 200 bytes and reading their changes. It reports the time for
// the puts divided by the time for the reads.
func BenchmarkChanges(b *testing.B) {
	const turn = 2000
	r := start(b, Config{Sync: wal.Policy{Every: 250 * time.Millisecond}})
	r.fill("x", 0)
	body := fmt.Sprintf(`{"n": 1, "s": %q}`, strings.Repeat("x", 180))
	put := fmt.Sprintf("POST /t/x/c HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	conn, err := net.Dial("tcp", r.url[len("http://"):])
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 4<<10)
	since := "1"
	var putting, reading time.Duration
	puts, lines := 0, 0
	for puts < max(b.N, turn) {
		began := time.Now()
		for range turn {
			if _, err := conn.Write([]byte(put)); err != nil {
				b.Fatal(err)
			}
			if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 201 ")) {
				b.Fatalf("%v %q", err, answer[:n])
			}
			puts++
		}
		putting += time.Since(began)
		one := r.tenants.Find([]byte("x"))
		if err := one.DB.Sync(); err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		for lines < puts {
			resp, err := r.client.Get(r.url + "/t/x/_changes?since=" + since)
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(err, resp)
			}
			page, err := io.ReadAll(resp.Body)
			if err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
			lines += bytes.Count(page, newline)
			since = resp.Header.Get("Fenec-Next")
		}
		reading += time.Since(began)
	}
	b.ReportMetric(float64(putting)/float64(reading), "times-as-fast")
	b.ReportMetric(float64(putting.Nanoseconds())/float64(puts), "ns/put")
	b.ReportMetric(float64(reading.Nanoseconds())/float64(lines), "ns/line")
}

func TestAPageOfChangesAllocatesAtMostThirtyTimes(t *testing.T) {
	r := start(t, Config{Sync: wal.Policy{Always: true}})
	r.fill("x", 300)
	l := dial(t, r.url[len("http://"):], "/t/x/_changes?since=1")
	l.ask(t)
	const most = 30 // for the blocks and the lookup of the schema
	if n := testing.AllocsPerRun(100, func() { l.ask(t) }); n > most {
		t.Errorf("got %.1f allocations for a page of 300 lines, want at most %d", n, most)
	}
}

// FuzzChangesQuery parses any query string and any position header. Accepted values are within their limits.
func FuzzChangesQuery(f *testing.F) {
	for _, seed := range [][3]string{
		{"since=0&limit=2", "0", "replica"},
		{"since=-1", "1", ""},
		{"consumer=k&wait=1ms", "99999999999999999999", "x"},
		{"since=%31&&limit=10000", "", "1-00"},
		{"wait=0&since=9", "+1", "2-000102030405060708090a0b0c0d0e0f"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, query, after, rest string) {
		for _, name := range []string{"Fenec-After", "fenec-wait", "FENEC-HISTORY", "Fenec-Read"} {
			for _, value := range []string{after, rest} {
				p, err := readPosition(headersOf(name, value))
				if err == nil && (p.wait < 0 || p.wait > edge.MaxWait || p.after > 1<<63-1) {
					t.Errorf("%s: %q is parsed as %+v", name, value, p)
				}
			}
		}
		q := changesQuery{limit: defaultChanges}
		for pair := range strings.SplitSeq(query, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if _, err := q.read(key, []byte(value)); err == nil && (q.limit < 1 || q.limit > maxChanges || q.wait < 0 || q.wait > edge.MaxWait) {
				t.Errorf("%q is parsed as %+v", pair, q)
			}
		}
	})
}

func headersOf(name, value string) []http1.Header {
	return []http1.Header{{Name: []byte(name), Value: []byte(value)}}
}
