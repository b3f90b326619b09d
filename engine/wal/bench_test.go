package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fenec/internal/vfs"
)

const benchRecords = 1_000_000

// benchFile is a file of a million blocks of 114 bytes, 130 with their headers.
func benchFile(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "x.fenec")
	l, err := Create(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchRecords {
		rec := make([]byte, HeaderSize+114)
		copy(rec[HeaderSize:], fmt.Sprintf("document %d", i))
		l.Stage(Block, rec)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkOpen opens a million small records; the floor is one plain read of the file with its checksum.
func BenchmarkOpen(b *testing.B) {
	path := benchFile(b)
	b.Run("log", func(b *testing.B) {
		for b.Loop() {
			n := 0
			l, err := Open(path, Options{}, func(_ Kind, _ []byte, from, to int) error {
				n += to - from
				return nil
			})
			if err != nil || n != benchRecords*114 {
				b.Fatal(n, err)
			}
			l.Close()
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			data, err := os.ReadFile(path)
			if err != nil || checksum(data) == 1 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOneWriter compares a durable commit of 200 bytes with a bare write and fdatasync of as many, in turn: it
// reports both medians and their ratio.
func BenchmarkOneWriter(b *testing.B) {
	dir := b.TempDir()
	f, err := vfs.OS.OpenFile(filepath.Join(dir, "bare"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l, err := Create(filepath.Join(dir, "x.fenec"), Options{Sync: Policy{Always: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	bare := func(off int64) error {
		if _, err := f.WriteAt(make([]byte, HeaderSize+200), off); err != nil {
			return err
		}
		return f.Sync()
	}
	var floor, commit []time.Duration
	off := int64(0)
	for b.Loop() {
		start := time.Now()
		if err := bare(off); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if err := l.Commit(l.Stage(Block, make([]byte, HeaderSize+200))); err != nil {
			b.Fatal(err)
		}
		floor = append(floor, between.Sub(start))
		commit = append(commit, time.Since(between))
		off += HeaderSize + 200
	}
	slices.Sort(floor)
	slices.Sort(commit)
	f50, c50 := floor[len(floor)/2], commit[len(commit)/2]
	b.ReportMetric(float64(f50.Microseconds()), "floor-us")
	b.ReportMetric(float64(c50.Microseconds()), "commit-us")
	b.ReportMetric(float64(c50)/float64(f50), "x-floor")
}

// BenchmarkWriters measures a durable commit of 200 bytes by several goroutines at once, and how many share a sync.
func BenchmarkWriters(b *testing.B) {
	for _, writers := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			fs := &countingFS{FS: vfs.OS}
			l, err := Create(filepath.Join(b.TempDir(), "x.fenec"), Options{FS: fs, Sync: Policy{Always: true}})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var (
				order sync.Mutex // the engine's
				wg    sync.WaitGroup
			)
			b.ResetTimer()
			for w := range writers {
				n := b.N / writers
				if w < b.N%writers {
					n++
				}
				wg.Go(func() {
					for range n {
						rec := make([]byte, HeaderSize+200)
						order.Lock()
						t := l.Stage(Block, rec)
						order.Unlock()
						if err := l.Commit(t); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/float64(fs.syncs.Load()), "commits/sync")
		})
	}
}

// countingFS counts the syncs of its files.
type countingFS struct {
	vfs.FS
	syncs atomic.Int64
}

func (fs *countingFS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := fs.FS.OpenFile(name, flag, perm)
	return countingFile{f, fs}, err
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (f countingFile) Sync() error {
	f.fs.syncs.Add(1)
	return f.File.Sync()
}
