package main

import (
	"os"
	"strings"
	"syscall"
)

// awake is the runtime setting that keeps its monitor thread from going to sleep. Once nothing runs in the process the
// monitor sleeps, and the next request wakes it first: two system calls and two switches of threads for each wait for
// the network, which is a quarter of what a request through the router takes. A scheduler trace keeps the monitor up;
// it is asked for every 2^31-1 ms, so that it prints a line on stderr every 24 days of the machine's uptime. What it
// costs is a hundred short wake-ups a second while nobody asks for anything.
const awake = "schedtrace=2147483647"

// keepAwake starts a server's process over, in its place and with its id, with the monitor kept awake. The runtime reads
// the setting as it starts and at no other time. It returns where the setting is made already, to whatever value, and
// where the process cannot be started over: then it is only slower.
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
		_ = syscall.Exec(self, os.Args, os.Environ()) // an error leaves this process to go on
	}
}
