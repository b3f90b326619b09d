package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// altered is a collection and a model of it in plain maps. Its fields are ints, and json objects with the one key k, each with
// or without an index. The index of a json field is on the path to k.
type altered struct {
	fs     *crashfs.FS
	db     *DB
	fields []alteredField
	docs   map[int]map[string]int // a field that is missing is null
	next   int
	seq    uint64
}

type alteredField struct {
	name, index string
	json        bool
}

func (f *alteredField) path() string {
	if f.json {
		return f.name + ".k"
	}
	return f.name
}

func newAltered(t *rapid.T) *altered {
	m := &altered{fs: crashfs.New(1), fields: []alteredField{{name: "first"}}, docs: map[int]map[string]int{}, next: 1}
	var err error
	if m.db, err = Create(file, Options{FS: m.fs}); err != nil {
		t.Fatal(err)
	}
	m.run(t, 1, `create collection c (first int)`)
	return m
}

// run runs a statement and checks that it makes that many changes.
func (m *altered) run(t *rapid.T, changes int, text string) {
	if _, err := exec(m.db, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m.seq += uint64(changes)
	if seq, _ := m.db.Position(); seq != m.seq {
		t.Fatalf("%s: at change %d, want %d", text, seq, m.seq)
	}
}

func (m *altered) field(t *rapid.T) *alteredField {
	return &m.fields[rapid.IntRange(0, len(m.fields)-1).Draw(t, "field")]
}

func (m *altered) freeName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "first", "k"}).Filter(func(name string) bool {
		return !slices.ContainsFunc(m.fields, func(f alteredField) bool { return f.name == name })
	}).Draw(t, "name")
}

func (m *altered) add(t *rapid.T) {
	if len(m.fields) > 6 {
		return
	}
	f := alteredField{name: m.freeName(t), json: rapid.Bool().Draw(t, "json"), index: rapid.SampledFrom([]string{"", "@hash", "@sorted"}).Draw(t, "index")}
	switch {
	case !f.json:
		m.run(t, 1, fmt.Sprintf(`alter collection c add field %s int %s`, f.name, f.index))
	default:
		m.run(t, 1, fmt.Sprintf(`alter collection c add field %s json`, f.name))
		if f.index != "" {
			m.run(t, 1, fmt.Sprintf(`create index on c (%s.k) %s`, f.name, f.index))
		}
	}
	m.fields = append(m.fields, f)
}

func (m *altered) drop(t *rapid.T) {
	name := m.field(t).name
	text := `alter collection c drop field ` + name
	if len(m.fields) == 1 {
		if _, err := exec(m.db, text); fail.KindOf(err) != fail.Invalid {
			t.Fatalf("the last field was dropped: %v", err)
		}
		return
	}
	m.run(t, 1, text)
	m.fields = slices.DeleteFunc(m.fields, func(f alteredField) bool { return f.name == name })
	for _, d := range m.docs {
		delete(d, name)
	}
}

func (m *altered) rename(t *rapid.T) {
	f, to := m.field(t), m.freeName(t)
	m.run(t, 1, fmt.Sprintf(`alter collection c rename field %s to %s`, f.name, to))
	for _, d := range m.docs {
		if v, ok := d[f.name]; ok {
			d[to] = v
			delete(d, f.name)
		}
	}
	f.name = to
}

func (m *altered) put(t *rapid.T) {
	d := map[string]int{}
	var set []string
	for i := range m.fields {
		if rapid.Bool().Draw(t, "null") {
			continue
		}
		n := rapid.IntRange(0, 3).Draw(t, "value")
		d[m.fields[i].name] = n
		set = append(set, fmt.Sprintf("%s: %d", m.fields[i].path(), n))
	}
	m.run(t, 1, `put c {`+strings.Join(set, ", ")+`}`)
	m.docs[m.next] = d
	m.next++
}

func (m *altered) set(t *rapid.T) {
	f := m.field(t)
	id, n := rapid.IntRange(1, 8).Draw(t, "id"), rapid.IntRange(0, 3).Draw(t, "value")
	found := 0
	if d := m.docs[id]; d != nil {
		found, d[f.name] = 1, n
	}
	m.run(t, found, fmt.Sprintf(`set c {%s: %d} where id = %d`, f.path(), n, id))
}

// refused runs a block of alters with a put between them. Its last statement fails, which undoes all.
func (m *altered) refused(t *rapid.T) {
	f := m.field(t).name
	_, at, err := m.db.Batch(context.Background(), Everything(), statements1(
		`alter collection c add field fresh int @sorted`, `put c {fresh: 1}`, `alter collection c rename field `+f+` to other`,
		`set c {other: null}`, `alter collection c drop field other`, `set c {fresh: 2}`, `get nothing`))
	if fail.KindOf(err) != fail.NotFound || at != 6 {
		t.Fatalf("statement %d: %v", at, err)
	}
}

func (m *altered) reopen(t *rapid.T, fs *crashfs.FS) {
	db, err := Open(file, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	m.fs, m.db = fs, db
}

func (m *altered) row(id int) string {
	out := fmt.Sprintf(`{"id":%d`, id)
	for i := range m.fields {
		f := &m.fields[i]
		v, ok := m.docs[id][f.name]
		switch {
		case !ok:
			out += fmt.Sprintf(`,"%s":null`, f.name)
		case f.json:
			out += fmt.Sprintf(`,"%s":{"k":%d}`, f.name, v)
		default:
			out += fmt.Sprintf(`,"%s":%d`, f.name, v)
		}
	}
	return out + "}"
}

func (m *altered) rows(where func(map[string]int) bool) string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(m.docs)) {
		if where(m.docs[id]) {
			out = append(out, m.row(id))
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (m *altered) same(t *rapid.T) {
	check := func(text, want string) {
		res, err := exec(m.db, text)
		if err != nil || string(res.Body) != want {
			t.Fatalf("%s: %v\n got %s\nwant %s", text, err, res.Body, want)
		}
	}
	check(`get c`, m.rows(func(map[string]int) bool { return true }))
	for i := range m.fields {
		f := &m.fields[i]
		n := rapid.IntRange(0, 3).Draw(t, "asked")
		check(fmt.Sprintf(`get c where %s = %d`, f.path(), n), m.rows(func(d map[string]int) bool {
			v, ok := d[f.name]
			return ok && v == n
		}))
		described := string(must(t, m.db, `describe c`))
		index := "null"
		if f.index != "" {
			index = strconv.Quote(f.index)
		}
		if want := `{"field":"` + f.path() + `",`; f.index != "" && !strings.Contains(described, want) || !f.json && !strings.Contains(described, `"field":"`+f.name+`","type":"int","required":false,"collate":null,"index":`+index) {
			t.Fatalf("described as %s, want %s with the index %s", described, f.path(), index)
		}
	}
	wantLive(t, m.db)
}

// wantLive compares the live bytes of the database with a count of its documents.
func wantLive(t interface{ Fatalf(string, ...any) }, db *DB) {
	live := int64(0)
	for _, table := range db.tables {
		table.ids.Ascend(1, func(_ int64, ref uint64) bool {
			live += putSize(table.number, table.memory.document(ref))
			return true
		})
	}
	if got := db.Stats().LiveBytes; got != live {
		t.Fatalf("%d bytes are said to be live, %d are", got, live)
	}
}

func must(t *rapid.T, db *DB, text string) []byte {
	res, err := exec(db, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return res.Body
}

func TestAlteredCollectionsMatchTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newAltered(t)
		defer func() { m.db.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "drop": m.drop, "rename": m.rename, "put": m.put, "put again": m.put, "set": m.set, "refused": m.refused,
			"delete": func(t *rapid.T) {
				id := rapid.IntRange(1, 8).Draw(t, "id")
				changes := 0
				if m.docs[id] != nil {
					changes = 1
				}
				m.run(t, changes, fmt.Sprintf(`del c where id = %d`, id))
				delete(m.docs, id)
			},
			"compact": func(t *rapid.T) { m.run(t, 0, `compact`) },
			"reopen": func(t *rapid.T) {
				if err := m.db.Close(); err != nil {
					t.Fatal(err)
				}
				m.reopen(t, m.fs)
			},
			"image": func(t *rapid.T) {
				r, _, _, err := m.db.OpenImage()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				fs := crashfs.New(2)
				if _, err := install(file, r, Options{FS: fs}); err != nil {
					t.Fatal(err)
				}
				m.db.Close()
				m.reopen(t, fs)
			},
			"salvage": func(t *rapid.T) {
				if err := m.db.Close(); err != nil {
					t.Fatal(err)
				}
				if r, err := Check(m.fs, file, "/salvaged"); err != nil || !r.Sound() {
					t.Fatal(r, err)
				}
				if err := m.fs.Rename("/salvaged", file); err != nil {
					t.Fatal(err)
				}
				m.reopen(t, m.fs)
			},
			"": m.same,
		})
	})
}

// TestACompactDropsTheBytesOfADroppedField looks for them in the file and in memory.
func TestACompactDropsTheBytesOfADroppedField(t *testing.T) {
	for name, write := range map[string][]string{
		"in a document as it was":                    nil,
		"in a document written anew before the drop": {`set c {n: 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			db := inMemory(t, Options{})
			mustExec(t, db, `create collection c (n int, secret text, body text)`)
			mustExec(t, db, `put c {n: 1, secret: "a dropped value", body: "`+strings.Repeat("x", 70_000)+`"}`)
			mustExec(t, db, `put c {n: 1, secret: "a dropped value", body: "kept"}`)
			for _, text := range write {
				mustExec(t, db, text)
			}
			mustExec(t, db, `alter collection c drop field secret`)
			mustExec(t, db, `set c {n: 3} where id = 2`)
			if held(db, 2) {
				t.Error("a document written after the drop holds the value still")
			}
			if !held(db, 1) {
				t.Error("the drop rewrote a document")
			}
			mustExec(t, db, `compact`)
			if held(db, 1) || held(db, 2) {
				t.Error("a document holds the value after the compact")
			}
			if file, _ := image(t, db); bytes.Contains(file, []byte("a dropped value")) {
				t.Error("the file holds the value after the compact")
			}
			wantRows(t, db, `get c select n, body where id = 2`, `[{"n":3,"body":"kept"}]`)
			wantRows(t, db, `get c select len(body)`, `[{"len(body)":70000},{"len(body)":4}]`)
		})
	}
}

func held(db *DB, id int64) bool {
	return bytes.Contains(db.tables["c"].Get(id), []byte("a dropped value"))
}

// TestARenameKeepsBuiltIndexes renames fields of a built index and of one that is being built.
func TestARenameKeepsBuiltIndexes(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @sorted, j json)`)
	mustExec(t, db, `create index on c (j.k) @hash`)
	mustExec(t, db, `put c {n: 1, j: {k: 1}}`)
	c := db.tables["c"]
	sorted, hash := c.Sorted("n"), c.Hash("j.k")
	mustExec(t, db, `alter collection c rename field n to m`)
	mustExec(t, db, `alter collection c rename field j to k`)
	if c.Sorted("m") != sorted || c.Hash("k.k") != hash || c.indexes.Index("n") != nil || c.indexes.Index("j.k") != nil {
		t.Error("an index was built anew, or is found by the old name")
	}
	_, _, err := db.Batch(context.Background(), Everything(), statements1(`alter collection c rename field m to n`, `get nothing`))
	wantKind(t, err, fail.NotFound)
	if c.Sorted("m") != sorted {
		t.Error("the rename put back lost the index")
	}
}

// TestAnIndexBuiltForADroppedFieldIsNotUsedForAnotherOfItsName drops the field that an index is being
// built for, and renames another field to its name before the index is declared.
func TestAnIndexBuiltForADroppedFieldIsNotUsedForAnotherOfItsName(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int, other int)`)
	mustExec(t, db, `put c [{n: 1, other: 2}, {n: 2, other: 2}]`)
	wantKind(t, declareBeside(t, db, `create index on c (n) @unique`, func() {
		mustExec(t, db, `alter collection c drop field n`)
		mustExec(t, db, `alter collection c rename field other to n`)
	}), fail.Conflict)
}

// TestAUniqueIndexChecksWritesDuringItsBuild writes a value a second time during the build, with both rows live and with one of
// them expired.
func TestAUniqueIndexChecksWritesDuringItsBuild(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int, at timestamp @ttl(1s))`)
	mustExec(t, db, `put c {n: 1}`)
	wantKind(t, declareBeside(t, db, `create index on c (n) @unique`, func() { mustExec(t, db, `put c {n: 1}`) }), fail.Conflict)
	mustExec(t, db, `del c where id = 2`)
	wantKind(t, declareBeside(t, db, `create index on c (n) @unique`, func() { mustExec(t, db, `put c {n: 1, at: 0}`) }), 0)
	_, err := exec(db, `put c {n: 1}`)
	wantKind(t, err, fail.Conflict)
}

// declareBeside runs a create index, and calls meanwhile after the index is built and before it is declared.
func declareBeside(t *testing.T, db *DB, text string, meanwhile func()) error {
	t.Helper()
	s, err := db.statements.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	built := db.beginBuild(s)
	defer db.endBuild(built)
	env := query.Env{Ctx: context.Background()}
	if err := db.build(&env, built); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	_, err = db.write(&write{ctx: env.Ctx, scope: Everything(), statement: s, env: env, built: built})
	return err
}
