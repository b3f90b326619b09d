package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	graphM              = 16
	graphEFConstruction = 200
)

// hnswlib is the peer of the vectors: hnswlib/hnswlib.cpp in a process of its own, which measures itself.
type hnswlib struct {
	dir   string
	cmd   *exec.Cmd
	tell  io.WriteCloser
	heard *bufio.Reader
}

// errNoHNSWLib is why there is nothing to compare with.
var errNoHNSWLib = errors.New("g++ or libhnswlib-dev is not installed")

// startHNSWLib answers errNoHNSWLib where there is none.
func startHNSWLib(s *vectorSet) (*hnswlib, error) {
	probe := exec.Command("g++", "-E", "-o", os.DevNull, filepath.Join("hnswlib", "hnswlib.cpp"))
	if probe.Run() != nil {
		return nil, errNoHNSWLib
	}
	dir, err := os.MkdirTemp("", "fenec-bench")
	if err != nil {
		return nil, err
	}
	h := &hnswlib{dir: dir}
	if err := h.start(s); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *hnswlib) start(s *vectorSet) error {
	program, base, queries := filepath.Join(h.dir, "hnswlib"), filepath.Join(h.dir, "base"), filepath.Join(h.dir, "queries")
	build := exec.Command("g++", "-O3", "-march=native", "-w", "-o", program, filepath.Join("hnswlib", "hnswlib.cpp"))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("g++: %w: %s", err, out)
	}
	if err := os.WriteFile(base, littleEndian(unit(s.base)...), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(queries, littleEndian(unit(s.queries)...), 0o644); err != nil {
		return err
	}
	h.cmd = exec.Command(program, base, queries, fmt.Sprint(vectorDim), fmt.Sprint(graphM), fmt.Sprint(graphEFConstruction))
	h.cmd.Stderr = os.Stderr
	answers, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if h.tell, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	h.heard = bufio.NewReader(answers)
	return h.cmd.Start()
}

// close ends the process, which stops at the end of its input.
func (h *hnswlib) close() {
	if h.tell != nil {
		h.tell.Close()
	}
	if h.cmd != nil && h.cmd.Process != nil {
		h.cmd.Wait()
	}
	os.RemoveAll(h.dir)
}

// ask is one command and the numbers of its answer.
func (h *hnswlib) ask(command string) ([]string, error) {
	if _, err := fmt.Fprintln(h.tell, command); err != nil {
		return nil, err
	}
	line, err := h.heard.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("hnswlib, asked to %s: %w", command, err)
	}
	return strings.Fields(line), nil
}

// build answers the milliseconds on one thread.
func (h *hnswlib) build() (float64, error) {
	got, err := h.ask("build")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(got[0], 64)
}

// search answers the median microseconds, and what was found for each query.
func (h *hnswlib) search(ef int) (micros float64, found [][]int64, err error) {
	got, err := h.ask(fmt.Sprintf("search %d %d", ef, vectorK))
	if err != nil {
		return 0, nil, err
	}
	found = make([][]int64, vectorQueries)
	for i, place := range got[1:] {
		n, err := strconv.ParseInt(place, 10, 64)
		if err != nil {
			return 0, nil, err
		}
		found[i/vectorK] = append(found[i/vectorK], n+1)
	}
	micros, err = strconv.ParseFloat(got[0], 64)
	return micros, found, err
}
