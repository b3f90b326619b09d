package wal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// trial is a log whose sync fails, and what it has acknowledged.
type trial struct {
	t       *testing.T
	fs      *crashfs.FS
	policy  Policy
	name    string
	known   []string // what the file held when it was opened
	staged  []string // since then
	durable int      // how many of all those a sync has covered
}

func (r *trial) options() Options {
	return Options{FS: r.fs, Sync: r.policy, Synced: func(last Ticket) { r.durable = len(r.known) + int(last) }}
}

func (r *trial) fatalf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf(r.name+": "+format, args...)
}

// open opens the log and checks that it has kept what a sync has covered.
func (r *trial) open() *Log {
	r.t.Helper()
	before, durable := append(r.known, r.staged...), r.durable
	r.known, r.staged = nil, nil
	l, err := Open(file, r.options(), func(_ Kind, data []byte, from, to int) error {
		r.known = append(r.known, strings.Fields(string(data[from:to]))...)
		return nil
	})
	if err != nil {
		r.fatalf("opened with %v", err)
	}
	if n := len(r.known); n < durable || n > len(before) || !slices.Equal(r.known, before[:n]) {
		r.fatalf("%d words are there, of %d written with %d on disk", n, len(before), durable)
	}
	return l
}

// write writes groups of words, of some pages each, and syncs after every other group; until something fails.
func (r *trial) write(l *Log, groups int) error {
	for group := range groups {
		var last Ticket
		for i := range 1 + group%3 {
			n := len(r.known) + len(r.staged)
			word := fmt.Sprintf("%d-%s", n, strings.Repeat("x", n*1237%6000))
			r.staged = append(r.staged, word)
			last = l.Stage(Block, room(word))
			_ = i
		}
		err := l.Commit(last)
		if err == nil && r.policy.Always {
			r.durable = max(r.durable, len(r.known)+int(last)) // acknowledged
		}
		if err == nil && group%2 == 1 {
			err = l.SyncWritten()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestASyncThatFailedIsNotTakenForAGoodOneLater has each sync of a run fail in turn. The kernel then considers what it
// lost as written, so that later syncs succeed. The log is closed and opened again, or its process killed, and goes on,
// with the page cache dropped before or after. At the end the power is cut.
func TestASyncThatFailedIsNotTakenForAGoodOneLater(t *testing.T) {
	for _, policy := range []Policy{{}, {Always: true}} {
		syncs := failedSyncTrial(t, policy, 0, 1, 0)
		for k := 1; k <= syncs; k++ {
			for seed := range uint64(6) {
				for way := range ways {
					if way&liesBefore != 0 && (k == 1 || way&dropsBefore != 0) {
						continue // there is no sync before, or what the device has lost cannot be found any more
					}
					failedSyncTrial(t, policy, k, seed, way)
				}
			}
		}
	}
}

// ways are how a trial goes on after the failure, as bits.
const (
	killed      = 1 << iota // the log is left as a killed process leaves it
	dropsBefore             // the page cache is dropped before the log is opened again
	dropsAfter              // and after it has written more
	opensTwice              // it is opened and closed once more before it writes
	liesBefore              // the sync before the failed one lost as much and reported success, as that of a full loop device may
	ways
)

// failedSyncTrial fails sync k of a run, or none if k is 0, and returns how many syncs the run has.
func failedSyncTrial(t *testing.T, policy Policy, k int, seed uint64, way int) (syncs int) {
	r := &trial{t: t, fs: crashfs.New(seed), policy: policy}
	r.name = fmt.Sprintf("sync %v, sync %d fails, seed %d, way %05b", policy, k, seed, way)
	if err := r.fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, r.options(), Record{Image, imageOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n, failed := 0, error(nil)
	r.fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.Sync {
			switch n++; {
			case n == k:
				return syscall.EIO
			case n == k-1 && way&liesBefore != 0:
				return crashfs.ErrSilent
			}
		}
		return nil
	})
	if failed = r.write(l, 6); failed == nil && way&killed == 0 {
		failed = l.Close()
	}
	if (failed != nil) != (n >= k && k > 0) || failed != nil && !errors.Is(failed, syscall.EIO) {
		r.fatalf("answered %v after %d syncs", failed, n)
	}
	syncs = n
	if way&killed == 0 {
		_ = l.Close()
	}
	if way&dropsBefore != 0 {
		r.fs.DropCache()
	}
	if way&opensTwice != 0 {
		if err := r.open().Close(); err != nil {
			r.fatalf("closed with %v", err)
		}
	}
	l = r.open()
	if err := errors.Join(r.write(l, 4), l.Sync()); err != nil {
		r.fatalf("written to again: %v", err)
	}
	if r.durable != len(r.known)+len(r.staged) {
		r.fatalf("a sync covers %d of %d words", r.durable, len(r.known)+len(r.staged))
	}
	if way&dropsAfter != 0 {
		r.fs.DropCache()
	}
	r.fs = r.fs.CrashKeeping(func(int) int { return 0 })
	if err := r.open().Close(); err != nil {
		r.fatalf("closed after the power loss: %v", err)
	}
	return syncs
}
