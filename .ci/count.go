// Command count reads what `go test -json` prints, shows the output of what
// failed and one line a package, and ends with the slowest tests and "N passed,
// N failed". It exits 1 if anything failed or nothing ran.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
	Elapsed    float64
}

type counter struct {
	w              io.Writer
	passed, failed int
	output         map[string][]string // by package and test, kept until its verdict
	begun          map[string][]string // by package, the tests in the order they began
	unfinished     []string            // tests of a package that broke down around them
	failures       map[string]int      // failed tests by package
	ended          []event             // of tests, not of their subtests
}

// slowest is how many of the slowest tests are listed.
const slowest = 15

func main() {
	c := &counter{w: os.Stdout, output: make(map[string][]string), begun: make(map[string][]string), failures: make(map[string]int)}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			c.take(line)
		}
		if err != nil {
			break
		}
	}
	for _, test := range c.unfinished {
		fmt.Fprintf(c.w, "not ended: %s\n", test)
	}
	c.showSlowest()
	fmt.Fprintf(c.w, "%d passed, %d failed\n", c.passed, c.failed)
	if c.failed > 0 || c.passed == 0 {
		os.Exit(1)
	}
}

func (c *counter) take(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		fmt.Fprint(c.w, line) // what the go command itself has to say
		return
	}
	key := e.Package + e.ImportPath + " " + e.Test
	if e.Test != "" && e.Elapsed > 0 && !strings.Contains(e.Test, "/") {
		c.ended = append(c.ended, e)
	}
	switch e.Action {
	case "run":
		c.begun[e.Package] = append(c.begun[e.Package], e.Test)
		c.output[key] = nil
	case "output", "build-output":
		c.output[key] = append(c.output[key], e.Output)
	case "pass", "skip":
		if e.Test == "" {
			fmt.Fprintf(c.w, "ok    %s %.1fs\n", e.Package, e.Elapsed)
		} else if e.Action == "pass" {
			c.passed++
		}
		c.forget(e.Package, key)
	case "fail", "build-fail":
		c.fail(e, key)
	}
}

func (c *counter) fail(e event, key string) {
	for _, text := range c.output[key] {
		fmt.Fprint(c.w, text)
	}
	delete(c.output, key)
	switch {
	case e.Action == "build-fail":
	case e.Test != "":
		c.failed++
		c.failures[e.Package]++
	default:
		c.showUnfinished(e.Package)
		fmt.Fprintf(c.w, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
		if c.failures[e.Package] == 0 { // it did not build, or broke down outside of a test
			c.failed++
		}
	}
}

// forget drops the output of what passed. A panic that ends the process, as the
// one at the timeout does, comes as the output of whichever test was last heard
// of, passed or not: it is the package's.
func (c *counter) forget(pkg, key string) {
	for i, text := range c.output[key] {
		if strings.HasPrefix(text, "panic: ") {
			c.output[pkg+" "] = append(c.output[pkg+" "], c.output[key][i:]...)
			break
		}
	}
	delete(c.output, key)
}

// showUnfinished shows the output of tests that have no verdict, because the
// package ran out of time or a panic ended it.
func (c *counter) showUnfinished(pkg string) {
	for _, test := range c.begun[pkg] {
		key := pkg + " " + test
		texts, ok := c.output[key]
		if !ok {
			continue
		}
		c.unfinished = append(c.unfinished, key)
		for _, text := range texts {
			fmt.Fprint(c.w, text)
		}
		delete(c.output, key)
	}
}

// showSlowest lists the tests that took the longest, from start to end: a
// parallel test also waits for its turn on a processor.
func (c *counter) showSlowest() {
	slices.SortFunc(c.ended, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range c.ended[:min(slowest, len(c.ended))] {
		fmt.Fprintf(c.w, "%6.1fs %s %s\n", e.Elapsed, e.Package, e.Test)
	}
}
