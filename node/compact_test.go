package node

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
	"fenec/node/tenants"

	"github.com/rs/zerolog"
)

// bigText is a document's worth of text, 64 KiB.
var bigText = strings.Repeat("x", 64<<10)

// exec runs a statement in a tenant without HTTP. A node over a file has one tenant and ignores the name.
func (r *running) exec(tenant, text string, params ...doc.Value) {
	r.t.Helper()
	one := r.single
	if one == nil {
		var err error
		if one, err = r.tenants.Acquire(tenant); err != nil {
			r.t.Fatal(err)
		}
		defer r.tenants.Release(one)
	}
	if _, err := one.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text, Params: params}, nil); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
}

// fillBig creates a tenant with 320 documents of 64 KiB and, on a node over a directory, closes it: the hooks of crashfs
// know a new file by the name of its side file until it is reopened.
func (r *running) fillBig(tenant string) {
	r.t.Helper()
	if r.single == nil {
		if _, err := r.tenants.Create(tenant, tenants.Condition{}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.exec(tenant, "create collection c (s text)")
	for range 320 {
		r.exec(tenant, "put c {s: $1}", doc.TextValue([]byte(bigText)))
	}
	if r.single == nil && !r.tenants.CloseIfIdle(r.tenants.Find([]byte(tenant))) {
		r.t.Fatal("a request is in the tenant")
	}
}

// kill deletes all but ten of the documents of fillBig, after which a compaction is due.
func (r *running) kill(tenant string) {
	r.t.Helper()
	r.exec(tenant, "del c where id > 10")
}

const (
	killedSize    = 20 << 20 // a file is larger before its compaction
	compactedSize = 1 << 20  // and smaller after it
)

// size returns the length of a tenant's file.
func (r *running) size(tenant string) int64 {
	r.t.Helper()
	path := r.file(tenant + ".fenec")
	if r.single != nil {
		path = r.config.File
	}
	info, err := r.config.FS.Stat(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return info.Size
}

func (r *running) wantCompacted(tenants ...string) {
	r.t.Helper()
	for _, one := range tenants {
		if size := r.size(one); size > compactedSize {
			r.t.Errorf("the file of %q was not compacted: got %d bytes", one, size)
		}
	}
}

func (r *running) wantNotCompacted(tenants ...string) {
	r.t.Helper()
	for _, one := range tenants {
		if size := r.size(one); size < killedSize {
			r.t.Errorf("the file of %q was compacted: got %d bytes", one, size)
		}
	}
}

// wantMetrics checks lines of the metrics, each a name and a value.
func (r *running) wantMetrics(want ...string) {
	r.t.Helper()
	text := "\n" + r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken).body
	for _, line := range want {
		if !strings.Contains(text, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, " ")
			_, got, _ := strings.Cut(text, "\n"+name+" ")
			got, _, _ = strings.Cut(got, "\n")
			r.t.Errorf("%s: got %s, want %s", name, got, line)
		}
	}
}

// heldWrites blocks the writes of every side file until release is closed. writes counts them by name.
type heldWrites struct {
	release chan struct{}
	writes  map[string]int
}

func holdWrites(fs *crashfs.FS) *heldWrites {
	h := &heldWrites{release: make(chan struct{}), writes: map[string]int{}}
	turn := make(chan struct{}, 1) // a lock whose wait is durably blocking for synctest
	fs.Hook(func(op crashfs.Op, name string) error {
		if op != crashfs.Write || !strings.HasSuffix(name, ".fenec"+wal.SideSuffix) {
			return nil
		}
		turn <- struct{}{}
		h.writes[name]++
		<-turn
		<-h.release
		return nil
	})
	return h
}

func compacting(at float64) Config { return Config{FS: crashfs.New(1), CompactAt: at} }

func TestATenantIsCompactedWhenItBecomesDue(t *testing.T) {
	var log shared
	c := compacting(0.5)
	c.Log = zerolog.New(&log)
	inBubble(t, c, func(r *running) {
		r.fillBig("x")
		r.exec("x", "get c count")
		synctest.Wait()
		r.wantNotCompacted("x")
		r.tenants.Sweep()
		before := r.budget.tenants.Files()
		if before != r.size("x") || r.budget.tenants.Dead() > 1<<16 {
			t.Errorf("got %d dead of %d bytes, want almost none of the %d of the file", r.budget.tenants.Dead(), before, r.size("x"))
		}
		r.kill("x")
		synctest.Wait()
		r.wantCompacted("x")
		r.wantMetrics(`fenec_compactions_total{result="done"} 1`, `fenec_compactions_total{result="failed"} 0`,
			`fenec_compactions_running 0`, `fenec_compactions_waiting 0`, fmt.Sprintf("fenec_file_bytes %d", r.size("x")))
		if taken := r.counter("fenec_compacted_bytes_total").Get(); taken < 19<<20 || taken > uint64(before) {
			t.Errorf("compaction of a file of %d bytes: got %d bytes removed, want at least 19 MiB", before, taken)
		}
		if dead := r.budget.tenants.Dead(); dead > 100 {
			t.Errorf("got %d dead bytes after a compaction, want at most 100", dead)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `{"level":"info","tenant":"x","before":2`) ||
			!strings.Contains(got, fmt.Sprintf(`,"after":%d,"ms":`, r.size("x"))) {
			t.Errorf("got log\n%s", got)
		}
	})
}

func TestATenantThatIsDueIsCompactedWhenItIsOpened(t *testing.T) {
	for name, file := range map[string]string{"of a directory": "", "one file": "/one.fenec"} {
		t.Run(name, func(t *testing.T) {
			off := compacting(0)
			off.File = file
			inBubble(t, off, func(r *running) {
				r.fillBig("x")
				r.kill("x")
				synctest.Wait()
				r.wantNotCompacted("x")
			})
			on := off
			on.CompactAt = 0.5
			inBubble(t, on, func(r *running) {
				if file == "" {
					synctest.Wait()
					r.wantNotCompacted("x") // no request has opened it
					one, err := r.tenants.Acquire("x")
					if err != nil {
						t.Fatal(err)
					}
					r.tenants.Release(one)
				}
				synctest.Wait()
				r.wantCompacted("x")
				r.wantMetrics(`fenec_compactions_total{result="done"} 1`)
			})
		})
	}
}

func TestEachWorkerCompactsOneFileAtATime(t *testing.T) {
	for workers := 1; workers <= 2; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			fs := crashfs.New(1)
			inBubble(t, Config{FS: fs, CompactAt: 0.5, CompactWorkers: workers}, func(r *running) {
				names := []string{"a", "b", "c"}
				for _, name := range names {
					r.fillBig(name)
				}
				held := holdWrites(fs)
				for _, name := range names {
					r.kill(name)
				}
				synctest.Wait()
				if len(held.writes) != workers {
					t.Errorf("got %d files being compacted, want %d", len(held.writes), workers)
				}
				r.wantMetrics(fmt.Sprintf("fenec_compactions_running %d", workers), fmt.Sprintf("fenec_compactions_waiting %d", 3-workers))
				if got := r.admin("GET", "stats", "").body; !strings.Contains(got, fmt.Sprintf(`"compacting":%d}`, workers)) ||
					strings.Contains(got, `"dead_bytes":0`) {
					t.Errorf("got stats %s", got)
				}
				close(held.release)
				synctest.Wait()
				r.wantCompacted(names...)
				r.wantMetrics(`fenec_compactions_total{result="done"} 3`, "fenec_compactions_running 0", "fenec_compactions_waiting 0")
			})
		})
	}
}

func TestAFileIsNotCompactedWithoutDiskSpaceForTheCopy(t *testing.T) {
	var log shared
	fs := crashfs.New(1)
	inBubble(t, Config{FS: fs}, func(r *running) {
		r.fillBig("x")
		r.kill("x")
	})
	inBubble(t, Config{FS: fs, CompactAt: 0.5, Log: zerolog.New(&log)}, func(r *running) {
		live := int64(10 * len(bigText))
		fs.SetSpace(live + 1<<20) // less than a copy needs
		one, err := r.tenants.Acquire("x")
		if err != nil {
			t.Fatal(err)
		}
		defer r.tenants.Release(one)
		for tries, at := 1, time.Duration(0); tries <= 9; tries++ { // at 0, 1, 3, 7, 15, 31, 63, 123 and 183 minutes
			synctest.Wait()
			r.wantMetrics(fmt.Sprintf(`fenec_compactions_total{result="no_room"} %d`, tries), "fenec_compactions_waiting 1")
			next := min(time.Minute<<(tries-1), time.Hour)
			time.Sleep(next - time.Second)
			synctest.Wait()
			r.wantMetrics(fmt.Sprintf(`fenec_compactions_total{result="no_room"} %d`, tries))
			if at += next; tries == 9 {
				fs.SetSpace(live + live/16 + 2<<20)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		r.wantCompacted("x")
		r.wantMetrics(`fenec_compactions_total{result="done"} 1`, `fenec_compactions_total{result="no_room"} 9`, "fenec_compactions_waiting 0")
		if got := log.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "has no room") != 1 {
			t.Errorf("got log\n%s", got)
		}
	})
}

func TestConcurrentCompactionsShareTheDiskSpace(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, Config{FS: fs, CompactAt: 0.5, CompactWorkers: 2}, func(r *running) {
		r.fillBig("a")
		r.fillBig("b")
		fs.SetSpace(3 << 20) // enough for one copy, not for two
		held := holdWrites(fs)
		r.kill("a")
		r.kill("b")
		synctest.Wait()
		r.wantMetrics("fenec_compactions_running 1", `fenec_compactions_total{result="no_room"} 1`)
		close(held.release)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantCompacted("a", "b")
	})
}

func TestAFailedCompactionIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		fails  error
		result string
		logged string
	}{
		"a failing disk":                 {syscall.EIO, "failed", "compacting a file failed"},
		"a disk that fills up meanwhile": {syscall.ENOSPC, "no_room", "has no room"},
	} {
		t.Run(name, func(t *testing.T) {
			var log shared
			fs := crashfs.New(1)
			inBubble(t, Config{FS: fs, CompactAt: 0.5, Log: zerolog.New(&log)}, func(r *running) {
				r.fillBig("x")
				fs.Hook(func(op crashfs.Op, name string) error {
					if op == crashfs.Write && strings.HasSuffix(name, wal.SideSuffix) {
						return c.fails
					}
					return nil
				})
				r.kill("x")
				time.Sleep(2 * time.Minute) // attempts are at 0, 1 and 3 minutes
				synctest.Wait()
				r.wantMetrics(fmt.Sprintf(`fenec_compactions_total{result=%q} 2`, c.result), "fenec_compactions_waiting 1")
				r.wantNotCompacted("x")
				fs.Hook(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				r.wantCompacted("x")
				if got := log.String(); strings.Count(got, "\n") != 2 || strings.Count(got, c.logged) != 1 {
					t.Errorf("got log\n%s", got)
				}
				r.exec("x", "put c {s: 'still written to'}")
			})
		})
	}
}

func TestNoFileIsCompacted(t *testing.T) {
	for _, c := range []struct {
		name string
		Config
	}{
		{"with --compact-at 0", Config{}},
		{"on a read-only node", Config{CompactAt: 0.5, ReadOnly: true}},
		{"with too few dead bytes", Config{CompactAt: 0.99}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.FS = crashfs.New(1)
			inBubble(t, Config{FS: c.FS}, func(r *running) {
				r.fillBig("x")
				r.kill("x")
			})
			inBubble(t, c.Config, func(r *running) {
				r.exec("x", "get c count")
				if !c.ReadOnly {
					r.exec("x", "put c {s: 'one more'}")
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				r.wantNotCompacted("x")
				r.wantMetrics("fenec_compactions_waiting 0", `fenec_compactions_total{result="done"} 0`)
			})
		})
	}
}

// killMost deletes fewer documents than kill, so that a compaction takes several writes.
func (r *running) killMost(tenant string) {
	r.t.Helper()
	r.exec(tenant, "del c where id > 40")
}

// holdCompaction creates tenant x and blocks its compaction at the first write.
func (r *running) holdCompaction(fs *crashfs.FS) *heldWrites {
	r.t.Helper()
	r.fillBig("x")
	held := holdWrites(fs)
	r.killMost("x")
	synctest.Wait()
	return held
}

// TestACompactionStopsOnFreezeDeleteAndShutdown blocks a compaction at a write and ends it.
func TestACompactionStopsOnFreezeDeleteAndShutdown(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(r *running) error
		waits bool // for the write in progress
	}{
		{"frozen", func(r *running) error { _, err := r.tenants.Freeze("x", "", tenants.Condition{}); return err }, false},
		{"deleted", func(r *running) error { return r.tenants.Delete("x", tenants.Condition{}) }, true},
		{"deleted at a change", func(r *running) error { return r.tenants.Delete("x", tenants.Condition{Seq: 601, Named: true}) }, true},
		{"stopped", func(r *running) error { return r.Shutdown(context.Background()) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := crashfs.New(1)
			inBubble(t, Config{FS: fs, CompactAt: 0.5}, func(r *running) {
				held := r.holdCompaction(fs)
				stopped := r.counter(`fenec_compactions_total{result="stopped"}`)
				under, waiting := r.gauge("fenec_compactions_running"), r.gauge("fenec_compactions_waiting")
				ended := make(chan error, 1)
				go func() { ended <- c.end(r) }()
				synctest.Wait()
				if (len(ended) == 0) != c.waits {
					t.Errorf("waits for the compaction: got %v, want %v", len(ended) == 0, c.waits)
				}
				close(held.release)
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := stopped.Get(); got != 1 {
					t.Errorf("got %d stopped compactions, want 1", got)
				}
				if under.Get()+waiting.Get() > 0 {
					t.Errorf("got %v running and %v waiting compactions, want none", under.Get(), waiting.Get())
				}
				if writes := held.writes["/data/x.fenec"+wal.SideSuffix]; writes > 2 {
					t.Errorf("got %d more writes, want at most 1", writes-1)
				}
				names, err := fs.ReadDir("/data")
				if text := strings.Join(names, " "); err != nil || strings.Contains(text, ".fenec"+wal.SideSuffix) {
					t.Errorf("got the files %s, %v, want no side file", text, err)
				}
			})
		})
	}
}

func TestAThawedTenantIsCompacted(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, Config{FS: fs, CompactAt: 0.5}, func(r *running) {
		held := r.holdCompaction(fs)
		freeze := func() {
			if _, err := r.tenants.Freeze("x", "", tenants.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		thaw := func() {
			if _, err := r.tenants.Thaw("x", "", tenants.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		freeze() // thawed before the compaction reaches its next write
		thaw()
		freeze()
		close(held.release)
		synctest.Wait()
		r.wantNotCompacted("x")
		r.tenants.CloseIfIdle(r.tenants.Find([]byte("x")))
		r.exec("x", "get c count") // opened frozen
		synctest.Wait()
		r.wantNotCompacted("x")
		thaw()
		synctest.Wait()
		if size := r.size("x"); size > killedSize/4 {
			t.Errorf("got a file of %d bytes, want at most %d", size, killedSize/4)
		}
		r.wantMetrics(`fenec_compactions_total{result="done"} 1`, `fenec_compactions_total{result="stopped"} 1`)
	})
}

// TestBytesThatDieDuringACompactionAreCompactedNext deletes documents that a compaction has already copied.
func TestBytesThatDieDuringACompactionAreCompactedNext(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, Config{FS: fs, CompactAt: 0.5}, func(r *running) {
		r.fillBig("x")
		r.exec("x", "create collection d (s text)")
		for range 290 {
			r.exec("x", "put d {s: $1}", doc.TextValue([]byte(bigText)))
		}
		release := make(chan struct{})
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Sync && strings.HasSuffix(name, ".fenec"+wal.SideSuffix) {
				<-release
			}
			return nil
		})
		r.exec("x", "drop collection c")
		synctest.Wait()
		r.exec("x", "del d where id > 10")
		synctest.Wait()
		r.wantNotCompacted("x")
		close(release)
		synctest.Wait()
		r.wantCompacted("x")
		r.wantMetrics(`fenec_compactions_total{result="done"} 2`)
	})
}

// TestATenantIsNotClosedAsIdleWhileItIsCompacted has two idle tenants and one worker. A tenant that waits for the worker
// or for disk space is closed, and is compacted after it is opened again.
func TestATenantIsNotClosedAsIdleWhileItIsCompacted(t *testing.T) {
	fs := crashfs.New(1)
	inBubble(t, Config{FS: fs, CompactAt: 0.5, IdleClose: time.Minute}, func(r *running) {
		for _, name := range []string{"a", "b"} {
			r.fillBig(name)
			r.exec(name, "get c count")
		}
		held := holdWrites(fs)
		r.kill("a")
		r.kill("b")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !r.isOpen("a") || r.isOpen("b") {
			t.Errorf("during the compaction of a: got a open %v, b open %v, want only a", r.isOpen("a"), r.isOpen("b"))
		}
		r.wantMetrics("fenec_compactions_running 1", "fenec_compactions_waiting 0")
		close(held.release)
		synctest.Wait()
		r.wantCompacted("a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.isOpen("a") || r.isOpen("b") {
			t.Errorf("after the compaction of a: got a open %v, b open %v, want neither", r.isOpen("a"), r.isOpen("b"))
		}
		r.wantNotCompacted("b")
		fs.SetSpace(100 << 10)
		r.exec("b", "get c count")
		synctest.Wait()
		r.wantMetrics("fenec_compactions_waiting 1", `fenec_compactions_total{result="no_room"} 1`)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if r.isOpen("b") {
			t.Error("got b open while it waits for disk space, want it closed")
		}
		r.wantMetrics("fenec_compactions_waiting 0", "fenec_dead_bytes 0", "fenec_file_bytes 0")
		fs.SetSpace(-1)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		r.wantNotCompacted("b")
		r.exec("b", "get c count")
		synctest.Wait()
		r.wantCompacted("b")
	})
}

func TestTheListOfOpenTenantsHasTheirDeadBytes(t *testing.T) {
	inBubble(t, compacting(0), func(r *running) {
		r.fillBig("x")
		r.kill("x")
		got := r.wantAdmin(200, "GET", "open", "").body
		s := r.tenants.Find([]byte("x")).DB.Stats()
		if want := fmt.Sprintf(`"file_bytes":%d,"dead_bytes":%d,`, r.size("x"), s.DeadBytes); !strings.Contains(got, want) || s.DeadBytes < 19<<20 {
			t.Errorf("got %s, want %s in it", got, want)
		}
		if got := r.admin("GET", "stats", "").body; !strings.Contains(got, fmt.Sprintf(`"dead_bytes":%d,"compacting":0}`, s.DeadBytes)) {
			t.Errorf("got stats %s", got)
		}
	})
}
