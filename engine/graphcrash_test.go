package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"github.com/rs/zerolog"
)

// graphWork is a sequence that saves the graph on close, loads it again, and copies it in a compact.
var graphWork = []func(db *DB) error{
	runs(`create collection c (v vector<2> @hnsw(l2, m=2, ef_construction=4))`),
	runs(`put c [{v: [1, 1]}, {v: [1, 2]}, {v: [3, 1]}, {v: [1, 1]}, {v: [-1, 1]}, {v: null}, {v: [0, 0]}]`),
	linked,
	closed,
	runs(`put c [{v: [2, 2]}, {v: [2, -2]}, {id: 1, v: [7, 7]}]`),
	runs(`del c where id = 2`),
	linked,
	runs(`put c {id: 3, v: [4, 4]}`),
	runs(`compact`),
	runs(`put c {v: [5, 5]}`),
	closed,
	runs(`compact`),
	runs(`del c where id > 5`),
	linked,
	closed,
}

func runs(text string) func(db *DB) error {
	return func(db *DB) error { _, err := exec(db, text); return err }
}

func linked(db *DB) error {
	graph(db)
	settle(db)
	return nil
}

// closed closes the database and continues with a reopened one.
func closed(db *DB) error { return db.Close() }

// runGraphWork runs the work until the first error and returns how many steps there were before, calling seen after each.
func runGraphWork(fs *crashfs.FS, seen func(db *DB)) (done int, err error) {
	db, err := Create(file, Options{FS: fs, Sync: always})
	if err != nil {
		return -1, err
	}
	defer func() { db.Close() }()
	for i, step := range graphWork {
		if err := step(db); err != nil {
			return i, err
		}
		if fail.KindOf(db.Writable()) == fail.Closed {
			again, err := Open(file, Options{FS: fs, Sync: always})
			if err != nil {
				return i, err
			}
			db = again
		}
		seen(db)
	}
	return len(graphWork), nil
}

// TestAGraphLosesNothingToACrash loses power at every operation of the work in turn. The file then opens in a state not before
// the last acknowledged one, and the index finds its documents.
func TestAGraphLosesNothingToACrash(t *testing.T) {
	states := []string{""}
	whole := crashfs.New(1)
	if _, err := runGraphWork(whole, func(db *DB) { states = append(states, dump(t, db)) }); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= whole.Ops(); k++ {
		for seed := range uint64(4) {
			fs := crashfs.New(seed)
			fs.PowerOffAt(k)
			done, _ := runGraphWork(fs, func(*DB) {})
			db, err := Open(file, Options{FS: fs.Crash(), Sync: always})
			if done < 1 && err != nil {
				continue // its creation was not acknowledged
			}
			if err != nil {
				t.Fatalf("operation %d, seed %d: after %d steps the file does not open: %v", k, seed, done, err)
			}
			if got := dump(t, db); !slices.Contains(states[max(done, 0):], got) {
				t.Fatalf("operation %d, seed %d: after %d steps there is\n%s", k, seed, done, got)
			}
			if db.tables["c"] != nil {
				checkNearest(t, db)
			}
			db.Close()
		}
	}
}

// TestAGraphThatCannotBeSavedLosesNoWrite fails the writes of a graph on close, in every way.
func TestAGraphThatCannotBeSavedLosesNoWrite(t *testing.T) {
	refuse := map[string]func(fs *crashfs.FS){
		"a write": func(fs *crashfs.FS) { fs.FailFrom(fs.Ops()+1, syscall.EIO) },
		"a sync":  func(fs *crashfs.FS) { fs.FailFrom(fs.Ops()+2, syscall.EIO) },
		"space":   func(fs *crashfs.FS) { fs.SetSpace(10) },
	}
	for name, refuse := range refuse {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.New(3)
			var log bytes.Buffer
			db := inMemory(t, Options{FS: fs, Sync: always, Log: zerolog.New(&log)})
			for _, step := range graphWork[:3] {
				if err := step(db); err != nil {
					t.Fatal(err)
				}
			}
			want := dump(t, db)
			refuse(fs)
			if err := db.Close(); err != nil {
				t.Errorf("all that was answered is on disk, and closing says %v", err)
			}
			if !bytes.Contains(log.Bytes(), []byte("could not be saved")) {
				t.Errorf("the log is not told: %s", &log)
			}
			db = reopen(t, Options{FS: fs.Crash()})
			if got := dump(t, db); got != want {
				t.Errorf("there is\n%s\nand was\n%s", got, want)
			}
			checkNearest(t, db)
		})
	}
}

// TestACloseThatCannotSyncReturnsTheError closes with an acknowledged write that is not on disk yet: saving a graph must not hide
// that it may be lost.
func TestACloseThatCannotSyncReturnsTheError(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	for _, step := range graphWork[:3] {
		if err := step(db); err != nil {
			t.Fatal(err)
		}
	}
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.Sync {
			return syscall.EIO
		}
		return nil
	})
	wantKind(t, db.Close(), fail.Storage)
}

// TestALargeGraphIsSavedDuringQueries saves a graph at run time, and loses power at each operation of that.
func TestALargeGraphIsSavedDuringQueries(t *testing.T) {
	vectors := randomVectors(rand.New(rand.NewPCG(5, 5)), 2048, 12)
	run := func(fs *crashfs.FS) (before int) {
		db, err := Create(file, Options{FS: fs, Sync: always})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		mustExec(t, db, `create collection c (v vector<12> @hnsw(l2, m=6, ef_construction=12))`)
		putVectors(t, db, 1, vectors)
		before = fs.Ops()
		graph(db)
		settle(db)
		db.opts.ReadOnly = true // closing writes nothing more
		return before
	}
	fs := crashfs.New(1)
	before := run(fs)
	if fs.Ops() == before {
		t.Fatal("the graph was not saved")
	}
	for k := before + 1; k <= fs.Ops()+1; k++ {
		cut := crashfs.New(uint64(k))
		cut.PowerOffAt(k)
		run(cut)
		after := cut.Crash()
		missing := lacking(t, after, file)
		db := reopen(t, Options{FS: after, Sync: always})
		if s := graph(db); s.Len() != len(vectors) {
			t.Fatalf("operation %d: the index has %d of %d vectors", k, s.Len(), len(vectors))
		} else if k > fs.Ops() && missing > len(vectors)/2 {
			t.Errorf("without a crash the graph that was saved is not used")
		}
		checkNearest(t, db)
		db.Close()
	}
}
