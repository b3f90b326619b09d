package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// guests is a collection with two unique fields and a ttl, and a model of its rows.
type guests struct {
	fs   *crashfs.FS
	db   *DB
	now  int64
	rows map[int]guest
	next int
}

type guest struct {
	id   int // 0 to let the database assign one
	k, p string
	n    int
	due  int64 // 0 for null
}

const guestSpan = 10_000

func (g *guests) options() Options {
	return Options{FS: g.fs, Clock: func() time.Time { return time.UnixMilli(g.now) }}
}

func (g *guests) alive(r guest) bool { return r.due == 0 || r.due+guestSpan > g.now }

func drawGuest(t *rapid.T, g *guests) guest {
	value := func(label string) string { return rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, label) }
	r := guest{k: value("k"), p: value("p"), n: rapid.IntRange(0, 3).Draw(t, "n")}
	if rapid.IntRange(0, 2).Draw(t, "own id") == 0 {
		r.id = rapid.IntRange(1, 6).Draw(t, "id")
	}
	if rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
		r.due = g.now - guestSpan + rapid.Int64Range(-1, 4).Draw(t, "in")
	}
	return r
}

func (r guest) text() string {
	fields := []string{fmt.Sprintf("n: %d", r.n)}
	if r.id != 0 {
		fields = append(fields, fmt.Sprintf("id: %d", r.id))
	}
	if r.k != "" {
		fields = append(fields, fmt.Sprintf("k: %q", r.k))
	}
	if r.p != "" {
		fields = append(fields, fmt.Sprintf("p: %q", r.p))
	}
	if r.due != 0 {
		fields = append(fields, fmt.Sprintf("due: %d", r.due))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// modes are the ways of an insert to treat a row whose id or value is taken, and what each does to a row of the model.
var modes = []struct {
	text   string
	absent bool
	change func(there *guest)
}{
	{"", false, nil},
	{" if absent", true, nil},
	{" if absent", true, nil},
	{" if absent else set {n: n + 10}", true, func(r *guest) { r.n += 10 }},
	{` if absent else set {k: coalesce(p, "d"), n: n * 2}`, true, func(r *guest) {
		if r.k = r.p; r.k == "" {
			r.k = "d"
		}
		r.n *= 2
	}},
}

// insert applies an insert of rows to the model and returns how many rows it writes. ok is false if it is refused.
func (g *guests) insert(rows []guest, absent bool, change func(*guest)) (written int, ok bool) {
	before, next := maps.Clone(g.rows), g.next
	defer func() {
		if !ok {
			g.rows, g.next = before, next
		}
	}()
	touched := map[int]bool{}
	for _, r := range rows {
		var there []int
		for id, other := range g.rows {
			if g.alive(other) && (id == r.id || absent && (r.k != "" && r.k == other.k || r.p != "" && r.p == other.p)) {
				there = append(there, id)
			}
		}
		switch {
		case len(there) == 0:
		case !absent:
			return 0, false
		case change == nil:
			continue
		case len(there) > 1:
			return 0, false
		default:
			row := g.rows[there[0]]
			change(&row)
			g.rows[row.id], touched[row.id] = row, true
			written++
			continue
		}
		if r.id == 0 {
			r.id = g.next
		}
		g.next = max(g.next, r.id+1)
		g.rows[r.id], touched[r.id] = r, true
		written++
	}
	return written, g.distinct(touched)
}

// distinct reports whether no touched row shares a value with another live row. Of two rows that share one, it deletes the
// expired one, as the end of a statement does.
func (g *guests) distinct(touched map[int]bool) bool {
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		for other, r := range g.rows {
			row, found := g.rows[id]
			if !found || id == other || !(row.k != "" && row.k == r.k || row.p != "" && row.p == r.p) {
				continue
			}
			switch {
			case !g.alive(r):
				delete(g.rows, other)
			case !g.alive(row):
				delete(g.rows, id)
			default:
				return false
			}
		}
	}
	return true
}

func (g *guests) check(t *rapid.T) {
	t.Helper()
	want := ""
	for _, id := range slices.Sorted(maps.Keys(g.rows)) {
		if r := g.rows[id]; g.alive(r) {
			want += fmt.Sprintf(`{"id":%d,"k":%s,"p":%s,"n":%d},`, id, orNull(r.k), orNull(r.p), r.n)
		}
	}
	res, err := exec(g.db, "get c select id, k, p, n")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.Body); got != "["+strings.TrimSuffix(want, ",")+"]" {
		t.Fatalf("the rows are\n%s\nwant\n[%s]", got, want)
	}
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return fmt.Sprintf("%q", s)
}

func TestInsertIfAbsentMatchesTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &guests{fs: crashfs.New(1), now: 1_700_000_000_000, rows: map[int]guest{}, next: 1}
		var err error
		if g.db, err = Create(file, g.options()); err != nil {
			t.Fatal(err)
		}
		defer func() { g.db.Close() }()
		if _, err := exec(g.db, "create collection c (k text @unique, p text @unique, n int, due timestamp @ttl(10s))"); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				mode := rapid.SampledFrom(modes).Draw(t, "mode")
				var rows []guest
				var texts []string
				for range rapid.IntRange(1, 4).Draw(t, "rows") {
					r := drawGuest(t, g)
					rows, texts = append(rows, r), append(texts, r.text())
				}
				text := "insert into c [" + strings.Join(texts, ", ") + "]" + mode.text
				seq, _ := g.db.Position()
				res, err := exec(g.db, text)
				written, ok := g.insert(rows, mode.absent, mode.change)
				if ok != (err == nil) || !ok && fail.KindOf(err) != fail.Conflict {
					t.Fatalf("%s is answered %v, and in the model it is well: %v", text, err, ok)
				}
				if res.Affected != int64(written)*int64(b2i(ok)) {
					t.Fatalf("%s wrote %d rows, and in the model %d", text, res.Affected, written)
				}
				if now, _ := g.db.Position(); written == 0 && now != seq || !ok && now != seq {
					t.Fatalf("%s wrote nothing, and moved the counter from %d to %d", text, seq, now)
				}
			},
			"delete": func(t *rapid.T) {
				id := rapid.IntRange(1, 8).Draw(t, "id")
				if _, err := exec(g.db, fmt.Sprintf("del c where id = %d", id)); err != nil {
					t.Fatal(err)
				}
				if r, ok := g.rows[id]; ok && g.alive(r) {
					delete(g.rows, id)
				}
			},
			"time passes": func(t *rapid.T) { g.now += rapid.Int64Range(0, 2).Draw(t, "ms") },
			"sweep": func(t *rapid.T) {
				if _, err := g.db.Expire(); err != nil {
					t.Fatal(err)
				}
				maps.DeleteFunc(g.rows, func(_ int, r guest) bool { return !g.alive(r) })
			},
			"reopen": func(t *rapid.T) {
				if err := g.db.Close(); err != nil {
					t.Fatal(err)
				}
				if g.db, err = Open(file, g.options()); err != nil {
					t.Fatal(err)
				}
			},
			"": g.check,
		})
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAFailedBatchLeavesNoInsertIfAbsent(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, "create collection c (k text @unique, n int)")
	mustExec(t, db, `insert into c {k: "a", n: 1}`)
	before := dump(t, db)
	_, at, err := db.Batch(context.Background(), Everything(), []Statement{
		{Text: `insert into c [{k: "a"}, {k: "b"}] if absent else set {n: n + 1}`},
		{Text: `insert into c {k: "b"} if absent`},
		{Text: `get c where k = "b" count require 2`},
	})
	wantKind(t, err, fail.Require)
	if at != 2 || dump(t, db) != before {
		t.Errorf("after a failure at %d there is %s, want %s", at, dump(t, db), before)
	}
	mustExec(t, db, `insert into c {k: "c"}`)
	wantRows(t, db, "get c select id, k", `[{"id":1,"k":"a"},{"id":2,"k":"c"}]`)
}
