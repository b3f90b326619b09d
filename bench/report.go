package main

import (
	"fmt"
	"io"
	"slices"
)

// rounds is how often each pair is measured, in turns.
const rounds = 3

// side is one of the two that a figure compares. measure answers a time or a rate, in unit.
type side struct {
	name    string
	measure func() (float64, error)
}

// figure is one comparison. ratio is ours over the peer's, made so that the bound is on one side of it.
type figure struct {
	name, unit string
	ours, peer side
	atMost     float64 // bound on ours/peer, where not 0
	atLeast    float64 // bound on ours/peer for a rate, or on peer/ours for a time, where not 0
	rate       bool    // more is better
}

type report struct {
	out    io.Writer
	missed int
}

func newReport(out io.Writer) *report { return &report{out: out} }

func (r *report) heading(name, what string) {
	fmt.Fprintf(r.out, "\n### %s: %s\n\n| figure | ours | peer | ratio (of %d rounds: least to most) | wanted | |\n|---|---|---|---|---|---|\n", name, what, rounds)
}

// figure measures f in turns and prints its row.
func (r *report) figure(f figure) error {
	var ours, peer, ratios []float64
	for range rounds {
		a, err := f.ours.measure()
		if err != nil {
			return fmt.Errorf("%s, %s: %w", f.name, f.ours.name, err)
		}
		b, err := f.peer.measure()
		if err != nil {
			return fmt.Errorf("%s, %s: %w", f.name, f.peer.name, err)
		}
		ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, f.ratio(a, b))
	}
	r.row(f, median(ours), median(peer), ratios)
	return nil
}

// ratio is how the bound is put: "at most 1.5 times the peer's time", "at least 4 times faster", "at least 0.95 of its rate".
func (f *figure) ratio(ours, peer float64) float64 {
	if f.atLeast != 0 && !f.rate {
		return peer / ours
	}
	return ours / peer
}

func (r *report) row(f figure, ours, peer float64, ratios []float64) {
	m := median(ratios)
	wanted, verdict := "shown", ""
	switch {
	case f.atMost != 0:
		wanted = fmt.Sprintf("at most %.2f", f.atMost)
		verdict = r.verdict(m <= f.atMost)
	case f.atLeast != 0:
		wanted = fmt.Sprintf("at least %.2f", f.atLeast)
		verdict = r.verdict(m >= f.atLeast)
	}
	fmt.Fprintf(r.out, "| %s | %s %s | %s %s (%s) | %.2f (%.2f to %.2f) | %s | %s |\n", f.name,
		short(ours), f.unit, short(peer), f.unit, f.peer.name, m, slices.Min(ratios), slices.Max(ratios), wanted, verdict)
}

func (r *report) verdict(ok bool) string {
	if ok {
		return "met"
	}
	r.missed++
	return "**missed**"
}

// fact is a row without a peer.
func (r *report) fact(name, got, wanted string, ok bool) {
	fmt.Fprintf(r.out, "| %s | %s | | | %s | %s |\n", name, got, wanted, r.verdict(ok))
}

// skip says that a peer is not on this machine.
func (r *report) skip(name, why string) {
	fmt.Fprintf(r.out, "| %s | | | | | not measured: %s |\n", name, why)
}

func (r *report) close() error {
	fmt.Fprintf(r.out, "\n%d figures missed\n", r.missed)
	return nil
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// short prints three digits or so.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
