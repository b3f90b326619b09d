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

// turns measures sides in turns and answers what each got, round by round.
func turns(rounds int, sides ...side) ([][]float64, error) {
	got := make([][]float64, len(sides))
	for range rounds {
		for i, s := range sides {
			x, err := s.measure()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			got[i] = append(got[i], x)
		}
	}
	return got, nil
}

// figure measures f in turns and prints its row.
func (r *report) figure(f figure) error {
	got, err := turns(rounds, f.ours, f.peer)
	if err != nil {
		return fmt.Errorf("%s, %w", f.name, err)
	}
	r.row(f, got[0], got[1])
	return nil
}

// ratio is how the bound is put: "at most 1.5 times the peer's time", "at least 4 times faster", "at least 0.95 of its rate".
func (f *figure) ratio(ours, peer float64) float64 {
	if f.atLeast != 0 && !f.rate {
		return peer / ours
	}
	return ours / peer
}

// row prints what the two sides got in turns.
func (r *report) row(f figure, ours, peer []float64) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = f.ratio(ours[i], peer[i])
	}
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
		short(median(ours)), f.unit, short(median(peer)), f.unit, f.peer.name, m, slices.Min(ratios), slices.Max(ratios), wanted, verdict)
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

// note is a row that is only shown.
func (r *report) note(name, got string) {
	fmt.Fprintf(r.out, "| %s | %s | | | shown | |\n", name, got)
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
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
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
