package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"fenec/engine/derived"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// TestDeadBytesEqualWhatACompactFrees compares the dead bytes of random histories with a count of the documents at every
// step, with the dead bytes after a reopening, and with the bytes that a compact removes.
func TestDeadBytesEqualWhatACompactFrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := crashfs.New(1)
		db, err := Create(file, Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { db.Close() }()
		run := func(text string) {
			if _, err := exec(db, text); err != nil && fail.KindOf(err) != fail.NotFound && fail.KindOf(err) != fail.Conflict {
				t.Fatalf("%s: %v", text, err)
			}
		}
		id := rapid.IntRange(1, 20)
		collection := rapid.SampledFrom([]string{"a", "b"})
		run("create collection a (n int @sorted, s text)")
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { wantLive(t, db) },
			"put": func(t *rapid.T) {
				text := strings.Repeat("x", rapid.IntRange(0, 4000).Draw(t, "length"))
				run(fmt.Sprintf(`put %s {id: %d, n: 1, s: "%s"}`, collection.Draw(t, "in"), id.Draw(t, "id"), text))
			},
			"set":    func(t *rapid.T) { run(fmt.Sprintf("set a {n: n + 1} where id < %d", id.Draw(t, "id"))) },
			"refuse": func(*rapid.T) { _, _ = exec(db, `put a [{n: 1}, {n: "x"}]`) },
			"delete": func(t *rapid.T) { run(fmt.Sprintf("del %s where id = %d", collection.Draw(t, "in"), id.Draw(t, "id"))) },
			"create": func(*rapid.T) { run("create collection b (n int, s text)") },
			"drop":   func(*rapid.T) { run("drop collection b") },
			"index":  func(*rapid.T) { run("create index on b (n) @hash") },
			"reopen": func(t *rapid.T) {
				before := db.Stats()
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if db, err = Open(file, Options{FS: fs}); err != nil {
					t.Fatal(err)
				}
				after := db.Stats()
				if added := after.FileBytes - before.FileBytes; after.DeadBytes != before.DeadBytes+added {
					t.Fatalf("%d bytes are dead, and %d once the file of %d bytes, %d more, was opened again",
						before.DeadBytes, after.DeadBytes, after.FileBytes, added)
				}
			},
			"compact": func(t *rapid.T) {
				before := db.Stats()
				run("compact")
				after := db.Stats()
				if taken := before.FileBytes - after.FileBytes; taken != before.DeadBytes-after.DeadBytes || after.DeadBytes > 64 {
					t.Fatalf("a compact took %d bytes off, %d were dead and %d are", taken, before.DeadBytes, after.DeadBytes)
				}
			},
		})
	})
}

// TestOnlyTheLatestGraphIsLive saves the graph of a vector index repeatedly: the earlier ones in the file are dead bytes.
func TestOnlyTheLatestGraphIsLive(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, "create collection c (v vector<4> @hnsw)")
	add := func(n int) {
		for i := range n {
			mustExec(t, db, fmt.Sprintf("put c {v: [%d, %d, 1, 0]}", i%97, i%89))
		}
		mustExec(t, db, "get c near v [1, 1, 1, 1] limit 1")
		settle(db)
	}
	add(3000)
	db.saveGraphs(derived.Linked)
	first := db.Stats()
	graph := db.tables["c"].indexes.Filed()
	if graph == 0 {
		t.Fatal("no graph was saved")
	}
	add(3000)
	db.saveGraphs(derived.Linked)
	second := db.Stats()
	if dead := second.DeadBytes - first.DeadBytes; dead < graph+3000*recordHead {
		t.Errorf("%d more bytes are dead once a graph of %d and 3000 blocks were added", dead, graph)
	}
	mustExec(t, db, "compact")
	third := db.Stats()
	if off := second.FileBytes - third.FileBytes - second.DeadBytes; off < -graph/2 || off > graph/2 || third.DeadBytes > 1000 {
		t.Errorf("a compact took %d bytes off, %d were dead and %d are", second.FileBytes-third.FileBytes, second.DeadBytes, third.DeadBytes)
	}
	if db.space.coming != 0 {
		t.Errorf("%d bytes of graphs are still coming", db.space.coming)
	}
}

// putBig puts documents of 64 KiB with the ids from first to last.
func putBig(t *testing.T, db *DB, first, last int) {
	t.Helper()
	text := textParam(strings.Repeat("x", 64<<10))
	for id := first; id <= last; id++ {
		mustExec(t, db, "put c {id: $1, s: $2}", intParam(int64(id)), text)
	}
}

// dueCount is a database and the number of times that a compact of it became due.
func dueCount(t *testing.T, at float64) (db *DB, due *int) {
	t.Helper()
	due = new(int)
	db = inMemory(t, Options{CompactAt: at, Due: func() { *due++ }})
	mustExec(t, db, "create collection c (s text)")
	return db, due
}

func TestACompactIsDueOnceEnoughIsDead(t *testing.T) {
	db, due := dueCount(t, 0.5)
	putBig(t, db, 1, 600)
	if *due != 0 || db.Due() {
		t.Fatal("a compact is due of a file in which nothing is dead")
	}
	putBig(t, db, 1, 590)
	if *due != 0 || db.Due() {
		t.Fatal("a compact is due with less than half of the file dead")
	}
	putBig(t, db, 1, 40)
	if *due != 1 || !db.Due() {
		t.Fatalf("a compact became due %d times with more than half of the file dead, want once", *due)
	}
	putBig(t, db, 1, 40)
	if *due != 1 {
		t.Fatalf("a compact became due %d times before it was done", *due)
	}
	mustExec(t, db, "compact")
	if db.Due() {
		t.Fatal("a compact is due after a compact")
	}
	mustExec(t, db, "del c where id > 100")
	if *due != 2 || !db.Due() {
		t.Fatalf("a compact became due %d times once most was deleted of what a compact left, want twice", *due)
	}
}

func TestWhenACompactIsNotDue(t *testing.T) {
	for _, c := range []struct {
		name string
		at   float64
		do   func(t *testing.T, db *DB)
	}{
		{"with --compact-at 0", 0, func(t *testing.T, db *DB) {
			putBig(t, db, 1, 300)
			mustExec(t, db, "del c where id > 0")
		}},
		{"with less than 16 MiB dead", 0.5, func(t *testing.T, db *DB) {
			putBig(t, db, 1, 240)
			mustExec(t, db, "del c where id > 0")
		}},
		{"with a smaller share dead than asked for", 0.9, func(t *testing.T, db *DB) {
			putBig(t, db, 1, 600)
			mustExec(t, db, "del c where id > 100")
		}},
		{"of a database that was frozen", 0.5, func(t *testing.T, db *DB) {
			putBig(t, db, 1, 300)
			db.space.recheckAt = math.MaxInt64 // dueness is not checked
			mustExec(t, db, "del c where id > 0")
			if _, err := db.Freeze(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, due := dueCount(t, c.at)
			c.do(t, db)
			if *due != 0 || db.Due() {
				t.Errorf("it became due %d times, and is %v", *due, db.Due())
			}
		})
	}
}

func TestADropOfACollectionMakesACompactDue(t *testing.T) {
	db, due := dueCount(t, 0.5)
	putBig(t, db, 1, 600)
	mustExec(t, db, "drop collection c")
	if *due != 1 {
		t.Errorf("it became due %d times, want once", *due)
	}
}

func TestAThawMakesACompactDueAgain(t *testing.T) {
	db, due := dueCount(t, 0.5)
	putBig(t, db, 1, 300)
	mustExec(t, db, "del c where id > 0")
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	if *due != 1 || db.Due() {
		t.Fatalf("it became due %d times, want once and not while the database is frozen", *due)
	}
	db.Thaw()
	if *due != 2 || !db.Due() {
		t.Errorf("it became due %d times, want again at the thaw", *due)
	}
}

func TestACompactBecomesDueOnOpen(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, "create collection c (s text)")
	putBig(t, db, 1, 300)
	mustExec(t, db, "del c where id > 0")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if !reopen(t, Options{FS: fs, CompactAt: 0.5}).Due() {
		t.Error("no compact is due of a file that is all dead")
	}
	if reopen(t, Options{FS: fs, CompactAt: 0.5, ReadOnly: true}).Due() {
		t.Error("a compact is due of a database that is open for reading only")
	}
}

// TestAFreezeStopsACompact blocks a compact at a write of its file. It ends at its next check.
func TestAFreezeStopsACompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, "create collection c (s text)")
		putBig(t, db, 1, 100)
		db.Close()
		db = reopen(t, Options{FS: fs}) // the file was created as a side file, whose writes the hook would stop
		release := make(chan bool)
		writes := 0
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Write && strings.HasSuffix(name, wal.SideSuffix) {
				writes++
				<-release
			}
			return nil
		})
		compacted := make(chan error, 1)
		go func() { compacted <- db.Compact(context.Background()) }()
		synctest.Wait()
		if _, err := db.Freeze(); err != nil {
			t.Fatal(err)
		}
		close(release)
		wantKind(t, <-compacted, fail.Frozen)
		if writes > 2 {
			t.Errorf("it wrote %d times more", writes-1)
		}
		fs.Hook(nil)
		if names, _ := fs.ReadDir("/"); len(names) != 1 {
			t.Errorf("the directory holds %v", names)
		}
	})
}

// TestCompactsOfOneDatabaseWaitForEachOther runs a second compact once the first ends, or until its caller gives up.
func TestCompactsOfOneDatabaseWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, "create collection c (n int)")
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Create {
				<-release
			}
			return nil
		})
		ended := make(chan error, 2)
		go func() { ended <- db.Compact(context.Background()) }()
		synctest.Wait()
		go func() { ended <- db.Compact(context.Background()) }()
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 1)
		go func() { gone <- db.Compact(ctx) }()
		synctest.Wait()
		if len(ended) > 0 || len(gone) > 0 {
			t.Error("a compact ended beside another that is under way")
		}
		cancel()
		wantKind(t, <-gone, fail.Canceled)
		close(release)
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMemoryBytesIncludeARunningCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs})
		mustExec(t, db, "create collection c (s text)")
		putBig(t, db, 1, 100)
		before := db.Stats().MemoryBytes
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Sync {
				<-release
			}
			return nil
		})
		compacted := make(chan error, 1)
		go func() { compacted <- db.Compact(context.Background()) }()
		synctest.Wait()
		if during := db.Stats().MemoryBytes; during < 2*before*9/10 {
			t.Errorf("with nearly all of the file copied %d bytes are held, %d before", during, before)
		}
		close(release)
		if err := <-compacted; err != nil {
			t.Fatal(err)
		}
		if after := db.Stats().MemoryBytes; after > before*11/10 {
			t.Errorf("%d bytes are held after a compact, %d before", after, before)
		}
	})
}

// TestBytesThatDieDuringACompactMakeTheNextOneDue deletes documents that a compact has already copied.
func TestBytesThatDieDuringACompactMakeTheNextOneDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		due := 0
		db := inMemory(t, Options{FS: fs, CompactAt: 0.5, Due: func() { due++ }})
		mustExec(t, db, "create collection c (s text)")
		putBig(t, db, 1, 620)
		mustExec(t, db, "del c where id > 300")
		release := make(chan bool)
		fs.Hook(func(op crashfs.Op, name string) error {
			if op == crashfs.Sync && strings.HasSuffix(name, wal.SideSuffix) {
				<-release
			}
			return nil
		})
		compacted := make(chan error, 1)
		go func() {
			done, err := db.CompactDue(context.Background())
			if file := db.Stats().FileBytes; done.After != file || done.Before < file+20<<20 {
				t.Errorf("it says that it made %d bytes of %d, and there are %d", done.After, done.Before, file)
			}
			compacted <- err
		}()
		synctest.Wait()
		mustExec(t, db, "del c where id > 2")
		putBig(t, db, 1, 2)
		close(release)
		if err := <-compacted; err != nil {
			t.Fatal(err)
		}
		if s := db.Stats(); due != 2 || !db.Due() || s.DeadBytes < 298*64<<10 {
			t.Errorf("with %d of %d bytes dead a compact became due %d times, and is %v", s.DeadBytes, s.FileBytes, due, db.Due())
		}
		if done, err := db.CompactDue(context.Background()); done == (Compacted{}) || err != nil || db.Stats().DeadBytes > 100 {
			t.Errorf("the next compact did %v, %v, and left %d bytes dead", done, err, db.Stats().DeadBytes)
		}
		if done, err := db.CompactDue(context.Background()); done != (Compacted{}) || err != nil {
			t.Errorf("a compact that is not due did %v, %v", done, err)
		}
	})
}

// TestACompactThatWaitedForAnotherIsSkipped is about a due compact: the one that a client requested has done its work.
func TestACompactThatWaitedForAnotherIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		db := inMemory(t, Options{FS: fs, CompactAt: 0.5})
		mustExec(t, db, "create collection c (s text)")
		putBig(t, db, 1, 300)
		mustExec(t, db, "del c where id > 0")
		release := make(chan bool)
		made := 0
		fs.Hook(func(op crashfs.Op, _ string) error {
			if op == crashfs.Create {
				made++
				<-release
			}
			return nil
		})
		asked := make(chan error, 1)
		go func() { asked <- db.Compact(context.Background()) }()
		synctest.Wait()
		waited := make(chan Compacted, 1)
		go func() {
			done, err := db.CompactDue(context.Background())
			if err != nil {
				t.Error(err)
			}
			waited <- done
		}()
		synctest.Wait()
		close(release)
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
		if done := <-waited; done != (Compacted{}) || made != 1 {
			t.Errorf("it was done again: %v, %d files were made", done, made)
		}
	})
}

// TestACompactNoLongerDueBecomesDueAgain writes so much before a due compact runs that it is no longer due.
func TestACompactNoLongerDueBecomesDueAgain(t *testing.T) {
	db, due := dueCount(t, 0.5)
	putBig(t, db, 1, 600)
	mustExec(t, db, "del c where id > 280")
	if *due != 1 {
		t.Fatalf("a compact became due %d times, want once", *due)
	}
	putBig(t, db, 1001, 1100)
	if db.Due() {
		t.Fatal("a compact is due with less than half of the file dead")
	}
	mustExec(t, db, "del c where id > 1050")
	if *due != 2 || !db.Due() {
		t.Errorf("a compact became due %d times, want again", *due)
	}
}
