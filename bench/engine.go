package main

import (
	"fmt"
	"time"

	"fenec/engine/doc"
)

const filterRows = 100_000

// row is the document both sides hold: five fields beside the id.
type row struct {
	title string
	year  int64
	rank  float64
	done  bool
	tag   string
}

func rowOf(i int) row {
	return row{fmt.Sprintf("the title of note %d", i), int64(i * 7919 % filterRows), float64(i) / 3, i%2 == 0, "tag"}
}

func (r row) params() []doc.Value {
	return []doc.Value{text(r.title), integer(r.year), float(r.rank), boolean(r.done), text(r.tag)}
}

// engineFigures compares one process against SQLite in the same process: in memory both, prepared statements, the same
// rows. Ours goes through its statement cache and answers JSON; SQLite's rows are scanned into Go values.
func engineFigures(r *report) error {
	ours, err := newOurs()
	if err != nil {
		return err
	}
	defer ours.close()
	lite, err := newSQLite()
	if err != nil {
		return err
	}
	defer lite.close()
	for _, f := range []figure{
		{
			name: "put of a 5-field document", atLeast: 4,
			ours: side{"fenec", ours.puts}, peer: side{"SQLite", lite.puts},
		},
		{
			name: "get by id", atLeast: 4,
			ours: side{"fenec", ours.gets}, peer: side{"SQLite", lite.gets},
		},
		{
			name: "filter of 100 000 rows on an unindexed int, 1% found", atLeast: 1.5,
			ours: side{"fenec", ours.query(20, `get notes where year < 1000`)},
			peer: side{"SQLite", lite.query(20, `select id, title, year, rank, done, tag from notes where year < 1000`)},
		},
		{
			name: "count of the same filter, half found", atLeast: 1.5,
			ours: side{"fenec", ours.query(20, `get notes where year < 50000 count`)},
			peer: side{"SQLite", lite.count(20, `select count(*) from notes where year < 50000`)},
		},
		{
			name: "an ordered page of 20 over a sorted index", atLeast: 3,
			ours: side{"fenec", ours.query(5000, `get pages order year desc limit 20`)},
			peer: side{"SQLite", lite.query(5000, `select id, title, year, rank, done, tag from pages order by year desc limit 20`)},
		},
		{
			name: "lookup of 3 of 100 000 children for each of 20 parents", atLeast: 2,
			ours: side{"fenec", ours.query(2000, `get parents limit 20 lookup children on parent limit 3`)},
			peer: side{"SQLite, a correlated subquery", lite.query(2000, `select id, (select json_group_array(json_object('id', id, 'parent', parent, 'title', title))
				from (select * from children where parent = parents.id limit 3)), 0, 0, 0, 0 from parents limit 20`)},
		},
		{
			name: "100 000 rows into 100 groups, count and sum",
			ours: side{"fenec", ours.query(20, `get groups select tag, count(*), sum(year) group tag`)},
			peer: side{"SQLite", lite.query(20, `select 0, tag, count(*), sum(year), 0, 0 from groups group by tag`)},
		},
		{
			name: "an equal value found in a hash index",
			ours: side{"fenec", ours.query(5000, `get hashed where year = 7919`)},
			peer: side{"SQLite", lite.query(5000, `select id, title, year, rank, done, tag from hashed where year = 7919`)},
		},
	} {
		f.unit = "us"
		if err := r.figure(f); err != nil {
			return err
		}
	}
	return nil
}

// timed answers the microseconds each of n calls took.
func timed(n int, call func(i int) error) (float64, error) {
	start := time.Now()
	for i := range n {
		if err := call(i); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / 1e3 / float64(n), nil
}

// p50 answers the median microseconds of n calls.
func p50(n int, call func(i int) error) (float64, error) {
	took := make([]float64, n)
	for i := range n {
		start := time.Now()
		if err := call(i); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(start).Nanoseconds()) / 1e3
	}
	return median(took), nil
}

const (
	putCalls = 100_000
	getCalls = 100_000
)

func text(s string) doc.Value { return doc.Value{Kind: doc.Text, B: []byte(s)} }

func integer(n int64) doc.Value { return doc.Value{Kind: doc.Int, N: uint64(n)} }
