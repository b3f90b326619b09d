package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

func small(t *testing.T) *DB {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @unique, tag text)`)
	mustExec(t, db, `put c [{n: 1, tag: "a"}, {n: 2, tag: "b"}]`)
	mustExec(t, db, `del c where n = 1`)
	return db
}

func TestAnInstalledImageEqualsItsDatabase(t *testing.T) {
	db := small(t)
	img, seq := image(t, db)
	mustExec(t, db, `put c {n: 99}`) // not in the image
	there := Options{FS: crashfs.New(2)}
	got, err := install(file, bytes.NewReader(img), there)
	if err != nil {
		t.Fatal(err)
	}
	if got != seq {
		t.Errorf("the installed image is at change %d, the one sent at %d", got, seq)
	}
	copied := reopen(t, there)
	wantRows(t, copied, `get c`, `[{"id":2,"n":2,"tag":"b"}]`)
	_, ours := db.Position()
	if _, theirs := copied.Position(); ours != theirs {
		t.Errorf("the copy's history is %s, the original's %s", theirs, ours)
	}
	mustExec(t, copied, `put c {n: 3}`)
	wantRows(t, copied, `get c where n = 3 select id`, `[{"id":3}]`)
	if _, err := install(file, bytes.NewReader(img), there); !errors.Is(err, os.ErrExist) {
		t.Errorf("installing over a database answered %v", err)
	}
}

// TestAnInstalledDatabaseIsOpen writes to an installed database, compacts and reopens it: it uses the file that the image was
// received in.
func TestAnInstalledDatabaseIsOpen(t *testing.T) {
	img, _ := image(t, small(t))
	there := Options{FS: crashfs.New(2), Sync: always}
	db, err := InstallImage(file, bytes.NewReader(img), there)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `put c {n: 3}`)
	wantRows(t, db, `get c select id, n`, `[{"id":2,"n":2},{"id":3,"n":3}]`)
	mustExec(t, db, `compact`)
	mustExec(t, db, `put c {n: 4}`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wantRows(t, reopen(t, there), `get c select id, n`, `[{"id":2,"n":2},{"id":3,"n":3},{"id":4,"n":4}]`)
}

func TestAnImageCutOrChangedAnywhereIsRefused(t *testing.T) {
	img, _ := image(t, small(t))
	refused := func(name string, b []byte) {
		t.Helper()
		fs := crashfs.New(3)
		_, err := install(file, bytes.NewReader(b), Options{FS: fs})
		if fail.KindOf(err) != fail.Invalid {
			t.Fatalf("%s: %v", name, err)
		}
		if names, _ := fs.ReadDir("/"); len(names) != 0 {
			t.Fatalf("%s: it left %v behind", name, names)
		}
	}
	for cut := range img {
		refused(fmt.Sprintf("cut at %d", cut), img[:cut])
	}
	for at := range img {
		b := slices.Clone(img)
		b[at] ^= 0x10
		refused(fmt.Sprintf("changed at %d", at), b)
	}
	refused("with a byte more", append(slices.Clone(img), 0))
}

func TestAnImageIsInstalledWholeOrNotAtAll(t *testing.T) {
	img, _ := image(t, small(t))
	whole := crashfs.New(1)
	if _, err := install(file, bytes.NewReader(img), Options{FS: whole}); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= whole.Ops(); k++ {
		fs := crashfs.New(uint64(k))
		fs.PowerOffAt(k)
		_, installErr := install(file, bytes.NewReader(img), Options{FS: fs})
		after := fs.Crash()
		db, err := Open(file, Options{FS: after})
		if err != nil {
			if installErr == nil || !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("power off at %d (%v): %v", k, installErr, err)
			}
			continue
		}
		wantRows(t, db, `get c`, `[{"id":2,"n":2,"tag":"b"}]`)
		db.Close()
	}
}

// TestAnImageThatCannotBeSyncedIsNotInstalled fails each sync of a large image in turn, including the last.
func TestAnImageThatCannotBeSyncedIsNotInstalled(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (body text)`)
	body := textParam(strings.Repeat("x", 1<<20))
	for range 3 * syncEvery >> 20 {
		mustExec(t, db, `put c {body: $1}`, body)
	}
	img, _ := image(t, db)
	for failing := 1; ; failing++ {
		fs, syncs := crashfs.New(1), 0
		var mu sync.Mutex
		fs.Hook(func(op crashfs.Op, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == crashfs.Sync {
				if syncs++; syncs == failing {
					return syscall.EIO
				}
			}
			return nil
		})
		_, err := install(file, bytes.NewReader(img), Options{FS: fs})
		if err == nil {
			if failing < 3 || syncs >= failing {
				t.Fatalf("sync %d of %d failed, and the image is installed", failing, syncs)
			}
			return
		}
		wantKind(t, err, fail.Storage)
		if names, _ := fs.ReadDir("/"); len(names) != 0 {
			t.Fatalf("it left %v behind", names)
		}
		if n := fs.OpenFiles(); n != 0 {
			t.Fatalf("it left %d files open", n)
		}
	}
}

func FuzzInstallImage(f *testing.F) {
	db, err := Create(file, Options{FS: crashfs.New(1)})
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	mustExec(f, db, `create collection c (n int @unique, tag text, j json)`)
	mustExec(f, db, `put c [{n: 1, tag: "a", j: {k: [1, {x: null}]}}, {n: 2}]`)
	img, _ := image(f, db)
	f.Add(img)
	f.Add(img[:len(img)-1])
	f.Add([]byte(imageMark))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := crashfs.New(1)
		if _, err := install(file, bytes.NewReader(b), Options{FS: fs}); err != nil {
			return
		}
		db, err := Open(file, Options{FS: fs})
		if err != nil {
			t.Fatalf("an image that was installed does not open: %v", err)
		}
		defer db.Close()
		dump(t, db)
	})
}

// FuzzOperations reads hostile records with valid checksums, each followed by a fork.
func FuzzOperations(f *testing.F) {
	began, next := historyOf(1, 2, 3), historyOf(2, 2, 4)
	f.Add(uint8(wal.Image), appendHead(nil, head{Seq: 1, History: began}), fork{next, 1}.record()[wal.HeaderSize:])
	f.Add(uint8(wal.Image), appendNumbers(nil, opDelete, 1, 7), []byte{})
	f.Add(uint8(wal.Block), []byte{opPut, 1, 0xff, 0xff, 0xff, 0xff}, []byte{})
	f.Fuzz(func(t *testing.T, kind uint8, b, forked []byte) {
		c := checker{db: newDB(file, Options{}.withDefaults())}
		c.visit(0, wal.Kind(kind), b, nil)
		left := c.db.history
		c.visit(int64(len(b)), wal.Fork, forked, nil)
		if h := c.db.history; h != left && (h.Term <= left.Term || h.lineage() != left.lineage()) {
			t.Errorf("the history %s forked into %s", left, h)
		}
		for _, name := range c.db.names {
			t := c.db.tables[name]
			t.Ascend(1, func(doc.Document) bool { return true })
		}
	})
}

// A copy that follows takes an image in place of its file, which must survive until the image is there whole.
func TestAnImageReplacesAFileWholeOrNotAtAll(t *testing.T) {
	source := inMemory(t, Options{})
	mustExec(t, source, `create collection c (n int)`)
	mustExec(t, source, `put c {n: 2}`)
	b, _ := image(t, source)
	for k := 0; ; k++ {
		fs := crashfs.New(uint64(k))
		old, err := Create(file, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, old, `create collection c (n int)`)
		mustExec(t, old, `put c {n: 1}`)
		received, err := ReceiveImage(file, bytes.NewReader(b), Options{FS: fs, Follower: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(mustExec(t, old, `get c`).Body); got != `[{"id":1,"n":1}]` {
			t.Fatalf("beside the image the old copy answers %s", got)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		before := fs.Ops()
		fs.FailAt(before+k, syscall.EIO)
		db, err := received.Install()
		failed := err != nil
		done := fs.Ops() <= before+k
		fs.Heal()
		if !failed {
			db.Close()
		}
		for what, fs := range map[string]*crashfs.FS{"the process": fs, "the power": fs.Crash()} {
			db, err := Open(file, Options{FS: fs, Follower: true})
			if err != nil {
				t.Fatalf("operation %d failed (%v) and then %s: no file can be opened: %v", k, failed, what, err)
			}
			got := string(mustExec(t, db, `get c`).Body)
			db.Close()
			if got != `[{"id":1,"n":2}]` && (!failed || got != `[{"id":1,"n":1}]`) {
				t.Errorf("operation %d failed (%v) and then %s: the file holds %s", k, failed, what, got)
			}
		}
		if done {
			return
		}
	}
}
