package http1

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// eagerWait is how long a connection is waited for on the spot.
	eagerWait = 50 * time.Microsecond
	// eagerTurns is how many waits in a row a connection has to be alone before
	// it is waited for on the spot, and how many in a row are. Then the goroutine
	// parks once, so that on one processor the runtime looks at the other
	// connections. Parking wakes the runtime's monitor, which then runs every
	// 20 us for the next millisecond: fewer turns would be no gain.
	eagerTurns = 64
	// eagerPause is how many waits are the usual ones, at most, after one that
	// was in vain; it doubles up to there.
	eagerPause = 256
)

// eager waits on the spot for the next request of a client that asks again as
// soon as it is answered: a script, or a router's connection. Parking the
// goroutine and being woken by the poller take four system calls and a switch, a
// sixth of a small request's time; this takes one call.
//
// The processor is held meanwhile, as by 50 us of computing, which is why it is
// only for a connection that has the server to itself, and stops where it does
// not pay.
type eager struct {
	wait   func(fd uintptr) // made once, so that a wait allocates nothing
	set    [1]unix.PollFd
	moment unix.Timespec
	ready  bool // the last wait on the spot ended with something to read
	alone  int  // waits since another connection waited
	turns  int  // waits on the spot since the goroutine parked
	pause  int  // waits to go until one is made on the spot again
	missed int  // the length of the last pause
}

func (e *eager) init() {
	e.wait = func(fd uintptr) {
		e.set[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		e.moment = unix.NsecToTimespec(int64(eagerWait))
		// Raw: were the processor given back for it, the runtime would start a
		// thread to take it over.
		n, _, _ := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&e.set)), 1, uintptr(unsafe.Pointer(&e.moment)), 0, 0, 0)
		e.ready = n == 1
	}
}

// await waits a moment for something to read, where that has paid lately.
func (c *conn) await() {
	e := &c.eager
	if c.server.last.Load() != c {
		c.server.last.Store(c)
		e.alone = 0
	}
	if e.alone++; e.alone <= eagerTurns || c.outbound.raw == nil { // TLS may hold the next request itself
		return
	}
	if e.turns++; e.turns > eagerTurns {
		e.turns = 0
		return
	}
	if e.pause > 0 {
		e.pause--
		return
	}
	if c.outbound.raw.Control(e.wait) != nil || e.ready {
		e.missed = 0
		return
	}
	e.missed = min(2*e.missed+1, eagerPause)
	e.pause = e.missed
}
