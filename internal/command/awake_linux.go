package command

import (
	"os"
	"strings"
	"syscall"
)

// awake is the GODEBUG setting that keeps the runtime's monitor thread awake. The monitor sleeps when no goroutine
// runs, and the next request has to wake it: two system calls and two thread switches for each wait for the network, a
// quarter of the time of a routed request. With a scheduler trace the monitor does not sleep. The trace interval is
// 2^31-1 ms, so it prints a line on stderr every 24 days of the machine's uptime. The cost is a hundred short wake-ups
// a second when idle.
const awake = "schedtrace=2147483647"

// keepAwake re-executes the process, with the same id, with the monitor kept awake. The runtime reads the setting only
// at its start. It returns if schedtrace is already set, to any value, or if the process cannot be re-executed, which
// only makes it slower.
func keepAwake() {
	set := os.Getenv("GODEBUG")
	if strings.Contains(set, "schedtrace=") {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	if os.Setenv("GODEBUG", strings.TrimPrefix(set+","+awake, ",")) == nil {
		_ = syscall.Exec(self, os.Args, os.Environ()) // after an error this process continues
	}
}
