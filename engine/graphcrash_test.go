package engine

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/cespare/xxhash/v2"
	"github.com/rs/zerolog"
)

// graphWork is a run that saves the graph as it closes, finds it again, and takes it along as it compacts.
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

// closed closes the database; the run goes on with one opened again.
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

// TestAGraphLosesNothingToACrash takes the power at every operation of a run: what opens is a state not before the last
// one answered, and the index finds what it holds.
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
				continue // it was never said to exist
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

// TestAGraphThatCannotBeSavedIsNoLoss fails what a close writes of a graph, in every way.
func TestAGraphThatCannotBeSavedIsNoLoss(t *testing.T) {
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

// TestACloseThatCannotSyncSaysSo has an answered write that is not on disk yet: saving a graph must not hide its loss.
func TestACloseThatCannotSyncSaysSo(t *testing.T) {
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

// TestALargeGraphIsSavedDuringQueries has a graph saved at run time, and takes the power at each of the operations
// that takes.
func TestALargeGraphIsSavedDuringQueries(t *testing.T) {
	vectors := randomVectors(rand.New(rand.NewPCG(5, 5)), 2*savedBeside, 12)
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
		db := reopen(t, Options{FS: cut.Crash(), Sync: always})
		if s := graph(db); s.Len() != len(vectors) {
			t.Fatalf("operation %d: the index has %d of %d vectors", k, s.Len(), len(vectors))
		} else if k > fs.Ops() && s.moved.Load() > 0 {
			t.Errorf("without a crash the graph that was saved is not used")
		}
		checkNearest(t, db)
		db.Close()
	}
}

// keptKinds are options of indexes whose saved graphs are of either version.
var keptKinds = []string{"", ", quant=bit"}

// keptIn is a database of a few vectors that was closed and opened again, the index not looked at yet.
func keptIn(tb testing.TB, kind string, vectors int) *DB {
	tb.Helper()
	fs := crashfs.New(1)
	db := inMemory(tb, Options{FS: fs})
	mustExec(tb, db, `create collection c (v vector<2> @hnsw(l2, m=2, ef_construction=4`+kind+`))`)
	putVectors(tb, db, 1, randomVectors(rand.New(rand.NewPCG(2, 2)), vectors, 2))
	if err := linked(db); err != nil {
		tb.Fatal(err)
	}
	db.Close()
	return reopen(tb, Options{FS: fs})
}

func TestAGraphChangedInAnyByteIsMadeAgain(t *testing.T) {
	for _, kind := range keptKinds {
		db := keptIn(t, kind, 40)
		x := db.tables["c"].index("v")
		kept := x.kept.whole.Load()
		if kept == nil {
			t.Fatal("the file has no graph")
		}
		whole := kept.bytes()
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 0x55
			x.kept.whole.Store(splitGraph(kept.name, b))
			x.state.Store(nil)
			if s := graph(db); s.moved.Load() == 0 { // no vector was added again
				t.Fatalf("a graph whose byte %d was changed is used", i)
			}
			checkNearest(t, db)
			settle(db)
		}
	}
}

// TestAGraphOfThePreviousVersionIsRebuilt has a file hold a graph by bits as it was saved before there was a centre.
func TestAGraphOfThePreviousVersionIsRebuilt(t *testing.T) {
	db := keptIn(t, ", quant=bit", 40)
	x := db.tables["c"].index("v")
	kept := x.kept.whole.Load()
	before := bytes.Clone(kept.bytes())
	before[4] = 1 // after the magic
	head := 5
	for range 7 {
		_, n := binary.Uvarint(before[head:])
		head += n
	}
	_, n := binary.Uvarint(before[head:])
	before = slices.Delete(before, head, head+n+1+2*4) // the centre
	end := len(before) - 8
	binary.LittleEndian.PutUint64(before[end:], xxhash.Sum64(before[:end]))
	x.kept.whole.Store(splitGraph(kept.name, before))
	if s := graph(db); s.moved.Load() != 40 {
		t.Fatalf("%d of 40 vectors were put in anew", s.moved.Load())
	}
	checkNearest(t, db)
	settle(db)
	if got := graph(db).AppendBinary(nil)[4]; got != 2 {
		t.Errorf("the graph that was rebuilt is saved as version %d, want 2", got)
	}
}

// FuzzGraphRecord has a file hold a derived record of any content: it opens, says what it did, and searches find all. The
// content is sealed too, so that what is wrong with it is not told from its checksum.
func FuzzGraphRecord(f *testing.F) {
	var dbs []*DB
	for _, kind := range keptKinds {
		db := keptIn(f, kind, 12)
		kept := db.tables["c"].index("v").kept.whole.Load()
		if err := kept.records(func(record []byte) error {
			f.Add(record[wal.HeaderSize:], false)
			f.Add(record[wal.HeaderSize:], true)
			return nil
		}); err != nil {
			f.Fatal(err)
		}
		dbs = append(dbs, db)
	}
	f.Add([]byte{}, false)
	f.Add([]byte{graphRecord}, true)
	f.Fuzz(func(t *testing.T, payload []byte, sealed bool) {
		if n := len(payload) - 8; sealed && n > 0 {
			_, _, graph, err := decodeGraphPart(payload)
			if at := len(payload) - len(graph); err == nil && n > at {
				payload = bytes.Clone(payload)
				binary.LittleEndian.PutUint64(payload[n:], xxhash.Sum64(payload[at:n]))
			}
		}
		for _, db := range dbs {
			settle(db)
			db.tables["c"].index("v").state.Store(nil)
			if err := db.keep(payload); err != nil && fail.KindOf(err) != fail.Damaged {
				t.Fatal(err)
			}
			graph(db)
			checkNearest(t, db)
			settle(db)
			checkNearest(t, db)
		}
	})
}

// TestAPartOfAGraphIsNoGraph has the parts of graphs come in as an interrupted save leaves them.
func TestAPartOfAGraphIsNoGraph(t *testing.T) {
	name := func(seq uint64) graphName { return graphName{seq: seq, parts: 3} }
	for _, c := range []struct {
		parts string // of graph a and of the later graph b
		want  uint64 // the graph that is there, 0 for none
	}{
		{"a0 a1", 0},
		{"a0 a1 a2", 1},
		{"a1 a2", 0},
		{"a0 a2 a1", 0},
		{"a0 a1 a2 b0 b1", 1},
		{"a0 a1 b0 b1 b2", 2},
		{"a0 b1 b2", 0},
		{"a0 a1 b2", 0},
		{"a0 a1 a2 b0 b1 b2", 2},
	} {
		var k keptGraphs
		for s := range bytes.SplitSeq([]byte(c.parts), []byte(" ")) {
			k.take(name(uint64(s[0]-'a'+1)), int(s[1]-'0'), s)
		}
		got := uint64(0)
		if whole := k.whole.Load(); whole != nil {
			got = whole.name.seq
		}
		if got != c.want {
			t.Errorf("%s: graph %d is there, want %d", c.parts, got, c.want)
		}
	}
}

func TestAGraphInPartsIsTheWhole(t *testing.T) {
	b := make([]byte, 2*graphPart+100)
	for i := range b {
		b[i] = byte(i * i >> 8)
	}
	var k keptGraphs
	err := splitGraph(graphName{table: 7, slot: 3, seq: 9}, b).records(func(record []byte) error {
		name, part, b, err := decodeGraphPart(record[wal.HeaderSize:])
		k.take(name, part, b)
		return err
	})
	if whole := k.whole.Load(); err != nil || whole == nil || whole.name.parts != 3 || !bytes.Equal(whole.bytes(), b) {
		t.Errorf("parts do not make the whole: %v", err)
	}
}
