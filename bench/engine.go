package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"fenec/engine"
	"fenec/engine/doc"

	_ "github.com/mattn/go-sqlite3" // the peer
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

const (
	ourPut    = `put notes {title: $1, year: $2, rank: $3, done: $4, tag: $5}`
	sqlitePut = `insert into notes (title, year, rank, done, tag) values (?, ?, ?, ?, ?)`
)

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
			name: "lookup of an equal value in a hash index",
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

const (
	putCalls = 100_000
	getCalls = 100_000
)

// ours is a database on a file of memory.
type ours struct {
	db  *engine.DB
	dst []byte
}

func newOurs() (*ours, error) {
	db, err := engine.Create("bench.fenec", engine.Options{FS: memoryFS{}})
	if err != nil {
		return nil, err
	}
	o := &ours{db: db}
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
	return o, nil
}

func (o *ours) close() { o.db.Close() }

func (o *ours) exec(text string, params ...doc.Value) error {
	res, err := o.db.Exec(context.Background(), engine.Statement{Text: text, Params: params}, o.dst[:0])
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

// sqlite is SQLite's database in memory, one connection.
type sqlite struct {
	db       *sql.DB
	put, get *sql.Stmt
}

func newSQLite() (*sqlite, error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, name := range []string{"notes", "pages", "hashed", "puts"} {
		if _, err := db.Exec(`create table ` + name + ` (id integer primary key, title text, year integer, rank real, done integer, tag text)`); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"pages", "hashed"} {
		if _, err := db.Exec(`create index ` + name + `_year on ` + name + ` (year)`); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"notes", "pages", "hashed"} {
		st, err := db.Prepare(`insert into ` + name + ` (title, year, rank, done, tag) values (?, ?, ?, ?, ?)`)
		if err != nil {
			return nil, err
		}
		for i := range filterRows {
			r := rowOf(i)
			if _, err := st.Exec(r.title, r.year, r.rank, r.done, r.tag); err != nil {
				return nil, err
			}
		}
	}
	s := &sqlite{db: db}
	if s.put, err = db.Prepare(`insert into puts (title, year, rank, done, tag) values (?, ?, ?, ?, ?)`); err != nil {
		return nil, err
	}
	s.get, err = db.Prepare(`select id, title, year, rank, done, tag from notes where id = ?`)
	return s, err
}

func (s *sqlite) close() { s.db.Close() }

func (s *sqlite) puts() (float64, error) {
	if _, err := s.db.Exec(`delete from puts`); err != nil {
		return 0, err
	}
	r := rowOf(7)
	return timed(putCalls, func(i int) error {
		_, err := s.put.Exec(r.title, i, r.rank, r.done, r.tag)
		return err
	})
}

func (s *sqlite) gets() (float64, error) {
	at := rand.New(rand.NewPCG(1, 2))
	return timed(getCalls, func(int) error {
		rows, err := s.get.Query(at.Int64N(filterRows) + 1)
		if err != nil {
			return err
		}
		return scanAll(rows)
	})
}

func (s *sqlite) query(n int, text string) func() (float64, error) {
	return func() (float64, error) {
		st, err := s.db.Prepare(text)
		if err != nil {
			return 0, err
		}
		defer st.Close()
		return timed(n, func(int) error {
			rows, err := st.Query()
			if err != nil {
				return err
			}
			return scanAll(rows)
		})
	}
}

func (s *sqlite) count(n int, text string) func() (float64, error) {
	return func() (float64, error) {
		st, err := s.db.Prepare(text)
		if err != nil {
			return 0, err
		}
		defer st.Close()
		var found int
		return timed(n, func(int) error { return st.QueryRow().Scan(&found) })
	}
}

func scanAll(rows *sql.Rows) error {
	defer rows.Close()
	var r row
	var id int64
	for rows.Next() {
		if err := rows.Scan(&id, &r.title, &r.year, &r.rank, &r.done, &r.tag); err != nil {
			return err
		}
	}
	return rows.Err()
}

func text(s string) doc.Value { return doc.Value{Kind: doc.Text, B: []byte(s)} }

func integer(n int64) doc.Value { return doc.Value{Kind: doc.Int, N: uint64(n)} }
