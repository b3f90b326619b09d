package engine

import (
	"cmp"
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

// mortal is a collection with a ttl of ten seconds on the field due, and a model of its rows, with a clock that the test moves
// forward and back. An expired row stays in the model until another row takes its unique value.
type mortal struct {
	fs   *crashfs.FS
	db   *DB
	now  int64 // epoch milliseconds
	name string
	ttl  bool // the field and its ttl exist
	rows map[int]mortalRow
	next int
}

type mortalRow struct {
	id   int
	n    int
	u    string // unique; empty is null
	due  int64
	ends bool // due is not null
}

const mortalSpan = 10_000

func (m *mortal) options() Options {
	return Options{FS: m.fs, Clock: func() time.Time { return time.UnixMilli(m.now) }}
}

func newMortal(t *rapid.T) *mortal {
	m := &mortal{fs: crashfs.New(1), now: 1_700_000_000_000, name: "due", ttl: true, rows: map[int]mortalRow{}, next: 1}
	var err error
	if m.db, err = Create(file, m.options()); err != nil {
		t.Fatal(err)
	}
	late := rapid.Bool().Draw(t, "late")
	index := map[bool]string{false: "@ttl(10s)"}[late]
	m.run(t, `create collection c (n int @sorted, u text @unique, due timestamp `+index+`)`)
	if late {
		a, b := m.draw(t), m.draw(t)
		a.u, b.u = "", "" // nothing has expired yet
		m.put(t, `put`, a, b)
		m.run(t, `create index on c (due) @ttl(10s)`)
	}
	return m
}

func (m *mortal) run(t *rapid.T, text string) {
	t.Helper()
	if _, err := exec(m.db, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (m *mortal) alive(r mortalRow) bool { return !m.ttl || !r.ends || r.due+mortalSpan > m.now }

// draw draws a row that expires soon, so that equal times occur.
func (m *mortal) draw(t *rapid.T) mortalRow {
	r := mortalRow{n: rapid.IntRange(0, 3).Draw(t, "n"), u: rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "u")}
	if r.ends = m.ttl && rapid.IntRange(0, 3).Draw(t, "ends") > 0; r.ends {
		r.due = m.now - mortalSpan + rapid.Int64Range(-1, 3).Draw(t, "in")
	}
	return r
}

func (m *mortal) text(r mortalRow) string {
	s := fmt.Sprintf("{n: %d", r.n)
	if r.id != 0 {
		s = fmt.Sprintf("{id: %d, n: %d", r.id, r.n)
	}
	if r.u != "" {
		s += fmt.Sprintf(`, u: "%s"`, r.u)
	}
	if r.ends {
		s += fmt.Sprintf(`, %s: %d`, m.name, r.due)
	}
	return s + "}"
}

// put writes rows by a put or an insert, which is refused if the model refuses it.
func (m *mortal) put(t *rapid.T, verb string, rows ...mortalRow) {
	after, next, taken := maps.Clone(m.rows), m.next, false
	var texts []string
	var ids []int
	for _, r := range rows {
		texts = append(texts, m.text(r))
		if r.id == 0 {
			r.id = next
		}
		old, found := after[r.id]
		taken = taken || verb == "insert" && found && m.alive(old)
		next = max(next, r.id+1)
		after[r.id] = r
		ids = append(ids, r.id)
	}
	m.write(t, verb+" c ["+strings.Join(texts, ", ")+"]", after, ids, next, taken)
}

// settle applies the rule of unique values after the rows of ids were written: of two rows with one value, the expired one is
// deleted. It reports whether two live rows hold one value.
func (m *mortal) settle(rows map[int]mortalRow, ids []int) (taken bool) {
	for _, id := range ids {
		for other, o := range rows {
			r, found := rows[id]
			switch {
			case !found || other == id || r.u == "" || o.u != r.u:
			case !m.alive(o):
				delete(rows, other)
			case !m.alive(r):
				delete(rows, id)
			default:
				return true
			}
		}
	}
	return false
}

// write runs a statement that writes the rows of ids and checks the rows after it, or that it is refused.
func (m *mortal) write(t *rapid.T, text string, after map[int]mortalRow, ids []int, next int, refused bool) {
	refused = m.settle(after, ids) || refused
	_, err := exec(m.db, text)
	if refused != (fail.KindOf(err) == fail.Conflict) || !refused && err != nil {
		t.Fatalf("at %d: %s: %v, should it be refused: %v", m.now, text, err, refused)
	}
	if !refused {
		m.rows, m.next = after, next
	}
}

// set changes the live rows with n; del deletes the first two of them by n.
func (m *mortal) set(t *rapid.T) {
	r, n := m.draw(t), rapid.IntRange(0, 3).Draw(t, "where")
	after := maps.Clone(m.rows)
	var ids []int
	for _, old := range m.living(byNothing) {
		if old.n == n {
			r.id = old.id
			after[r.id] = r
			ids = append(ids, r.id)
		}
	}
	u, due := "null", ""
	if r.u != "" {
		u = `"` + r.u + `"`
	}
	if m.ttl {
		due = fmt.Sprintf(", %s: null", m.name)
		if r.ends {
			due = fmt.Sprintf(", %s: %d", m.name, r.due)
		}
	}
	m.write(t, fmt.Sprintf(`set c {n: %d, u: %s%s} where n = %d`, r.n, u, due, n), after, ids, m.next, false)
}

func (m *mortal) del(t *rapid.T) {
	after := maps.Clone(m.rows)
	for _, r := range pageOf(m.living(func(a, b mortalRow) int { return cmp.Compare(a.n, b.n) }), 0, 2) {
		delete(after, r.id)
	}
	m.write(t, `del c order n limit 2`, after, nil, m.next, false)
}

// living returns the live rows, in an order and then by id.
func (m *mortal) living(order func(a, b mortalRow) int) []mortalRow {
	var out []mortalRow
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		if m.alive(m.rows[id]) {
			out = append(out, m.rows[id])
		}
	}
	slices.SortStableFunc(out, order)
	return out
}

func (m *mortal) dropAndAdd(t *rapid.T) {
	if m.ttl {
		maps.DeleteFunc(m.rows, func(_ int, r mortalRow) bool { return !m.alive(r) })
		for id, r := range m.rows {
			r.ends = false
			m.rows[id] = r
		}
		m.run(t, `alter collection c drop field `+m.name)
	} else {
		m.run(t, `alter collection c add field `+m.name+` timestamp @ttl(10s)`)
	}
	m.ttl = !m.ttl
}

// expire deletes the expired rows, unless the database refuses writes.
func (m *mortal) expire(t *rapid.T) {
	stored := m.db.Stats().Documents
	frozen := rapid.Bool().Draw(t, "frozen")
	if frozen {
		if _, err := m.db.Freeze(); err != nil {
			t.Fatal(err)
		}
		defer m.db.Thaw()
	}
	seq, _ := m.db.Position()
	deleted, err := m.db.Expire()
	if err != nil {
		t.Fatal(err)
	}
	want := stored - len(m.living(byNothing))
	if frozen {
		want = 0
	}
	if now, _ := m.db.Position(); deleted != want || now != seq+uint64(want) || m.db.Stats().Documents != stored-want {
		t.Fatalf("of %d documents %d were deleted, want %d, and the change moved from %d to %d", stored, deleted, want, seq, now)
	}
	if !frozen {
		maps.DeleteFunc(m.rows, func(_ int, r mortalRow) bool { return !m.alive(r) })
	}
}

func byNothing(_, _ mortalRow) int { return 0 }

func pageOf(rows []mortalRow, offset, limit int) []mortalRow {
	rows = rows[min(offset, len(rows)):]
	return rows[:min(limit, len(rows))]
}

func (m *mortal) check(t *rapid.T, text, want string) {
	t.Helper()
	if got := string(must(t, m.db, text)); got != want {
		t.Fatalf("at %d: %s\n got %s\nwant %s", m.now, text, got, want)
	}
}

func (m *mortal) ids(rows []mortalRow) string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf(`{"id":%d,"n":%d}`, r.id, r.n))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (m *mortal) same(t *rapid.T) {
	if stored := m.db.Stats().Documents; stored != len(m.rows) {
		t.Fatalf("at %d: %d rows are stored, want %d", m.now, stored, len(m.rows))
	}
	all := m.living(byNothing)
	m.check(t, `get c select id, n`, m.ids(all))
	m.check(t, `get c count`, fmt.Sprintf(`[{"count":%d}]`, len(all)))
	m.check(t, `collections`, fmt.Sprintf(`[{"name":"c","documents":%d}]`, len(all)))
	if got := collections(t, m.db)[0].Documents; got != len(all) {
		t.Fatalf("the collection is said to have %d documents, want %d", got, len(all))
	}
	n := rapid.IntRange(0, 3).Draw(t, "from")
	var from []mortalRow
	for _, r := range all {
		if r.n >= n {
			from = append(from, r)
		}
	}
	m.check(t, fmt.Sprintf(`get c where n >= %d count`, n), fmt.Sprintf(`[{"count":%d}]`, len(from)))
	m.check(t, fmt.Sprintf(`get c where n >= %d and id > 0 select id, n`, n), m.ids(from))
	explained := string(must(t, m.db, fmt.Sprintf(`explain get c where n >= %d count`, n)))
	if want := fmt.Sprintf(`"rows":%d,`, len(from)); !strings.Contains(explained[:strings.Index(explained, "}")], want) {
		t.Fatalf("at %d: explained as %s, want %s", m.now, explained, want)
	}
	for _, r := range m.rows {
		want := m.ids(nil)
		if m.alive(r) {
			want = m.ids([]mortalRow{r})
		}
		m.check(t, fmt.Sprintf(`get c where id = %d select id, n`, r.id), want)
		if r.u != "" && m.alive(r) {
			m.check(t, fmt.Sprintf(`get c where u = "%s" select id, n`, r.u), m.ids([]mortalRow{r}))
		}
	}
	offset, limit := rapid.IntRange(0, 2).Draw(t, "offset"), rapid.IntRange(0, 4).Draw(t, "limit")
	pages := fmt.Sprintf(" limit %d offset %d select id, n", limit, offset)
	m.check(t, `get c order n desc`+pages, m.ids(pageOf(m.living(func(a, b mortalRow) int { return cmp.Compare(b.n, a.n) }), offset, limit)))
	m.check(t, `get c order id desc`+pages, m.ids(pageOf(m.living(func(a, b mortalRow) int { return cmp.Compare(b.id, a.id) }), offset, limit)))
	if m.ttl {
		byDue := func(a, b mortalRow) int {
			switch {
			case a.ends && b.ends:
				return cmp.Compare(a.due, b.due)
			case a.ends:
				return 1
			case b.ends:
				return -1
			}
			return 0
		}
		m.check(t, `get c order `+m.name+pages, m.ids(pageOf(m.living(byDue), offset, limit)))
		m.check(t, `get c order `+m.name+` desc`+pages, m.ids(pageOf(m.living(func(a, b mortalRow) int { return byDue(b, a) }), offset, limit)))
		var soon []mortalRow
		for _, r := range all {
			if r.ends && r.due <= m.now-mortalSpan+1 {
				soon = append(soon, r)
			}
		}
		m.check(t, fmt.Sprintf(`get c where %s <= %d select id, n`, m.name, m.now-mortalSpan+1), m.ids(soon))
		m.check(t, fmt.Sprintf(`get c where %s <= %d count`, m.name, m.now-mortalSpan+1), fmt.Sprintf(`[{"count":%d}]`, len(soon)))
	}
}

// TestARowExpiresExactlyAtItsTime moves the clock by milliseconds around the expiry of rows, forward and back, and reads them
// with every kind of statement.
func TestARowExpiresExactlyAtItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMortal(t)
		defer func() { m.db.Close() }()
		withID := func(t *rapid.T) mortalRow {
			r := m.draw(t)
			r.id = rapid.IntRange(1, 8).Draw(t, "id")
			return r
		}
		tick := func(t *rapid.T) { m.now += rapid.Int64Range(0, 2).Draw(t, "ms") }
		tickBack := func(t *rapid.T) { m.now -= rapid.Int64Range(0, 3).Draw(t, "ms") }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { m.put(t, "put", m.draw(t)) }, "put two": func(t *rapid.T) { m.put(t, "put", m.draw(t), m.draw(t)) },
			"upsert": func(t *rapid.T) { m.put(t, "put", withID(t)) }, "insert": func(t *rapid.T) { m.put(t, "insert", withID(t), m.draw(t)) },
			"set": m.set, "del": m.del, "expire": m.expire, "tick": tick, "tick on": tick, "tick back": tickBack,
			"drop and add": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 || !m.ttl {
					m.dropAndAdd(t)
				}
			},
			"rename": func(t *rapid.T) {
				if to := rapid.SampledFrom([]string{"due", "until"}).Draw(t, "to"); m.ttl && to != m.name {
					m.run(t, `alter collection c rename field `+m.name+` to `+to)
					m.name = to
				}
			},
			"compact": func(t *rapid.T) { m.run(t, `compact`) },
			"reopen": func(t *rapid.T) {
				if err := m.db.Close(); err != nil {
					t.Fatal(err)
				}
				var err error
				if m.db, err = Open(file, m.options()); err != nil {
					t.Fatal(err)
				}
			},
			"": m.same,
		})
	})
}
