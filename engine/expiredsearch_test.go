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

// fading is a database whose rows expire, and a model of the rows, with a clock that moves forward and back.
type fading struct {
	fs   *crashfs.FS
	db   *DB
	now  int64
	name string // of the field with the ttl; empty for none
	rows map[int]fadingRow
}

type fadingRow struct {
	text, fields string
	at           int64 // -1 for none
}

const (
	fadingSpan    = 10_000
	fadingIndexes = `n int @sorted, g int @hash, t text @text(prefix=4), v vector<3> @hnsw(l2, m=2, ef_construction=4), s sparse<4> @inverted`
)

// fadingQueries read rows by every index and count them with every kind of count.
var fadingQueries = []string{
	`get c select id match t "quick fox"`,
	`get c select id match t "fox" limit 1`,
	`get c select id where n > 1 match t "the brown fox quick" limit 3`,
	`get c select id match t "fox" order n desc, id limit 2`,
	`get c select id match t "quick fox" rerank v [1, 0, 0] candidates 2`,
	`get c select id match t "quick brown" near v [0, 1, 0] fuse candidates 3`,
	`get c select id near v [1, 0, 0] limit 3`,
	`get c select id where n < 3 near v [1, 1, 0] ef 1 limit 3 offset 1`,
	`get c select id near s "{1:1,2:2}/4" limit 2`,
	`get c count`, `get c where n >= 1 count`, `get c where g = 1 count`, `get c where n in [0, 2] count`,
	`get c select count(*), min(n), max(n)`, `get c select g, count(*), max(n) group g`,
	`get c order n limit 2 select id`, `get c where g = 2 select id`, `collections`,
	`get d lookup c on g = n select id limit 1`,
}

func (m *fading) options() Options {
	return Options{FS: m.fs, Clock: func() time.Time { return time.UnixMilli(m.now) }}
}

func (m *fading) write(t *rapid.T, text string) {
	t.Helper()
	if _, err := exec(m.db, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (m *fading) alive(r fadingRow) bool { return r.at < 0 || r.at+fadingSpan > m.now }

// time draws the expiry of a row that expires soon or has just expired.
func (m *fading) time(t *rapid.T) int64 {
	if m.name == "" || rapid.IntRange(0, 3).Draw(t, "endless") == 0 {
		return -1
	}
	return m.now - fadingSpan + rapid.Int64Range(-5, 5).Draw(t, "in")
}

func (m *fading) row(id int, r fadingRow, name string) string {
	text := fmt.Sprintf("{id: %d, %s, t: %s", id, r.fields, r.text)
	if r.at >= 0 {
		text += fmt.Sprintf(", %s: %d", name, r.at)
	}
	return text + "}"
}

func (m *fading) put(t *rapid.T) {
	var texts []string
	for range rapid.IntRange(1, 4).Draw(t, "rows") {
		id := rapid.IntRange(1, 15).Draw(t, "id")
		fields := fmt.Sprintf("n: %d, g: %d, v: %s, s: %s", rapid.IntRange(0, 3).Draw(t, "n"), rapid.IntRange(0, 2).Draw(t, "g"), threes.Draw(t, "v"), sparses.Draw(t, "s"))
		m.rows[id] = fadingRow{prose.Draw(t, "t"), fields, m.time(t)}
		texts = append(texts, m.row(id, m.rows[id], m.name))
	}
	m.write(t, "put c ["+strings.Join(texts, ", ")+"]")
}

// set changes the text, the time, or both, of a third of the live rows.
func (m *fading) set(t *rapid.T) {
	rest, text, at := rapid.IntRange(0, 2).Draw(t, "rest"), prose.Draw(t, "text"), m.time(t)
	what := rapid.SampledFrom([]string{"text", "time", "both"}).Draw(t, "what")
	var items []string
	if what != "time" {
		items = append(items, "t: "+text)
	}
	if m.name != "" && what != "text" {
		items = append(items, m.name+": "+map[bool]string{true: "null", false: fmt.Sprint(at)}[at < 0])
	}
	if items == nil {
		return
	}
	for id, r := range m.rows {
		if id%3 != rest || !m.alive(r) {
			continue
		}
		if what != "time" {
			r.text = text
		}
		if m.name != "" && what != "text" {
			r.at = at
		}
		m.rows[id] = r
	}
	m.write(t, fmt.Sprintf("set c {%s} where id %% 3 = %d", strings.Join(items, ", "), rest))
}

func (m *fading) del(t *rapid.T) {
	rest := rapid.IntRange(0, 3).Draw(t, "rest")
	maps.DeleteFunc(m.rows, func(id int, r fadingRow) bool { return id%4 == rest && m.alive(r) })
	m.write(t, fmt.Sprintf("del c where id %% 4 = %d", rest))
}

func (m *fading) expire(t *rapid.T) {
	if _, err := m.db.Expire(); err != nil {
		t.Fatal(err)
	}
	m.sweep()
}

func (m *fading) sweep() {
	maps.DeleteFunc(m.rows, func(_ int, r fadingRow) bool { return !m.alive(r) })
}

// dropOrAdd drops the ttl, which deletes the expired rows, or declares one on a new field. The drop runs at
// an earlier time than the reads before it, so rows that had expired by then live on without an expiry.
func (m *fading) dropOrAdd(t *rapid.T) {
	if m.name == "" {
		m.name = "at"
		m.write(t, `alter collection c add field at timestamp @ttl(10s)`)
		return
	}
	m.now += 5
	m.same(t)
	m.now -= 5
	m.write(t, `alter collection c drop field `+m.name)
	m.sweep()
	for id, r := range m.rows {
		r.at = -1
		m.rows[id] = r
	}
	m.name = ""
}

func (m *fading) failingBatch(t *rapid.T) {
	before := maps.Clone(m.rows)
	var texts []string
	for id := range 4 {
		r := fadingRow{prose.Draw(t, "text"), "n: 1", m.time(t)}
		texts = append(texts, m.row(id+1, r, m.name))
	}
	_, _, err := m.db.Batch(context.Background(), Everything(), statements1(`put c [`+strings.Join(texts, ", ")+`]`, `del c where id < 8`, `get nothing`))
	if fail.KindOf(err) != fail.NotFound {
		t.Fatal(err)
	}
	m.rows = before
}

func (m *fading) reopen(t *rapid.T, readOnly bool) {
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	o := m.options()
	o.ReadOnly = readOnly
	var err error
	if m.db, err = Open(file, o); err != nil {
		t.Fatal(err)
	}
}

// same compares some answers with those of a database that never held the expired rows.
func (m *fading) same(t *rapid.T) {
	fresh, err := Create(file, Options{FS: crashfs.New(1), Clock: m.options().Clock})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	setUpFading(t, fresh)
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		if r := m.rows[id]; m.alive(r) {
			must(t, fresh, "put c "+m.row(id, r, "due"))
		}
	}
	for range 6 {
		q := rapid.SampledFrom(fadingQueries).Draw(t, "query")
		if got, want := string(must(t, m.db, q)), string(must(t, fresh, q)); got != want {
			t.Fatalf("at %d, %s:\n got %s\nwant %s\nof %v", m.now, q, got, want, m.rows)
		}
	}
}

func setUpFading(t *rapid.T, db *DB) {
	for _, text := range []string{`create collection c (` + fadingIndexes + `, due timestamp @ttl(10s))`, `create collection d (n int)`, `put d [{n: 0}, {n: 1}]`} {
		must(t, db, text)
	}
}

// TestSearchesAndCountsIgnoreExpiredRows moves the clock forward and back over rows that are not deleted, as in a frozen tenant or
// one that is open for reading only.
func TestSearchesAndCountsIgnoreExpiredRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &fading{fs: crashfs.New(1), now: 1_700_000_000_000, name: "due", rows: map[int]fadingRow{}}
		var err error
		if m.db, err = Create(file, m.options()); err != nil {
			t.Fatal(err)
		}
		defer func() { m.db.Close() }()
		setUpFading(t, m.db)
		m.put(t)
		m.put(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "put more": m.put, "set": m.set, "del": m.del, "expire": m.expire, "failing batch": m.failingBatch,
			"tick":      func(t *rapid.T) { m.now += rapid.Int64Range(0, 4).Draw(t, "ms") },
			"tick back": func(t *rapid.T) { m.now -= rapid.Int64Range(0, 4).Draw(t, "ms") },
			"drop or add": func(t *rapid.T) {
				if m.name == "" || rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
					m.dropOrAdd(t)
				}
			},
			"compact": func(t *rapid.T) { m.write(t, "compact") },
			"reopen":  func(t *rapid.T) { m.reopen(t, false) },
			"read only": func(t *rapid.T) {
				m.reopen(t, true)
				m.same(t)
				m.now++
				m.same(t)
				m.reopen(t, false)
			},
			"frozen": func(t *rapid.T) {
				if _, err := m.db.Freeze(); err != nil {
					t.Fatal(err)
				}
				m.now += 3
				m.same(t)
				m.db.Thaw()
			},
			"": m.same,
		})
	})
}
