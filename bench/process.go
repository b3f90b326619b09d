package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lab is a folder of its own and the processes started in it.
type lab struct {
	dir     string
	fenec   string // the binary under test
	ruler   string
	started []*exec.Cmd
}

func newLab() (*lab, error) {
	dir, err := os.MkdirTemp("", "fenec-bench")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, fenec: filepath.Join(dir, "fenec"), ruler: filepath.Join(dir, "ruler")}
	for _, build := range []*exec.Cmd{
		{Args: []string{"go", "build", "-o", l.fenec, "."}, Dir: ".."},
		{Args: []string{"cc", "-O2", "-pthread", "-o", l.ruler, filepath.Join("ruler", "ruler.c")}},
	} {
		path, err := exec.LookPath(build.Args[0])
		if err != nil {
			return nil, err
		}
		build.Path = path
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", strings.Join(build.Args, " "), err, out)
		}
	}
	return l, nil
}

// close ends what was started, the last first, and removes the folder.
func (l *lab) close() {
	for i := len(l.started) - 1; i >= 0; i-- {
		l.started[i].Process.Signal(syscall.SIGTERM)
		l.started[i].Wait()
	}
	os.RemoveAll(l.dir)
}

// pinned is the processor what is compared is pinned to.
const pinned = "0"

// start runs a server until close, pinned where cpu is not empty, and waits for its port.
func (l *lab) start(cpu string, port int, name string, args ...string) error {
	if cpu != "" {
		name, args = "taskset", append([]string{"-c", cpu, name}, args...)
	}
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Dir = &stderr, l.dir
	if err := cmd.Start(); err != nil {
		return err
	}
	l.started = append(l.started, cmd)
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := net.Dial("tcp", address(port))
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen on %d: %s", name, port, stderr.Bytes())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// freePort is a port nothing listens on now.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // loopback has no port left
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// ping is the ruler's p50 in microseconds: count requests on one kept connection.
func (l *lab) ping(port int, target string, count int, more ...string) func() (float64, error) {
	return func() (float64, error) {
		args := append([]string{"-c", pinned, l.ruler, "ping", strconv.Itoa(port), target, strconv.Itoa(count)}, more...)
		out, err := exec.Command("taskset", args...).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("ruler: %w: %s", err, out)
		}
		return strconv.ParseFloat(strings.Fields(string(out))[0], 64)
	}
}

// wrk is the requests a second that 64 connections get.
func (l *lab) wrk(port int, target string) func() (float64, error) {
	return func() (float64, error) {
		out, err := exec.Command("wrk", "-t1", "-c64", "-d3s", "http://"+address(port)+target).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("wrk: %w: %s", err, out)
		}
		return wrkRate(out)
	}
}

// wrkRate is the requests a second that wrk printed, all of which must have succeeded.
func wrkRate(out []byte) (float64, error) {
	if bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		return 0, fmt.Errorf("wrk was refused: %s", out)
	}
	_, rest, ok := strings.Cut(string(out), "Requests/sec:")
	if !ok {
		return 0, fmt.Errorf("wrk answered %s", out)
	}
	return strconv.ParseFloat(strings.Fields(rest)[0], 64)
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// send is one request that must succeed.
func send(method, url, token, body string) ([]byte, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = errors.New(method + " " + url + ": " + res.Status + ": " + string(out))
	}
	return out, err
}
