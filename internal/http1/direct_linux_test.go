//go:build !race

package http1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

func TestTheFirstCallAfterANapIsSeenByTheScheduler(t *testing.T) {
	for range 3 {
		for deadline := time.Now().Add(10 * time.Second); monitor.limited.Load(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("no timer ends the nap")
			}
		}
		// Only this test uses connections now.
		if direct(0) {
			t.Error("the first call is direct: it does not wake the monitor")
		}
		directs := 0
		for range 1000 {
			if direct(maxDirect) {
				directs++
			}
		}
		if directs < 900 {
			t.Errorf("%d of 1000 calls in a row are direct", directs)
		}
		if direct(maxDirect + 1) {
			t.Error("a large transfer is direct")
		}
	}
}

// spinEnv makes the test binary the server of TestALongRequestKeepsNoOtherWaiting. Its value names a file of spinFlag.
const spinEnv = "FENEC_TEST_SPIN"

func init() {
	if name := os.Getenv(spinEnv); name != "" {
		fmt.Fprintln(os.Stderr, spin(name))
		os.Exit(1)
	}
}

// spinFlag maps a file of 4 bytes, which another process changes without a system call of this one.
func spinFlag(name string) (*atomic.Int32, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shared, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*atomic.Int32)(unsafe.Pointer(unsafe.SliceData(shared))), nil
}

// spin serves on one processor: /spin sets the flag and runs without a system call until /stop is served, at most for 20 s.
func spin(name string) error {
	runtime.GOMAXPROCS(1)
	spinning, err := spinFlag(name)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	var stopped atomic.Bool
	s := &Server{Log: zerolog.Nop(), Handler: HandlerFunc(func(r *Request) Answer {
		if string(r.Path) == "/stop" {
			stopped.Store(true)
			return Answer{Status: 200}
		}
		spinning.Store(1)
		for began := time.Now(); !stopped.CompareAndSwap(true, false); {
			if time.Since(began) > 20*time.Second {
				return Answer{Status: 500}
			}
		}
		return Answer{Status: 200}
	})}
	return s.Serve(l)
}

// asleep waits until all threads of a process sleep, which includes the monitor: no thread ran between two looks.
func asleep(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	ticks := time.NewTicker(3 * maxNap)
	defer ticks.Stop()
	for last := ""; ; <-ticks.C {
		var now strings.Builder
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("process %d has no threads, %v", pid, err)
		}
		for _, task := range tasks {
			status, err := os.ReadFile(task)
			if err != nil {
				t.Fatal(err)
			}
			_, switches, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
			now.WriteString(switches)
		}
		switch {
		case now.String() == last:
			return
		case time.Now().After(deadline):
			t.Fatalf("process %d does not sleep", pid)
		}
		last = now.String()
	}
}

// TestALongRequestKeepsNoOtherWaiting: on one processor, a request is served while another one computes, although no system
// call has woken the runtime's monitor in between.
func TestALongRequestKeepsNoOtherWaiting(t *testing.T) {
	name := filepath.Join(t.TempDir(), "flag")
	if err := os.WriteFile(name, make([]byte, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	spinning, err := spinFlag(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), spinEnv+"="+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait() // killed
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}
	defer client.CloseIdleConnections()
	get := func(path string) error {
		resp, err := client.Get("http://" + strings.TrimSpace(addr) + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			return fmt.Errorf("%s was answered %d: %v", path, resp.StatusCode, err)
		}
		return nil
	}
	for round := range 5 {
		asleep(t, cmd.Process.Pid)
		spun := make(chan error, 1)
		go func() { spun <- get("/spin") }()
		for deadline := time.Now().Add(10 * time.Second); !spinning.CompareAndSwap(1, 0); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: /spin was not served", round)
			}
		}
		if err := get("/stop"); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := <-spun; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
