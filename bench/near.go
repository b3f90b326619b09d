package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"fenec/engine"
	"fenec/engine/doc"
)

// items is a set of vectors as documents of a database on disk, with fields to filter by.
type items struct {
	*ours
	set  *vectorSet
	path string
}

const (
	createItems = `create collection items (v vector<128>, n int @sorted, one int @hash, many int @hash)`
	putItem     = `put items {v: $1, n: $2, one: $3, many: $4}`
	indexItems  = `create index on items (v) @hnsw(cosine)` // m=16, ef_construction=200 unless said
	nearItems   = `get items select id near v $1 limit 10`
)

// The fields of an item, none of which has to do with where its vector lies. One in a hundred has the one, 23 the many.
func itemN(id int64) int64   { return id * 7919 % vectorCount }
func itemOne(id int64) int64 { return id * 31 % 100 }
func itemMany(id int64) int64 {
	if id*37%100 < 23 {
		return 1
	}
	return 0
}

// nearFigures are what a statement adds, what a filter does to it, and what the graph in the file saves.
func nearFigures(r *report, set *vectorSet, truth [][]int64, lib *hnswlib) error {
	dir, err := os.MkdirTemp("", "fenec-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &items{set: set, path: filepath.Join(dir, "items.fenec")}
	if t.ours, err = create(t.path, engine.Options{}, createItems); err != nil {
		return err
	}
	defer func() { t.close() }()
	for i, v := range set.base {
		id := int64(i + 1)
		if err := t.exec(putItem, vectorOf(v), integer(itemN(id)), integer(itemOne(id)), integer(itemMany(id))); err != nil {
			return err
		}
	}
	built, err := millis(func() error { return t.exec(indexItems) })
	if err != nil {
		return err
	}
	found, err := t.found(nearItems)
	if err != nil {
		return err
	}
	plain := recall(truth, found)
	if err := t.statementFigures(r, plain, lib); err != nil {
		return err
	}
	if err := t.filterFigures(r, plain); err != nil {
		return err
	}
	return t.openFigure(r, built)
}

func vectorOf(v []float32) doc.Value { return doc.Value{Kind: doc.Vector, B: littleEndian(v)} }

// p50 answers the median microseconds of a statement over the queries.
func (t *items) p50(statement string) func() (float64, error) {
	return func() (float64, error) {
		params := make([]doc.Value, 1)
		queries := make([]doc.Value, len(t.set.queries))
		for i, q := range t.set.queries {
			queries[i] = vectorOf(q)
		}
		return p50(len(queries), func(i int) error {
			params[0] = queries[i]
			return t.exec(statement, params...)
		})
	}
}

// found is the ids that a statement answers for each query.
func (t *items) found(statement string) ([][]int64, error) {
	found := make([][]int64, len(t.set.queries))
	for i, q := range t.set.queries {
		if err := t.exec(statement, vectorOf(q)); err != nil {
			return nil, err
		}
		var rows []struct{ ID int64 }
		if err := json.Unmarshal(t.dst, &rows); err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[i] = append(found[i], row.ID)
		}
	}
	return found, nil
}

func (t *items) statementFigures(r *report, plain float64, lib *hnswlib) error {
	if lib != nil {
		if err := r.figure(figure{
			name: fmt.Sprintf("the statement `%s`, p50 at ef 100 (recall %.4f)", nearItems, plain), unit: "us", atMost: 1.3,
			ours: side{"fenec", t.p50(nearItems)},
			peer: side{"hnswlib alone", func() (float64, error) {
				micros, _, err := lib.search(100)
				return micros, err
			}},
		}); err != nil {
			return err
		}
	}
	return r.figure(figure{
		name: "the same with the documents, 128 numbers each, as JSON", unit: "us",
		ours: side{"fenec", t.p50(`get items near v $1 limit 10`)}, peer: side{"ids alone", t.p50(nearItems)},
	})
}

func (t *items) filterFigures(r *report, plain float64) error {
	for _, f := range []struct {
		name, where string
		keep        func(id int64) bool
	}{
		{"1% by @sorted", `n < 1000`, func(id int64) bool { return itemN(id) < 1000 }},
		{"1% by @hash", `one = 7`, func(id int64) bool { return itemOne(id) == 7 }},
		{"23% by @sorted", `n < 23000`, func(id int64) bool { return itemN(id) < 23_000 }},
		{"23% by @hash", `many = 1`, func(id int64) bool { return itemMany(id) == 1 }},
	} {
		statement := `get items select id where ` + f.where + ` near v $1 limit 10`
		found, err := t.found(statement)
		if err != nil {
			return err
		}
		if err := r.figure(figure{
			name: "near among " + f.name + ", p50", unit: "us", atMost: 3,
			ours: side{"filtered", t.p50(statement)}, peer: side{"unfiltered", t.p50(nearItems)},
		}); err != nil {
			return err
		}
		got := recall(t.set.truth(f.keep), found)
		r.fact("recall of that", fmt.Sprintf("%.4f", got), fmt.Sprintf("no lower than unfiltered, %.4f", plain), got >= plain)
	}
	return nil
}

// openFigure opens the file, finds something, and closes it, where building the graph took so many milliseconds.
func (t *items) openFigure(r *report, built float64) error {
	reopened := side{"the graph in the file", func() (float64, error) {
		if err := t.db.Close(); err != nil {
			return 0, err
		}
		return millis(func() (err error) {
			if t.db, err = engine.Open(t.path, engine.Options{}); err != nil {
				return err
			}
			return t.exec(nearItems, vectorOf(t.set.queries[0]))
		})
	}}
	return r.figure(figure{
		name: "open of 100 000 x 128 and the first near", unit: "ms", atLeast: 1,
		ours: reopened, peer: side{"`create index`", func() (float64, error) { return built, nil }},
	})
}
