package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	liveTarget  = "/t/x/c/changes?id=eq.500&select=year"
	crowd       = 1000 // streams
	watchedFor  = 10 * time.Second
	streamBytes = 40 << 10 // what a stream may cost
)

// liveFigures compares how soon a write reaches those who hold a live query open with a plain GET.
func liveFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	port, err := l.startNode(pinned, "live", "--sync", "off", "--max-connections", "64")
	if err != nil {
		return err
	}
	node := l.started[len(l.started)-1].Process.Pid
	if err := createTenant(port, "x"); err != nil {
		return err
	}
	if err := fill("http://" + address(port)); err != nil {
		return err
	}
	if err := l.idleStreams(r, port, node); err != nil { // first, as it is the memory of a node that has had no streams
		return err
	}
	fan := freePort()
	if err := l.start(pinned, fan, l.ruler, "fan", strconv.Itoa(fan)); err != nil {
		return err
	}
	get := side{"GET, p50", l.ping(port, getTarget, 5000)}
	for _, f := range []figure{
		{
			name: "a write reaches one subscriber, p50", unit: "us", atMost: 3,
			ours: side{"live", l.live(port, 1, 2000)}, peer: get,
		},
		{
			name: fmt.Sprintf("a write reaches the last of %d subscribers, p50", crowd), unit: "us", atMost: 100,
			ours: side{"live", l.live(port, crowd, 50)}, peer: get,
		},
		{
			name: fmt.Sprintf("the same of %d, beside a C loop of writes to their sockets", crowd), unit: "us",
			ours: side{"live", l.live(port, crowd, 50)}, peer: side{"C loop", l.live(fan, crowd, 50)},
		},
	} {
		if err := r.figure(f); err != nil {
			return err
		}
	}
	return nil
}

// live is the ruler's p50 in microseconds from a write's first byte to the last of so many streams that is told.
func (l *lab) live(port, streams, count int) func() (float64, error) {
	return func() (float64, error) {
		out, err := exec.Command("taskset", "-c", pinned, l.ruler, "live", strconv.Itoa(port), liveTarget, strconv.Itoa(streams),
			strconv.Itoa(count), "PATCH", "/t/x/c?id=500", `{"year": 7}`).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("ruler: %w: %s", err, out)
		}
		return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	}
}

// idleStreams is what streams cost a node while nothing is written.
func (l *lab) idleStreams(r *report, port, node int) error {
	before, err := resident(node)
	if err != nil {
		return err
	}
	cmd := exec.Command(l.ruler, "live", strconv.Itoa(port), liveTarget, strconv.Itoa(crowd), "0", "-", "-", "-", strconv.Itoa(int(2*watchedFor/time.Second)))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("the streams did not open: %q, %w", line, err)
	}
	after, err := resident(node)
	if err != nil {
		return err
	}
	each := (after - before) / crowd
	r.fact(fmt.Sprintf("memory of a stream, of %d", crowd), fmt.Sprintf("%.1f KiB", float64(each)/1024), "under 40 KiB", each < streamBytes)
	began, err := processorTime(node)
	if err != nil {
		return err
	}
	time.Sleep(watchedFor)
	ended, err := processorTime(node)
	if err != nil {
		return err
	}
	share := float64(ended-began) / float64(watchedFor)
	r.fact(fmt.Sprintf("processor time of %d idle streams", crowd), fmt.Sprintf("%.2f%%", 100*share), "under 1%", share < 0.01)
	return nil
}

// resident is the memory of a process, in bytes.
func resident(pid int) (int, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize(), err
}

// processorTime is what a process has used of it.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil
}
