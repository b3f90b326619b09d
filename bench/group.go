package main

import (
	"bytes"
	"errors"
	"fmt"
)

const millionRows = 1_000_000

// groupFigures compares a million rows into a hundred groups with PostgreSQL, both asked for the hundred totals.
func groupFigures(r *report) error {
	pg, err := startPostgres()
	if errors.Is(err, errNoPostgres) {
		r.skip("a million rows into 100 groups", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer pg.close()
	if err := pg.load("groups", "id bigint, tag text, year bigint", func(w *bytes.Buffer) {
		for i := range millionRows {
			fmt.Fprintf(w, "%d\t%s\t%d\n", i+1, groupOf(i), rowOf(i).year)
		}
	}); err != nil {
		return err
	}
	ours, err := newDatabase(`create collection groups (tag text, year int)`)
	if err != nil {
		return err
	}
	defer ours.close()
	for i := range millionRows {
		if err := ours.exec(`put groups {tag: $1, year: $2}`, text(groupOf(i)), integer(rowOf(i).year)); err != nil {
			return err
		}
	}
	for _, workers := range []int{1, 0} {
		if err := pg.figure(r, ours, millionFigure{
			name: "1 000 000 rows into 100 groups, count and sum", workers: workers, runs: 5, atLeast: 1.5,
			ours: `get groups select tag, count(*), sum(year) group tag`,
			peer: `select tag, count(*), sum(year) from groups group by tag`,
		}); err != nil {
			return err
		}
	}
	return nil
}

// millionFigure is a query of a million rows put to both. The bound is on the one with a worker: there are two
// processors, and a fold of ours uses what there is.
type millionFigure struct {
	name, ours, peer string
	workers          int
	runs             int // a median of them is measured
	atLeast          float64
}

func (p *postgres) figure(r *report, ours *ours, m millionFigure) error {
	s, err := p.faster(m.workers, m.runs, m.peer)
	if err != nil {
		return err
	}
	micros := ours.query(m.runs, m.ours)
	f := figure{
		name: m.name, unit: "ms",
		ours: side{"fenec", func() (float64, error) {
			took, err := micros()
			return took / 1e3, err
		}},
		peer: side{s.String(), p.query(s, m.runs, m.peer)},
	}
	if m.workers == 1 {
		f.atLeast = m.atLeast
	}
	return r.figure(f)
}
