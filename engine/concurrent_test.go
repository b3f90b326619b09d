package engine

import (
	"sync"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// TestConcurrentSchemaChangesCompactsImagesAndFreezes creates and drops collections concurrently with index
// builds, compacts, images and freezes. Any statement may be refused. At the end a reopened file holds the same content.
func TestConcurrentSchemaChangesCompactsImagesAndFreezes(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	var all sync.WaitGroup
	again := func(fn func()) {
		all.Go(func() {
			for range 60 {
				fn()
			}
		})
	}
	run := func(texts ...string) {
		again(func() {
			for _, text := range texts {
				_, _ = exec(db, text)
			}
		})
	}
	run(`create collection c (n int, tag text)`, `put c [{n: 1, tag: "a"}, {n: 2, tag: "b"}]`, `set c {n: n + 1}`, `drop collection c`)
	run(`create index on c (n) @sorted`, `create index on c (tag) @hash`)
	run(`create index on c (n) @unique`)
	run(`create collection c (n int @sorted, tag text)`, `put c [{n: 10, tag: "a"}, {n: 20, tag: "b"}]`, `del c where n > 15`)
	run(`compact`)
	run(`get c where n > 5 order n`, `get c where tag = "a"`, `collections`)
	again(func() {
		r, _, _, err := db.OpenImage()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := install(file, r, Options{FS: crashfs.New(2)}); err != nil {
			t.Error(err)
		}
		_ = r.Close()
	})
	again(func() {
		if _, err := db.Freeze(); err != nil {
			t.Error(err)
		}
		db.Thaw()
		db.Stats()
	})
	all.Wait()
	mustExec(t, db, `create collection last (n int)`)
	before := everything(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := everything(t, reopen(t, Options{FS: fs})); got != before {
		t.Errorf("reopened:\n%s\nwas:\n%s", got, before)
	}
}
