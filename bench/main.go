// Command bench measures fenec beside what its users would pick instead: `make bench` runs all of it, `go run . NAME`
// one part of it (see the list with `go run . help`).
//
// A figure is a ratio taken in one run: we and the peer in turns, three rounds, the median ratio and its spread. The
// machine's speed drifts and the ratio does not, so absolute times are shown and never compared between runs.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// part is one group of figures.
type part struct {
	name, what string
	run        func(r *report) error
}

var parts = []part{
	{"engine", "in process, beside SQLite in memory", engineFigures},
	{"vectors", "nearest vectors, beside hnswlib", vectorFigures},
	{"text", "words by BM25, beside bleve and SQLite FTS5", textFigures},
	{"fuse", "match and near in one, beside the two alone", fuseFigures},
	{"group", "a million rows into groups, beside PostgreSQL", groupFigures},
	{"collation", "a million names in order, beside PostgreSQL with ICU", collationFigures},
	{"claims", "jobs claimed by workers that wait, beside puts and PostgreSQL's skip locked", claimFigures},
	{"open", "opening a million documents, beside a plain read with its CRCs", openFigures},
	{"durable", "durable writes, beside a bare fdatasync", durableFigures},
	{"node", "a GET straight to a node, beside a bare net/http handler", nodeFigures},
	{"router", "through the router, beside a C relay, nginx and haproxy", routerFigures},
	{"live", "live queries, beside a GET of one document", liveFigures},
	{"move", "moving a tenant of 50 MB, beside cp and sync", moveFigures},
	{"changes", "change data capture, beside the puts it follows", changeFigures},
	{"tenants", "5 000 tenants with 256 descriptors and 64 MiB", tenantFigures},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "peer" {
		servePeer(os.Args[2]) // the net/http handler, in a process of its own
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	r := newReport(os.Stdout)
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q, the parts are %s", name, partList())
		}
	}
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		r.heading(p.name, p.what)
		if err := p.run(r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return r.close()
}

func partList() string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "\n  %-9s %s", p.name, p.what)
	}
	return b.String()
}
