package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// heap returns the bytes of the heap in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestALargeBlockKeepsNoMemory(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @unique, body text)`)
	mustExec(t, db, `put c {n: 1}`)
	before := db.Stats().MemoryBytes
	body := textParam(strings.Repeat("x", 5<<20))
	if _, err := exec(db, `put c [{n: 2, body: $1}, {n: 1}]`, body); err == nil {
		t.Fatal("a value was taken twice")
	}
	if got := db.Stats().MemoryBytes; got > before+1<<20 {
		t.Errorf("%d bytes are held after a large block was refused, %d before", got, before)
	}
	mustExec(t, db, "put c ["+strings.TrimSuffix(strings.Repeat(`{}, `, 10_000), ", ")+"]")
	if got := cap(db.tx.touched); got > smallBlock {
		t.Errorf("room for %d documents is held when the block has landed", got)
	}
}

// TestSegmentsAreFilled writes several segments: memory is little more than the bytes written, for small and large files.
func TestSegmentsAreFilled(t *testing.T) {
	db := inMemory(t, Options{FS: sinkFS{crashfs.New(1)}})
	mustExec(t, db, `create collection c (body text)`)
	if got := db.memory.bytes(); got > 1<<10 {
		t.Errorf("an empty database holds %d bytes", got)
	}
	body := textParam(strings.Repeat("x", 10_000))
	for range 1000 {
		mustExec(t, db, `put c {body: $1}`, body)
	}
	if size, held := db.Stats().FileBytes, db.memory.bytes(); held > size+size/20+segmentSize {
		t.Errorf("%d bytes are held of a file of %d", held, size)
	}
}

// TestACompactHoldsNoMoreThanItCounts compares the heap after a compact with the bytes in Stats.
func TestACompactHoldsNoMoreThanItCounts(t *testing.T) {
	db := inMemory(t, Options{FS: sinkFS{crashfs.New(1)}})
	mustExec(t, db, `create collection c (body text)`)
	body := textParam(strings.Repeat("x", 800_000))
	for range 10 {
		mustExec(t, db, `put c {body: $1}`, body)
	}
	mustExec(t, db, `compact`)
	counted := db.memory.bytes()
	before := heap()
	db.memory = memory{}
	if freed := before - heap(); freed > counted*11/10 {
		t.Errorf("the documents held %d bytes, of which %d were counted", freed, counted)
	}
}

func TestMemoryBytesIncludeCollections(t *testing.T) {
	const n = 1000
	for _, fields := range []int{0, 10, 40} {
		db := inMemory(t, Options{FS: sinkFS{crashfs.New(1)}})
		var indexed strings.Builder
		for i := range fields {
			fmt.Fprintf(&indexed, ", field%d text @hash", i)
		}
		heap0, counted0 := heap(), db.Stats().MemoryBytes
		for i := range n {
			mustExec(t, db, fmt.Sprintf(`create collection c%d (n int%s)`, i, indexed.String()))
		}
		held, counted := (heap()-heap0)/n, (db.Stats().MemoryBytes-counted0)/n
		if held > counted*3/2 || counted > held*3/2 {
			t.Errorf("a collection of %d indexed fields takes %d bytes and is counted as %d", fields, held, counted)
		}
	}
}
