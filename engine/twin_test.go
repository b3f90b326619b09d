package engine

import (
	"context"
	"fmt"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// twins are two collections of one database that hold the same documents, one with indexes and one without.
type twins struct {
	fs *crashfs.FS
	db *DB
}

const twinFields = `(n int %s, f float %s, t text %s, at timestamp %s, b bool, j json, u text %s)`

func newTwins(t *rapid.T) *twins {
	w := &twins{fs: crashfs.New(1)}
	var err error
	if w.db, err = Create(file, Options{FS: w.fs, Sync: always}); err != nil {
		t.Fatal(err)
	}
	w.both(t, func(c string) string {
		if c == "plain" {
			return `create collection plain ` + fmt.Sprintf(twinFields, "", "", "", "", "")
		}
		return `create collection indexed ` + fmt.Sprintf(twinFields, "@sorted", "@sorted", "@hash", "@sorted", "@sorted")
	})
	for _, path := range []string{"j.k @sorted", "j.h.x @hash"} {
		if _, err := exec(w.db, `create index on indexed (`+path[:len(path)-len(kindOf(path))]+`) `+kindOf(path)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func kindOf(path string) string {
	for i := range path {
		if path[i] == '@' {
			return path[i:]
		}
	}
	return ""
}

// both runs the same statement on each collection, each as a block of its own. Both succeed, or both fail with the same kind.
func (w *twins) both(t *rapid.T, text func(collection string) string) (indexed, plain []byte) {
	a, errA := exec(w.db, text("indexed"))
	b, errB := exec(w.db, text("plain"))
	if fail.KindOf(errA) != fail.KindOf(errB) || (errA == nil) != (errB == nil) {
		t.Fatalf("%s: with indexes %v, without %v", text("C"), errA, errB)
	}
	return a.Body, b.Body
}

func (w *twins) same(t *rapid.T, query string) {
	a, b := w.both(t, func(c string) string { return fmt.Sprintf(query, c) })
	if string(a) != string(b) {
		t.Fatalf("%s\nwith indexes: %s\nwithout:      %s", query, a, b)
	}
}

// Few distinct values, so that equal ones, neighbours and other kinds in a path occur.
var (
	ints   = rapid.SampledFrom([]string{"null", "0", "1", "2", "3", "-1", "9007199254740993", "9007199254740992", "9223372036854775807", "-9223372036854775808"})
	floats = rapid.SampledFrom([]string{"null", "0", "-0.0", "1", "1.5", "2.5", "-1e300", "9007199254740992"})
	texts  = rapid.SampledFrom([]string{`null`, `""`, `"a"`, `"b"`, `"ab"`, `"aaaaaaaab"`, `"aaaaaaaac"`, `"aaaaaaaa"`, `"é"`, `"日本"`})
	times  = rapid.SampledFrom([]string{`null`, `"2024-01-01"`, `"2024-01-01T00:00:00.001Z"`, `0`, `1700000000000`})
	jsons  = rapid.SampledFrom([]string{
		`null`, `{}`, `{k: 1}`, `{k: 1.0}`, `{k: "1"}`, `{k: [1, 2]}`, `{k: {x: 1}}`, `{k: true}`, `{h: {x: 1}}`, `{h: {x: "a"}, k: 2}`,
		`{k: "aaaaaaaab"}`, `{k: "aaaaaaaac"}`, `{k: 9007199254740993}`, `{k: 0.1}`, `[1]`, `"text"`,
	})
)

func document(t *rapid.T) string {
	return fmt.Sprintf(`{n: %s, f: %s, t: %s, at: %s, b: %s, j: %s, u: %s}`, ints.Draw(t, "n"), floats.Draw(t, "f"), texts.Draw(t, "t"),
		times.Draw(t, "at"), rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "b"), jsons.Draw(t, "j"), texts.Draw(t, "u"))
}

func literal(t *rapid.T, field string) string {
	notNull := func(s string) bool { return s != "null" }
	switch field {
	case "n":
		return ints.Filter(notNull).Draw(t, "value")
	case "f":
		return floats.Filter(notNull).Draw(t, "value")
	case "t", "u":
		return texts.Filter(notNull).Draw(t, "value")
	case "at":
		return times.Filter(notNull).Draw(t, "value")
	case "id":
		return fmt.Sprint(rapid.IntRange(1, 12).Draw(t, "value"))
	}
	return rapid.OneOf(ints, floats, texts).Filter(notNull).Draw(t, "value")
}

var twinPaths = rapid.SampledFrom([]string{"n", "f", "t", "at", "u", "j.k", "j.h.x", "id"})

func condition(t *rapid.T) string {
	field := twinPaths.Draw(t, "field")
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return fmt.Sprintf("%s in [%s, %s]", field, literal(t, field), literal(t, field))
	case 1:
		return field + rapid.SampledFrom([]string{" is null", " is not null"}).Draw(t, "null")
	default:
		return fmt.Sprintf("%s %s %s", field, rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op"), literal(t, field))
	}
}

func conditions(t *rapid.T) string {
	s := condition(t)
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		s += rapid.SampledFrom([]string{" and ", " and ", " or "}).Draw(t, "join") + condition(t)
	}
	return s
}

func order(t *rapid.T) string {
	first := twinPaths.Draw(t, "key")
	s := " order " + first + rapid.SampledFrom([]string{"", " desc"}).Draw(t, "way")
	if second := twinPaths.Draw(t, "second key"); second != first && rapid.Bool().Draw(t, "second") {
		s += ", " + second
	}
	return s
}

func page(t *rapid.T) string {
	return fmt.Sprintf(" limit %d offset %d", rapid.IntRange(0, 5).Draw(t, "limit"), rapid.IntRange(0, 4).Draw(t, "offset"))
}

// TestAnIndexMatchesTheScan runs the twins through writes, compacts, reopenings and late index declarations, and
// compares their answers.
func TestAnIndexMatchesTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		defer func() { w.db.Close() }()
		format := func(text string) func(string) string {
			return func(c string) string { return fmt.Sprintf(text, c) }
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { w.both(t, format(`put %s `+document(t))) },
			"put some": func(t *rapid.T) {
				w.both(t, format(`put %s [`+document(t)+`, `+document(t)+`, `+document(t)+`]`))
			},
			"upsert": func(t *rapid.T) {
				w.both(t, format(fmt.Sprintf(`put %%s {id: %d, n: %s, j: %s}`, rapid.IntRange(1, 12).Draw(t, "id"), ints.Draw(t, "n"), jsons.Draw(t, "j"))))
			},
			"set": func(t *rapid.T) {
				w.both(t, format(`set %s {n: `+ints.Draw(t, "n")+`, t: `+texts.Draw(t, "t")+`} where `+condition(t)))
			},
			"set path":  func(t *rapid.T) { w.both(t, format(`set %s {j.k: `+ints.Draw(t, "k")+`} where `+condition(t))) },
			"set first": func(t *rapid.T) { w.same(t, `set %s {u: "a"} where `+conditions(t)+order(t)+` limit 2 returning *`) },
			"delete":    func(t *rapid.T) { w.same(t, `del %s where `+conditions(t)+order(t)+` limit 2 returning id`) },
			"failing batch": func(t *rapid.T) {
				_, _, err := w.db.Batch(context.Background(), Everything(), statements1(
					`put indexed `+document(t), `set indexed {n: 1} where `+condition(t), `del indexed where `+condition(t), `get nothing`))
				if fail.KindOf(err) != fail.NotFound {
					t.Fatal(err)
				}
			},
			"compact": func(t *rapid.T) { w.both(t, func(string) string { return "compact" }) },
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
				w.same(t, `get %s where `+conditions(t))
				w.same(t, `get %s where `+conditions(t)+order(t)+page(t))
				w.same(t, `get %s`+order(t)+page(t))
				w.same(t, `get %s where `+conditions(t)+` count`)
			},
		})
	})
}
