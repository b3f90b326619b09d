package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"fenec/engine"
	"fenec/engine/doc"
)

// ours is a database, on a file of memory but for figures about files.
type ours struct {
	db  *engine.DB
	dst []byte
}

// newDatabase is one with the collections that the statements make.
func newDatabase(statements ...string) (*ours, error) {
	return create("bench.fenec", engine.Options{FS: memoryFS{}}, statements...)
}

func create(path string, opts engine.Options, statements ...string) (*ours, error) {
	db, err := engine.Create(path, opts)
	if err != nil {
		return nil, err
	}
	o := &ours{db: db}
	for _, text := range statements {
		if err := o.exec(text); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func newOurs() (*ours, error) {
	o, err := newDatabase()
	if err != nil {
		return nil, err
	}
	fields := `(title text, year int%s, rank float, done bool, tag text)`
	for name, index := range map[string]string{"notes": "", "pages": " @sorted", "hashed": " @hash", "puts": ""} {
		if err := o.exec(`create collection ` + name + ` ` + fmt.Sprintf(fields, index)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"notes", "pages", "hashed"} {
		for i := range filterRows {
			if err := o.exec(`put `+name+` {title: $1, year: $2, rank: $3, done: $4, tag: $5}`, rowOf(i).params()...); err != nil {
				return nil, err
			}
		}
	}
	return o, o.related()
}

// related makes parents with 20 children each, and rows in 100 groups.
func (o *ours) related() error {
	for _, text := range []string{
		`create collection parents (title text)`, `create collection children (parent int @hash, title text)`,
		`create collection groups (tag text, year int)`,
	} {
		if err := o.exec(text); err != nil {
			return err
		}
	}
	for i := range filterRows {
		r := rowOf(i)
		if i%20 == 0 {
			if err := o.exec(`put parents {title: $1}`, text(r.title)); err != nil {
				return err
			}
		}
		if err := o.exec(`put children {parent: $1, title: $2}`, integer(parentOf(i)), text(r.title)); err != nil {
			return err
		}
		if err := o.exec(`put groups {tag: $1, year: $2}`, text(groupOf(i)), integer(r.year)); err != nil {
			return err
		}
	}
	return nil
}

func parentOf(i int) int64 { return int64(i*7919%filterRows/20 + 1) }

func groupOf(i int) string { return fmt.Sprint("group ", i*31%100) }

func (o *ours) close() { o.db.Close() }

func (o *ours) exec(text string, params ...doc.Value) error {
	res, err := o.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text, Params: params}, o.dst[:0])
	if res.Body != nil {
		o.dst = res.Body
	}
	return err
}

func (o *ours) puts() (float64, error) {
	if err := o.exec(`del puts`); err != nil {
		return 0, err
	}
	params := rowOf(7).params()
	return timed(putCalls, func(i int) error {
		params[1].N = uint64(i)
		return o.exec(`put puts {title: $1, year: $2, rank: $3, done: $4, tag: $5}`, params...)
	})
}

func (o *ours) gets() (float64, error) {
	at := rand.New(rand.NewPCG(1, 2))
	params := []doc.Value{integer(0)}
	return timed(getCalls, func(int) error {
		params[0].N = at.Uint64N(filterRows) + 1
		return o.exec(`get notes where id = $1`, params...)
	})
}

func (o *ours) query(n int, text string) func() (float64, error) {
	return func() (float64, error) {
		if err := o.exec(text); err != nil { // the index is there before the clock runs
			return 0, err
		}
		return timed(n, func(int) error { return o.exec(text) })
	}
}
