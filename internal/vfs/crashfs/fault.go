package crashfs

import (
	"errors"
	"sync"
)

// Op is a kind of operation.
type Op int

// The operations that change something.
const (
	Create   Op = iota // of a file, or emptying one when it is opened
	Write              // one WriteAt
	Truncate           // one Truncate
	Sync               // of a file
	Rename
	Remove
	SyncDir
	ops
)

// ErrSilent, returned by a hook, makes a Sync succeed but lose what a failed one loses, like a device that acknowledges
// a write it did not complete.
var ErrSilent = errors.New("the device lies")

// ErrPower is the error of every operation after power is off.
var ErrPower = errors.New("the power is off")

// faults counts operations and decides which fail.
type faults struct {
	mu     sync.Mutex
	done   int
	counts [ops]int
	at     int // the operation to fail; 0 for none
	on     bool
	err    error
	hook   func(op Op, name string) error
}

// check counts an operation on name and returns the error it must fail with.
func (f *faults) check(op Op, name string) error {
	f.mu.Lock()
	f.done++
	f.counts[op]++
	hook, err := f.hook, error(nil)
	if f.at > 0 && (f.done == f.at || f.on && f.done > f.at) {
		err = f.err
	}
	f.mu.Unlock()
	if err == nil && hook != nil {
		err = hook(op, name)
	}
	return err
}

// Ops returns the number of operations so far.
func (fs *FS) Ops() int {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	return fs.faults.done
}

// Count returns the number of operations of one kind so far.
func (fs *FS) Count(op Op) int {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	return fs.faults.counts[op]
}

// FailAt makes operation k fail once with err, such as syscall.EIO or syscall.ENOSPC. Any part of a failed write may be
// applied, and any part of a failed sync may be on disk. Other failed operations have no effect.
func (fs *FS) FailAt(k int, err error) { fs.fail(k, err, false) }

// FailFrom makes operation k and every one after it fail with err.
func (fs *FS) FailFrom(k int, err error) { fs.fail(k, err, true) }

// PowerOffAt turns power off at operation k: it and every later one fail with ErrPower. Crash returns what is left.
func (fs *FS) PowerOffAt(k int) { fs.fail(k, ErrPower, true) }

func (fs *FS) fail(k int, err error, on bool) {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	fs.faults.at, fs.faults.err, fs.faults.on = k, err, on
}

// Heal removes every fault and the limit on space.
func (fs *FS) Heal() {
	fs.fail(0, nil, false)
	fs.Hook(nil)
	fs.SetSpace(-1)
}

// Hook sets a function that is called before each operation that has no other fault. Its error fails the operation. It
// is called without locks and may block.
func (fs *FS) Hook(f func(op Op, name string) error) {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	fs.faults.hook = f
}

// SetSpace limits by how many bytes files may grow until some are truncated or removed. A write past the limit is
// applied in part and fails with ENOSPC. A negative value removes the limit.
func (fs *FS) SetSpace(bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.space = bytes
}
