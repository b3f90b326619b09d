package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// TestCloseWaitsForACompact blocks a compact at its first write. Once Close has returned the file may be opened again, so the
// compact must have ended: it uses the side file.
func TestCloseWaitsForACompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, `create collection c (n int)`)
		release, compacted, closed := make(chan bool), make(chan error, 1), make(chan error, 1)
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Write && strings.HasSuffix(name, wal.SideSuffix) {
				<-release
			}
			return nil
		})
		go func() { compacted <- db.Compact(context.Background()) }()
		synctest.Wait()
		go func() { closed <- db.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close returned while the file was being rewritten")
		}
		close(release)
		wantKind(t, <-compacted, fail.Closed)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if names, _ := fs.ReadDir("/"); len(names) != 1 {
			t.Errorf("the directory holds %v", names)
		}
	})
}

func TestACompactPastTheTimeoutReturnsATimeout(t *testing.T) {
	now := time.Unix(0, 0)
	db := inMemory(t, Options{StatementTimeout: time.Minute, Clock: func() time.Time { now = now.Add(time.Second); return now }})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, "put c ["+strings.TrimSuffix(strings.Repeat(`{n: 1}, `, 5000), ", ")+"]")
	db.opts.StatementTimeout = time.Nanosecond
	_, err := exec(db, `compact`)
	wantKind(t, err, fail.Timeout)
}

// TestAnInstallThatFailsLeavesNothing fails every operation of an install in turn, and installs again.
func TestAnInstallThatFailsLeavesNothing(t *testing.T) {
	img, _ := image(t, small(t))
	whole := crashfs.New(1)
	if _, err := install(file, bytes.NewReader(img), Options{FS: whole}); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= whole.Ops(); k++ {
		fs := crashfs.New(1)
		fs.FailAt(k, syscall.EIO)
		if _, err := install(file, bytes.NewReader(img), Options{FS: fs}); err == nil {
			continue // the removal of a file that does not exist failed
		}
		if _, err := fs.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("operation %d failed, and there is a file: %v", k, err)
		}
		if _, err := install(file, bytes.NewReader(img), Options{FS: fs}); err != nil {
			t.Errorf("operation %d failed, and the image cannot be installed after it: %v", k, err)
		}
	}
}

// TestAnImageCanBeTakenAfterAFailure fails a write. What was acknowledged before can still be read.
func TestAnImageCanBeTakenAfterAFailure(t *testing.T) {
	for name, op := range map[string]crashfs.Op{"a write": crashfs.Write, "a sync": crashfs.Sync} {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs, Sync: always})
		mustExec(t, db, `create collection c (n int)`)
		mustExec(t, db, `put c {n: 1}`)
		fs.Hook(func(o crashfs.Op, _ string) error {
			if o == op {
				return syscall.EIO
			}
			return nil
		})
		_, err := exec(db, `put c {n: 2}`)
		wantKind(t, err, fail.Storage)
		r, _, seq, err := db.OpenImage()
		if err != nil || seq != 2 {
			t.Errorf("%s failed, and an image is of change %d, want 2: %v", name, seq, err)
			continue
		}
		there := Options{FS: crashfs.New(2)}
		if _, err = install(file, r, there); err != nil {
			t.Fatal(err)
		}
		r.Close()
		wantRows(t, reopen(t, there), `get c`, `[{"id":1,"n":1}]`)
	}
}

// TestAnUnsyncedRenameOfARewriteStopsWrites fails the sync of the directory after a compact's rename.
func TestAnUnsyncedRenameOfARewriteStopsWrites(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs, Sync: always})
	mustExec(t, db, `create collection c (n int)`)
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.SyncDir {
			return syscall.EIO
		}
		return nil
	})
	_, err := exec(db, `compact`)
	wantKind(t, err, fail.Storage)
	if db.Stats().Failed == nil {
		t.Error("the database does not say that its storage has failed")
	}
	fs.Hook(nil)
	_, err = exec(db, `put c {n: 1}`)
	wantKind(t, err, fail.Storage)
	wantRows(t, db, `get c`, `[]`)
}

// TestACollectionDroppedDuringAnIndexBuild drops the collection, and compacts, after an index build has begun to watch the
// collection and before it reads it.
func TestACollectionDroppedDuringAnIndexBuild(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, "put c ["+strings.TrimSuffix(strings.Repeat(`{n: 1}, `, 300), ", ")+"]")
	s, err := db.statements.parse(`create index on c (n) @hash`)
	if err != nil {
		t.Fatal(err)
	}
	b := db.beginBuild(s)
	defer db.endBuild(b)
	mustExec(t, db, `drop collection c`)
	mustExec(t, db, `compact`)
	if db.snapshotFor(b) {
		t.Error("an index is built from a collection that is gone")
	}
	if err := db.build(&query.Env{Ctx: context.Background()}, b); err != nil {
		t.Error(err)
	}
}

func TestAnIndexThatWillBeRefusedIsNotBuilt(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (j json, n int @hash)`)
	for _, text := range []string{
		`create index on c (j) @sorted`, `create index on c (n) @sorted`, `create index if not exists on c (n) @hash`,
		`create index on nothing (n) @hash`, `create index on c (x) @hash`, `get c`,
	} {
		s, err := db.statements.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if db.beginBuild(s) != nil {
			t.Errorf("%s: an index is built beside the database", text)
		}
	}
}

// TestACompactReadsNoBlockStagedAfterTheLogFailed stages a block after the log has failed and before the database is
// notified: such a record has no header.
func TestACompactReadsNoBlockStagedAfterTheLogFailed(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	rw, err := db.log.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Abort()
	c := &compaction{db: db, rewrite: rw}
	c.emit = func(record []byte) error { return rw.Append(wal.Image, record) }
	h, tables := c.snapshot()
	if err := c.write(context.Background(), h, tables); err != nil {
		t.Fatal(err)
	}
	fs.Hook(func(crashfs.Op, string) error { return syscall.EIO })
	_, err = exec(db, `put c {n: 1}`)
	wantKind(t, err, fail.Storage)
	fs.Hook(nil)
	db.failed = nil // as before the database was notified
	_, err = exec(db, `put c {n: 2}`)
	wantKind(t, err, fail.Storage)
	wantKind(t, c.follow(), fail.Storage)
}
