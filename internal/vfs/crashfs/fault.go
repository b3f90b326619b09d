package crashfs

import (
	"errors"
	"sync"
)

// Op is a sort of operation.
type Op int

// The operations that change something.
const (
	Create   Op = iota // of a file; or emptying one as it is opened
	Write              // one WriteAt
	Truncate           // one Truncate
	Sync               // of a file
	Rename
	Remove
	SyncDir
	ops
)

// ErrSilent, from a hook, has a Sync lose what a failed one does and succeed, as on a device that takes a write for done of
// which a part did not fit.
var ErrSilent = errors.New("the device lies")

// ErrPower is what every operation answers from the one on at which power was told to go.
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

// check counts an operation on name and answers the error it is to fail with.
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

// Ops is how many operations there have been.
func (fs *FS) Ops() int {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	return fs.faults.done
}

// Count is how many operations of one sort there have been.
func (fs *FS) Count(op Op) int {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	return fs.faults.counts[op]
}

// FailAt makes operation k fail with err, once: syscall.EIO, syscall.ENOSPC. Of a write any part may land, of a sync
// any part may get to disk; the others do nothing.
func (fs *FS) FailAt(k int, err error) { fs.fail(k, err, false) }

// FailFrom makes operation k and every one after it fail with err.
func (fs *FS) FailFrom(k int, err error) { fs.fail(k, err, true) }

// PowerOffAt takes the power away at operation k: it and every later one answers ErrPower. What is left is in Crash.
func (fs *FS) PowerOffAt(k int) { fs.fail(k, ErrPower, true) }

func (fs *FS) fail(k int, err error, on bool) {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	fs.faults.at, fs.faults.err, fs.faults.on = k, err, on
}

// Heal takes back every fault and the limit of space.
func (fs *FS) Heal() {
	fs.fail(0, nil, false)
	fs.Hook(nil)
	fs.SetSpace(-1)
}

// Hook has f called before each operation that no other fault meets; an error of it fails the operation. It is called
// without locks and may wait.
func (fs *FS) Hook(f func(op Op, name string) error) {
	fs.faults.mu.Lock()
	defer fs.faults.mu.Unlock()
	fs.faults.hook = f
}

// SetSpace lets files grow by that many bytes more, until some are cut or removed; a write past it lands in part and
// answers ENOSPC. Negative is without a limit.
func (fs *FS) SetSpace(bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.space = bytes
}
