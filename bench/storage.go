package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/wal"

	"golang.org/x/sys/unix"
)

func float(x float64) doc.Value { return doc.Value{Kind: doc.Float, N: math.Float64bits(x)} }

func boolean(b bool) doc.Value {
	v := doc.Value{Kind: doc.Bool}
	if b {
		v.N = 1
	}
	return v
}

const (
	openDocuments = 1_000_000
	heapObjects   = 100_000 // what opening them may add
)

// openFigures opens a file of a million documents of 100 bytes, each a block of its own, the slowest such file.
func openFigures(r *report) error {
	dir, err := os.MkdirTemp("", "fenec-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "big.fenec")
	if err := writeBig(path); err != nil {
		return err
	}
	if err := r.figure(figure{
		name: "open of 1 000 000 documents of 100 bytes", unit: "ms", atMost: 10,
		ours: side{"fenec", func() (float64, error) { return millis(func() error { return openAndClose(path) }) }},
		peer: side{"read and CRC", func() (float64, error) { return millis(func() error { return readWithCRC(path) }) }},
	}); err != nil {
		return err
	}
	before := objects()
	db, err := engine.Open(path, engine.Options{})
	if err != nil {
		return err
	}
	added := objects() - before
	runtime.KeepAlive(db)
	r.fact("heap objects it adds", fmt.Sprint(added), fmt.Sprintf("under %d", heapObjects), added < heapObjects)
	return db.Close()
}

func writeBig(path string) error {
	db, err := engine.Create(path, engine.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := db.Exec(ctx, engine.Everything(), engine.Statement{Text: `create collection c (n int, body text)`}, nil); err != nil {
		return err
	}
	body := text(strings.Repeat("x", 66)) // 100 bytes with what a document has around it
	for i := range openDocuments {
		if _, err := db.Exec(ctx, engine.Everything(), engine.Statement{Text: `put c {n: $1, body: $2}`, Params: []doc.Value{integer(int64(i)), body}}, nil); err != nil {
			return err
		}
	}
	return db.Close()
}

func openAndClose(path string) error {
	db, err := engine.Open(path, engine.Options{})
	if err != nil {
		return err
	}
	return db.Close()
}

func readWithCRC(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) == 0 {
		err = fmt.Errorf("%s has no bytes", path)
	}
	return err
}

func objects() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapObjects)
}

func millis(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return float64(time.Since(start).Nanoseconds()) / 1e6, err
}

// durableBody is the document the durable puts write.
const durableBody = `{"title": "a note", "body": "words words words words words words words words words words words words words words words", "year": 2024}`

// durableFigures compares a put over HTTP, answered once it is on disk, with writing and syncing the same bytes.
func durableFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	alone, err := l.startDurable(pinned, "alone")
	if err != nil {
		return err
	}
	if err := r.figure(figure{
		name: "durable put over HTTP, one client, p50", unit: "us", atMost: 1.5,
		ours: side{"fenec", l.ping(alone, "/t/x/c", 2000, "POST", durableBody)},
		peer: side{"write and fdatasync", onItsOwn(bareSync(filepath.Join(l.dir, "bare"), recordBytes()))},
	}); err != nil {
		return err
	}
	if !installed("wrk") {
		r.skip("durable puts, 16 clients", "wrk is not installed")
		return nil
	}
	node, err := l.startDurable("", "crowd")
	if err != nil {
		return err
	}
	script := filepath.Join(l.dir, "post.lua")
	if err := os.WriteFile(script, []byte("wrk.method = 'POST'\nwrk.body = '"+durableBody+"'\n"), 0o644); err != nil {
		return err
	}
	return r.figure(figure{
		name: "durable puts a second, 16 clients beside one", unit: "/s", rate: true, atLeast: 6,
		ours: side{"16 clients", l.wrkPost(node, script, 16)}, peer: side{"one client", l.wrkPost(node, script, 1)},
	})
}

// startDurable starts a node that answers a write once it is on disk, with the tenant x.
func (l *lab) startDurable(cpu, name string) (port int, err error) {
	if port, err = l.startNode(cpu, name, "--sync", "always"); err != nil {
		return 0, err
	}
	if err := createTenant(port, "x"); err != nil {
		return 0, err
	}
	return port, fill("http://" + address(port))
}

// recordBytes is about what the put of durableBody appends to the file.
func recordBytes() int { return wal.HeaderSize + len(durableBody) + 24 }

// bareSync appends n bytes and syncs them, as often as the ruler asks and on the same processor, and answers the median
// in microseconds.
func bareSync(path string, n int) func() (float64, error) {
	return func() (float64, error) {
		runtime.LockOSThread() // and never unlocked: the thread, which is pinned, ends with the goroutine
		var set unix.CPUSet
		set.Set(0)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return 0, err
		}
		f, err := os.Create(path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		b := make([]byte, n)
		var took []float64
		for i := range 2000 {
			start := time.Now()
			if _, err := f.WriteAt(b, int64(i*n)); err != nil {
				return 0, err
			}
			if err := unix.Fdatasync(int(f.Fd())); err != nil {
				return 0, err
			}
			took = append(took, float64(time.Since(start).Nanoseconds())/1e3)
		}
		return median(took), nil
	}
}

// onItsOwn measures on a goroutine of its own, which ends with it.
func onItsOwn(measure func() (float64, error)) func() (float64, error) {
	return func() (got float64, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = measure()
		}()
		<-done
		return got, err
	}
}

func (l *lab) wrkPost(port int, script string, clients int) func() (float64, error) {
	return func() (float64, error) {
		out, err := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", clients), "-d3s", "-s", script, "http://"+address(port)+"/t/x/c").CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("wrk: %w: %s", err, out)
		}
		return wrkRate(out)
	}
}

const moveBytes = 50 << 20

// moveFigures compares moving a tenant through the router with copying and syncing its file.
func moveFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	one, err := l.startNode("", "one")
	if err != nil {
		return err
	}
	two, err := l.startNode("", "two")
	if err != nil {
		return err
	}
	router, err := l.startRouter("", "directory", one, two)
	if err != nil {
		return err
	}
	base := "http://" + address(router)
	if err := grow(base); err != nil {
		return err
	}
	at := "n1"
	move := func() (float64, error) {
		to := map[string]string{"n1": "n2", "n2": "n1"}[at]
		out, err := send("POST", base+"/_shard/tenants/x/move", "", `{"to": "`+to+`"}`)
		if err != nil {
			return 0, err
		}
		var answer struct {
			MS float64 `json:"ms"`
		}
		at = to
		return answer.MS, json.Unmarshal(out, &answer)
	}
	folder := map[string]string{"n1": "one", "n2": "two"}
	copied := func() (float64, error) {
		file, to := filepath.Join(l.dir, folder[at], "x.fenec"), filepath.Join(l.dir, "copy")
		defer os.Remove(to)
		return millis(func() error { return exec.Command("sh", "-c", `cp "$1" "$2" && sync "$2"`, "sh", file, to).Run() })
	}
	return r.figure(figure{
		name: "move of a 50 MB tenant", unit: "ms", atMost: 3,
		ours: side{"fenec", move}, peer: side{"cp and sync", copied},
	})
}

// grow fills the tenant x to moveBytes.
func grow(base string) error {
	doc := fmt.Sprintf(`{"title": "note", "body": %q, "year": 1}`, strings.Repeat("words ", 160))
	body := "[" + strings.TrimSuffix(strings.Repeat(doc+",", 1000), ",") + "]"
	for written := 0; written < moveBytes; written += len(body) {
		if _, err := send("POST", base+"/t/x/c", "", body); err != nil {
			return err
		}
	}
	return nil
}

const manyTenants = 5000

// tenantFigures touches more tenants than a node has descriptors or memory to hold open.
func tenantFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	port, dir := freePort(), filepath.Join(l.dir, "many")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	node := fmt.Sprintf("ulimit -n 256; exec %s node --dir %s --http %s --admin-token %s --sync off --max-memory 64", l.fenec, dir, address(port), adminToken)
	if err := l.start("", port, "sh", "-c", node); err != nil {
		return err
	}
	base := "http://" + address(port)
	rows := `[` + strings.TrimSuffix(strings.Repeat(`{"title": "a row", "n": 1},`, 10), ",") + `]`
	for i := range manyTenants {
		name := fmt.Sprintf("tenant-%d", i)
		if err := createTenant(port, name); err != nil {
			return err
		}
		if _, err := send("POST", base+"/t/"+name+"/query", "", `{"query": "create collection c (title text, n int)"}`); err != nil {
			return err
		}
		if _, err := send("POST", base+"/t/"+name+"/c", "", rows); err != nil {
			return err
		}
	}
	answered := 0
	took, err := millis(func() error {
		for i := range manyTenants {
			out, err := send("GET", fmt.Sprintf("%s/t/tenant-%d/c?count", base, i), "", "")
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(out)) == `{"count":10}` {
				answered++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.fact("tenants of ten rows touched once each with 256 descriptors and --max-memory 64",
		fmt.Sprintf("%d answered in %.0f ms", answered, took), fmt.Sprintf("all %d", manyTenants), answered == manyTenants)
	return nil
}
