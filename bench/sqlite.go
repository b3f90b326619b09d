package main

import (
	"database/sql"
	"math/rand/v2"

	_ "github.com/mattn/go-sqlite3" // the peer
)

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
	if err := s.related(); err != nil {
		return nil, err
	}
	if s.put, err = db.Prepare(`insert into puts (title, year, rank, done, tag) values (?, ?, ?, ?, ?)`); err != nil {
		return nil, err
	}
	s.get, err = db.Prepare(`select id, title, year, rank, done, tag from notes where id = ?`)
	return s, err
}

// related is ours.related.
func (s *sqlite) related() error {
	for _, text := range []string{
		`create table parents (id integer primary key, title text)`,
		`create table children (id integer primary key, parent integer, title text)`, `create index children_parent on children (parent)`,
		`create table groups (id integer primary key, tag text, year integer)`,
	} {
		if _, err := s.db.Exec(text); err != nil {
			return err
		}
	}
	for i := range filterRows {
		r := rowOf(i)
		if i%20 == 0 {
			if _, err := s.db.Exec(`insert into parents (title) values (?)`, r.title); err != nil {
				return err
			}
		}
		if _, err := s.db.Exec(`insert into children (parent, title) values (?, ?)`, parentOf(i), r.title); err != nil {
			return err
		}
		if _, err := s.db.Exec(`insert into groups (tag, year) values (?, ?)`, groupOf(i), r.year); err != nil {
			return err
		}
	}
	return nil
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
