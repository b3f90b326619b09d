package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/VictoriaMetrics/metrics"
)

// compacted waits until no compaction is running or waiting.
func (r *running) compacted() {
	r.t.Helper()
	under, waiting := r.gauge("fenec_compactions_running"), r.gauge("fenec_compactions_waiting")
	eventually(r.t, "no file is to be compacted", func() bool { return waiting.Get()+under.Get() == 0 })
}

// counter returns a counter of the node's metrics. It stays valid after the node has stopped.
func (r *running) counter(name string) *metrics.Counter {
	return r.metrics.set.GetOrCreateCounter(name)
}

// gauge returns a gauge of the node's metrics.
func (r *running) gauge(name string) *metrics.Gauge { return r.metrics.set.GetOrCreateGauge(name, nil) }

// TestWritesDuringAutomaticCompactionsAreKept runs writers that put, change and delete documents of their own while the
// node compacts the file repeatedly. It compares the documents with the acknowledged writes: in the node, after a power
// failure and after a clean shutdown. A seed determines the writes.
func TestWritesDuringAutomaticCompactionsAreKept(t *testing.T) {
	const writers, writes = 3, 250
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			fs := crashfs.New(seed)
			c := Config{Dir: "/data", FS: fs, Sync: wal.Policy{Always: true}, CompactAt: 0.5}
			r := start(t, c)
			r.wantAdmin(201, "PUT", "tenants/x", "")
			r.query("x", "create collection c (n int @sorted, s text)")
			left := make([]map[int]int, writers)
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() { left[w] = randomWrites(r, rand.New(rand.NewPCG(seed, uint64(w))), w, writes) })
			}
			group.Wait()
			want := map[int]int{}
			for _, own := range left {
				maps.Copy(want, own)
			}
			r.wantNumbers(want)
			r.compacted()
			if done := r.counter(`fenec_compactions_total{result="done"}`).Get(); done < 2 {
				t.Errorf("got %d compactions during the writes, want at least 2", done)
			}
			r.wantNumbers(want)
			c.FS = fs.Crash()
			after := start(t, c)
			after.wantNumbers(want)
			after.stop()
			start(t, c).wantNumbers(want)
		})
	}
}

// randomWrites writes documents of up to 256 KiB under the ids of one writer and returns the n of each id
// that remains.
func randomWrites(r *running, random *rand.Rand, writer, writes int) map[int]int {
	text := []byte(strings.Repeat("x", 256<<10))
	left := map[int]int{}
	for i := range writes {
		id := writer*10 + 1 + random.IntN(10)
		n := doc.IntValue(int64(i))
		switch random.IntN(6) {
		case 0:
			delete(left, id)
			r.exec("x", "del c where id = $1", doc.IntValue(int64(id)))
		case 1:
			if _, ok := left[id]; ok {
				left[id] = i
			}
			r.exec("x", "set c {n: $1} where id = $2", n, doc.IntValue(int64(id)))
		default:
			left[id] = i
			r.exec("x", "put c {id: $1, n: $2, s: $3}", doc.IntValue(int64(id)), n, doc.TextValue(text[:random.IntN(len(text))]))
		}
	}
	return left
}

// wantNumbers checks the n of each document of c, with a scan and with the index on n.
func (r *running) wantNumbers(want map[int]int) {
	r.t.Helper()
	for _, statement := range []string{"get c select id, n", "get c where n >= 0 order n select id, n"} {
		var rows []struct{ ID, N int }
		if err := json.Unmarshal([]byte(r.query("x", statement)), &rows); err != nil {
			r.t.Fatal(err)
		}
		got := map[int]int{}
		for _, one := range rows {
			got[one.ID] = one.N
		}
		if !maps.Equal(got, want) || len(rows) != len(want) {
			r.t.Errorf("%s: got %v, want %v", statement, got, want)
		}
	}
}

// TestADrainedQueueLeavesASmallFileAndHeap puts up to a million jobs into a queue and deletes them.
func TestADrainedQueueLeavesASmallFileAndHeap(t *testing.T) {
	const batch = 10_000
	jobs := 1_000_000
	if testing.Short() {
		jobs = 200_000
	}
	before := heap()
	r := start(t, Config{CompactAt: 0.5, Replication: 1 << 20})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", "create collection jobs (about text, run_at int @sorted)")
	put := "put jobs [" + strings.Join(slices.Repeat([]string{
		"{run_at: 7, about: 'a message to ada on a matter of some length, with what it takes to send it and whom to ask if it fails'}",
	}, batch), ", ") + "]"
	for range jobs / batch {
		r.exec("x", put)
	}
	full := heap() - before
	for range jobs / batch {
		r.exec("x", fmt.Sprintf("del jobs where run_at <= 7 order run_at limit %d", batch))
	}
	r.compacted()
	after, size := heap()-before, r.size("x")
	t.Logf("%d jobs: %d bytes of heap, after their delete %d and a file of %d", jobs, full, after, size)
	const most = 17 << 20 // a file is left alone until more than 16 MiB of it is dead
	if size > most || after > most+8<<20 || full < int64(jobs)*100 {
		t.Errorf("%d jobs: got %d bytes of heap, after their delete %d and a file of %d, want a file of at most %d", jobs, full, after, size, most)
	}
	if got := r.query("x", "get jobs count"); got != `[{"count":0}]` {
		t.Errorf("jobs after the deletes: got %s, want none", got)
	}
}
