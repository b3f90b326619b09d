package main

import (
	"database/sql"
	"strings"
)

// ftsFigures compares the same searches with SQLite FTS5.
func ftsFigures(r *report, ours *texts, documents []string, asked []searches) error {
	db, err := newFTS(documents)
	if err != nil {
		r.skip("match beside SQLite FTS5", err.Error()+" (go run -tags sqlite_fts5 .)")
		return nil
	}
	defer db.Close()
	for _, s := range asked {
		if err := r.figure(figure{
			name: s.name, unit: "us", atLeast: 50,
			ours: side{"fenec", ours.match(s)}, peer: side{"SQLite FTS5", matchFTS(db, s)},
		}); err != nil {
			return err
		}
	}
	return nil
}

// newFTS is SQLite's full-text table in memory. It fails where the driver was built without it.
func newFTS(documents []string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := fillFTS(db, documents); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func fillFTS(db *sql.DB, documents []string) error {
	if _, err := db.Exec(`create virtual table docs using fts5(body)`); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	st, err := tx.Prepare(`insert into docs (body) values (?)`)
	if err != nil {
		return err
	}
	for _, body := range documents {
		if _, err := st.Exec(body); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// matchFTS orders by bm25(docs), which is faster here than `order by rank`.
func matchFTS(db *sql.DB, s searches) func() (float64, error) {
	return func() (float64, error) {
		st, err := db.Prepare(`select rowid from docs where docs match ? order by bm25(docs) limit 10`)
		if err != nil {
			return 0, err
		}
		defer st.Close()
		return p50(len(s.queries), func(i int) error {
			rows, err := st.Query(strings.ReplaceAll(s.queries[i], " ", " OR "))
			if err != nil {
				return err
			}
			defer rows.Close()
			var id int64
			for rows.Next() {
				if err := rows.Scan(&id); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
}
