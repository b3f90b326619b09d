package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fenec/engine/derived"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// searchFields are fields with the indexes that return scores. The same fields without an index are scanned, except by match,
// which needs its index.
var searchFields = map[string]string{
	"indexed": `(n int @unique, v vector<3> @hnsw(cosine, m=2, ef_construction=4), h vector<2, f16> @hnsw(cosine, quant=int8, m=2), s sparse<4> @inverted, t text @text(prefix=4, chars), c text collate und @sorted)`,
	"plain":   `(n int, v vector<3>, h vector<2, f16>, s sparse<4>, t text, c text collate und)`,
}

// Few distinct vectors, many of them one-hot, so that equal ones occur.
var (
	threes  = rapid.SampledFrom([]string{"null", "[1, 0, 0]", "[0, 1, 0]", "[0, 0, 1]", "[0, 0, 0]", "[1, 1, 0]", "[-1, 0.5, 2]", "[2, 0, 0]", "[0.1, 0.2, 0.3]"})
	twos    = rapid.SampledFrom([]string{"null", "[1, 0]", "[0, 1]", "[0.1, 0.7]", "[-1, -1]", "[0, 0]", "[3, 4]"})
	sparses = rapid.SampledFrom([]string{"null", `"{}/4"`, `"{1:1}/4"`, `"{1:1,2:2}/4"`, `"{2:-1,4:0.5}/4"`, `"{3:7}/4"`, `"{1:1,2:1,3:1,4:1}/4"`})
	prose   = rapid.SampledFrom([]string{`null`, `""`, `"the quick brown fox"`, `"The fox"`, `"quick, quick"`, `"日本語"`, `"foxes are brown"`, `"..."`})
	names   = rapid.SampledFrom([]string{`null`, `"a"`, `"A"`, `"ä"`, `"b"`, `"Z"`, `"zebra"`, `"aaaaaaaaa"`, `"aaaaaaaaA"`})
)

func searchDocument(t *rapid.T, id bool) string {
	fields := fmt.Sprintf(`v: %s, h: %s, s: %s, t: %s, c: %s}`, threes.Draw(t, "v"), twos.Draw(t, "h"), sparses.Draw(t, "s"), prose.Draw(t, "t"), names.Draw(t, "c"))
	if id {
		return fmt.Sprintf(`{id: %d, `, rapid.IntRange(1, 12).Draw(t, "id")) + fields
	}
	return "{" + fields
}

func newSearchTwins(t *rapid.T) *twins {
	w := &twins{fs: crashfs.New(1)}
	var err error
	if w.db, err = Create(file, Options{FS: w.fs, Sync: always}); err != nil {
		t.Fatal(err)
	}
	w.both(t, func(c string) string { return "create collection " + c + " " + searchFields[c] })
	return w
}

func (w *twins) open(t *rapid.T, fs *crashfs.FS) {
	db, err := Open(file, Options{FS: fs, Sync: always})
	if err != nil {
		t.Fatal(err)
	}
	w.fs, w.db = fs, db
}

// TestASearchMatchesTheScan is TestAnIndexMatchesTheScan for the indexes that score.
func TestASearchMatchesTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSearchTwins(t)
		defer func() { w.db.Close() }()
		each := func(text string) {
			w.both(t, func(c string) string { return strings.ReplaceAll(text, "%s", c) })
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { each(`put %s ` + searchDocument(t, false)) },
			"put some": func(t *rapid.T) {
				each(`put %s [` + searchDocument(t, false) + `, ` + searchDocument(t, true) + `, ` + searchDocument(t, true) + `]`)
			},
			"upsert": func(t *rapid.T) { each(`put %s ` + searchDocument(t, true)) },
			"set": func(t *rapid.T) {
				each(fmt.Sprintf(`set %%s {v: %s, t: %s} where id %% 3 = %d`, threes.Draw(t, "v"), prose.Draw(t, "t"), rapid.IntRange(0, 2).Draw(t, "rest")))
			},
			"delete": func(t *rapid.T) {
				each(fmt.Sprintf(`del %%s where id %% 4 = %d limit 2`, rapid.IntRange(0, 3).Draw(t, "rest")))
			},
			"failing batch": func(t *rapid.T) {
				_, _, err := w.db.Batch(context.Background(), Everything(), statements1(
					`put indexed `+searchDocument(t, true), `put indexed `+searchDocument(t, false), `del indexed where id < 5`, `get nothing`))
				if fail.KindOf(err) != fail.NotFound {
					t.Fatal(err)
				}
			},
			"link":    func(*rapid.T) { settle(w.db) },
			"compact": func(*rapid.T) { each("compact") },
			"reopen": func(t *rapid.T) {
				if err := w.db.Close(); err != nil {
					t.Fatal(err)
				}
				w.open(t, w.fs)
			},
			"crash": func(t *rapid.T) {
				fs := w.fs.Crash()
				w.db.Close()
				w.open(t, fs)
			},
			"": func(t *rapid.T) {
				field := rapid.SampledFrom([]string{"v", "h", "s"}).Draw(t, "field")
				values := map[string]*rapid.Generator[string]{"v": threes, "h": twos, "s": sparses}[field]
				near := field + " " + values.Filter(func(s string) bool { return s != "null" }).Draw(t, "vector")
				w.same(t, `get %s near `+near+` limit 5`)
				w.same(t, `get %s where id > 4 near `+near+` limit 3 offset 1`)
				w.same(t, `get %s order c, id desc limit 5`)
				w.same(t, `get %s where c > "a" order c desc`)
			},
			"hold": func(t *rapid.T) {
				w.db.tables["indexed"].Text("t")
				mustHold(t, w.db)
			},
		})
	})
}

// mustHold checks that every built index equals a newly built one.
func mustHold(tb rapid.TB, db *DB) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	for _, t := range db.tables {
		checkIndexes(tb, db, t)
	}
}

// checkIndexes compares the built indexes of t with ones that are built now, by all that each finds.
func checkIndexes(tb rapid.TB, db *DB, t *table) {
	tb.Helper()
	aside := newDerived(db)
	aside.Stop()
	anew := aside.NewCollection(t.number, t.schema, t)
	for _, x := range t.indexes.Indexes() {
		if !x.Built() {
			continue
		}
		if got, want := found(t, t.indexes, x), found(t, anew, x); !slices.Equal(got, want) {
			tb.Fatalf("the index on %s finds\n%v\nand built anew\n%v", x.On(), got, want)
		}
	}
}

// found returns what the index of c that is declared as x is finds.
func found(t *table, c *derived.Collection, x *derived.Index) (hits []index.Hit) {
	all := t.Len()
	add := func(id int64) bool { hits = append(hits, index.Hit{ID: id}); return true }
	name, rest, isPath := strings.Cut(x.On(), ".")
	slot := t.schema.Field(name).Slot
	each := func(search func(v doc.Value)) {
		t.Ascend(1, func(d doc.Document) bool {
			raw := d.Field(slot)
			if isPath {
				raw = raw.Path(strings.Split(rest, "."))
			}
			if v := raw.Value(); v.Kind != doc.Null {
				search(v)
			}
			return true
		})
	}
	switch x.Kind() {
	case doc.IndexSorted, doc.IndexTTL:
		c.Sorted(x.On()).Range(index.Bound{Unbounded: true}, index.Bound{Unbounded: true}, false, add)
	case doc.IndexHash, doc.IndexUnique:
		s := c.Hash(x.On())
		each(func(v doc.Value) { s.Ascend(doc.Hash(v), add) })
		add(int64(s.Len()))
	case doc.IndexText:
		s := c.Text(x.On())
		each(func(v doc.Value) { hits = s.Search(v.B, all, nil, hits) })
		add(int64(s.Len()))
	case doc.IndexInverted:
		s := c.Inverted(x.On())
		each(func(v doc.Value) { hits = s.Search(v.Weights(), all, nil, hits) })
		add(int64(s.Len()))
	case doc.IndexHNSW:
		s := c.Vectors(x.On())
		each(func(v doc.Value) { hits = s.Search(v.Floats(nil), all, all, nil, hits) })
		add(int64(s.Len()))
	}
	return hits
}
