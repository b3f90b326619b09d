//go:build !race

// This file makes the system calls of a connection without notifying Go's scheduler. It is an optimization for Linux:
// without it (direct_other.go) everything works the same, and a routed request takes about a third more processor time.
//
// Before each system call of the standard library, the scheduler prepares for one that blocks. If its monitor thread
// (sysmon in runtime/proc.go) sleeps, it wakes it, and the monitor sleeps as soon as no goroutine runs. A server waits for
// the network several times in a request, so it wakes the monitor several times: each time two system calls and two
// switches of threads. But the sockets of Go do not block: a read, write or poll of one returns at once. So it is made by
// RawSyscall, which the scheduler does not notice.
//
// The monitor has duties: it takes the processor from a goroutine that runs for long, and looks for events of the network
// if all processors are busy. A goroutine that starts to run long while the monitor sleeps would keep every other
// connection waiting. Therefore the monitor sleeps for maxNap at most while connections are used. It never sleeps past the
// next timer, so one timer is pending then: see monitor. A process without traffic has no such timer and uses no processor
// time.
//
// Measured with one connection that gets a document through a router, in turns with GODEBUG=schedtrace, which keeps the
// monitor awake, and with neither, on a busy machine (three series, 55 turns of a second each): a request makes 3.3 switches
// of threads in router and node, 3.4 with schedtrace, 6.4 with neither. Medians of the ratios to schedtrace: processor time
// 0.94 to 1.20 and with neither 1.25 to 1.48, p50 0.82 to 1.13 and with neither 1.13 to 1.22. With 16 connections p50 is
// 0.99 to 1.00 of schedtrace's and with neither 1.06 to 1.14; with 64 none of the three is ahead of the others. Without
// traffic schedtrace takes 0.3% of a processor, this 0.01%.
//
// The race detector does not see raw system calls, so a build with it does not use this file.

package http1

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxNap is how long the monitor may sleep while connections are used. It sleeps as long between two rounds when it is
	// awake and has nothing to do.
	maxNap = 10 * time.Millisecond
	// maxDirect is the maximum size in bytes of a direct read or write. Copying more takes long enough that the scheduler
	// has to know.
	maxDirect = 64 << 10
)

// monitor limits the sleep of the runtime's monitor.
var monitor struct {
	limited atomic.Bool // the timer is pending, or was when the monitor fell asleep
	timer   *time.Timer // resets limited
}

func init() {
	monitor.timer = time.AfterFunc(maxNap, func() { monitor.limited.Store(false) })
}

// direct reports whether a system call on n bytes may be a raw one. The first call in each maxNap is not: it starts the
// timer and then wakes the monitor, which may have gone to sleep when no timer was pending.
func direct(n int) bool {
	if n > maxDirect {
		return false
	}
	if monitor.limited.Load() {
		return true
	}
	if monitor.limited.CompareAndSwap(false, true) {
		monitor.timer.Reset(maxNap)
	}
	return false
}

// sysRead reads from a socket that does not block. It returns 0 at the end of the stream.
func sysRead(fd uintptr, p []byte) (int, error) { return transfer(unix.SYS_READ, fd, p) }

// sysWrite writes to a socket that does not block.
func sysWrite(fd uintptr, p []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, p) }

func transfer(call, fd uintptr, p []byte) (int, error) {
	for {
		var n uintptr
		var failed syscall.Errno
		if direct(len(p)) {
			n, _, failed = syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		} else {
			n, _, failed = syscall.Syscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		}
		switch failed {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, failed
		}
	}
}

// sysPoll sets the events that hold on a socket, without waiting.
func sysPoll(set *[1]unix.PollFd) error {
	if !direct(0) {
		_, err := unix.Poll(set[:], 0)
		return err
	}
	var now unix.Timespec
	_, _, failed := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(set)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	if failed != 0 {
		return failed
	}
	return nil
}
