package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func statementStats(t *testing.T, db *DB) []StatementStats {
	t.Helper()
	all, err := db.StatementStats(Everything())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// counted returns the counts of a shape without its times.
func counted(t *testing.T, db *DB, shape string) string {
	t.Helper()
	for _, s := range statementStats(t, db) {
		if s.Shape != shape {
			continue
		}
		if s.Longest <= 0 || s.Longest > s.Total || s.Total > time.Duration(s.Calls)*s.Longest {
			t.Errorf("%s: %d calls took %v, the longest of them %v", shape, s.Calls, s.Total, s.Longest)
		}
		return fmt.Sprintf("%d calls, %d rows, %d errors", s.Calls, s.Rows, s.Errors)
	}
	return "nothing"
}

func TestStatementsAreCountedByShape(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @unique)`)
	mustExec(t, db, `put c {n: 1}`)
	mustExec(t, db, `put  c {"n": 2}`)
	mustExec(t, db, `put c {n: $1}`, intParam(3))
	if _, err := exec(db, `put c {n: 3}`); err == nil {
		t.Fatal("a taken value was taken again")
	}
	mustExec(t, db, `get c where n > 1`)
	mustExec(t, db, `get c where n > $1`, intParam(7))
	mustExec(t, db, `compact`)
	if _, err := exec(db, `no statement`); err == nil {
		t.Fatal("no statement is one")
	}
	if _, err := exec(db, `get d where n = 1`); err == nil {
		t.Fatal("no collection is one")
	}
	if _, _, err := db.Batch(context.Background(), Everything(), []Statement{{Text: `set c {n: n + 10}`}, {Text: `get c where n > 12`}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := keyed(db, "k", `del c where n = 11 or n = 12`); err != nil {
			t.Fatal(err)
		}
	}
	for shape, want := range map[string]string{
		`create collection c (n int @unique)`: "1 calls, 0 rows, 0 errors",
		`put c {n: ?}`:                        "4 calls, 3 rows, 1 errors",
		`get c where n > ?`:                   "3 calls, 3 rows, 0 errors",
		`get d where n = ?`:                   "1 calls, 0 rows, 1 errors",
		`set c {n: n + ?}`:                    "1 calls, 3 rows, 0 errors",
		`del c where n = ? or n = ?`:          "1 calls, 2 rows, 0 errors",
		`compact`:                             "1 calls, 0 rows, 0 errors",
	} {
		if got := counted(t, db, shape); got != want {
			t.Errorf("%s: got %s, want %s", shape, got, want)
		}
	}
	if n := len(statementStats(t, db)); n != 7 {
		t.Errorf("%d shapes are counted: %v", n, statementStats(t, db))
	}
	if err := db.ResetStatementStats(Everything()); err != nil {
		t.Fatal(err)
	}
	if got := statementStats(t, db); len(got) != 0 || db.shapes.bytes.Load() != 0 {
		t.Errorf("after a reset: %v, %d bytes", got, db.shapes.bytes.Load())
	}
	mustExec(t, db, `get c where n > 1`)
	if got, want := counted(t, db, `get c where n > ?`), "1 calls, 1 rows, 0 errors"; got != want {
		t.Errorf("after the reset: %s, want %s", got, want)
	}
}

func TestTheLeastCalledShapesAreDropped(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	const often = `get c where n = 1`
	for i := range 3 * maxShapes {
		mustExec(t, db, often)
		mustExec(t, db, fmt.Sprintf(`get c select n as a%d`, i))
	}
	if n := len(statementStats(t, db)); n != maxShapes {
		t.Errorf("%d shapes are kept, want %d", n, maxShapes)
	}
	if got, want := counted(t, db, `get c where n = ?`), fmt.Sprintf("%d calls, 0 rows, 0 errors", 3*maxShapes); got != want {
		t.Errorf("the one called most: %s, want %s", got, want)
	}
	if got := counted(t, db, fmt.Sprintf(`get c select n as a%d`, 3*maxShapes-1)); got == "nothing" {
		t.Error("the latest is not counted")
	}
}

func TestParallelStatementsAreAllCounted(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 200 {
				if _, err := exec(db, fmt.Sprintf(`get c where n = %d`, i%3)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got, want := counted(t, db, `get c where n = ?`), "1600 calls, 0 rows, 0 errors"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSlowStatementsAreLoggedWithoutTheirValues(t *testing.T) {
	var log bytes.Buffer
	db := inMemory(t, Options{Log: zerolog.New(&log), Slow: 1})
	mustExec(t, db, `create collection c (n int, s text @unique)`)
	log.Reset()
	mustExec(t, db, `put c [{n: 12345, s: "secret"}, {n: 1, s: $1}]`, textParam("hidden"))
	if _, err := exec(db, `put c {s: "secret"}`); err == nil {
		t.Fatal("a taken value was taken again")
	}
	mustExec(t, db, `get c where s = "secret" and n = $1`, intParam(12345))
	got := log.String()
	for _, value := range []string{"secret", "hidden", "12345"} {
		if strings.Contains(got, value) {
			t.Errorf("the log holds %q:\n%s", value, got)
		}
	}
	for _, want := range []string{
		`"statement":"put c ?"`, `"rows":2,"failed":false`, `"statement":"put c {s: ?}"`, `"rows":0,"failed":true`,
		`"statement":"get c where s = ? and n = ?"`, `"rows":1,"failed":false`, `"ms":`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s:\n%s", want, got)
		}
	}
	log.Reset()
	db.opts.Slow = time.Hour
	mustExec(t, db, `get c`)
	if log.Len() > 0 {
		t.Errorf("a quick statement is logged: %s", log.String())
	}
}
