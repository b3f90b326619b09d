package query

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fenec/engine/collation"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/index/text"
	"fenec/engine/query/syntax"

	"pgregory.net/rapid"
)

// memory is a database in plain maps, to run plans over.
type memory struct {
	tables  map[string]*memoryTable
	version uint64
	ended   int // statements that reached EndStatement
}

type memoryTable struct {
	schema *doc.Schema
	docs   map[int64]doc.Document
	ids    []int64 // ascending
	next   int64
	hashes map[string]*index.Hash
	sorted map[string]*index.Sorted
	scored map[string]any // the other indexes
	reads  int            // documents handed out
}

func newMemory() *memory { return &memory{tables: map[string]*memoryTable{}} }

func (m *memory) Names() []string { return slices.Sorted(maps.Keys(m.tables)) }

func (m *memory) Table(name string) Table {
	if t := m.tables[name]; t != nil {
		return t
	}
	return nil
}

func (m *memory) SchemaVersion() uint64 { return m.version }

func (m *memory) NextID(table string) int64 {
	t := m.tables[table]
	if t.next == math.MaxInt64 {
		return 0
	}
	t.next++
	return t.next
}

func (m *memory) TakeID(table string, id int64) {
	t := m.tables[table]
	t.next = max(t.next, id)
}

func (m *memory) Put(table string, d doc.Document) error {
	t := m.tables[table]
	if err := doc.Validate(d); err != nil {
		return err
	}
	if at, found := slices.BinarySearch(t.ids, d.ID()); !found {
		t.ids = slices.Insert(t.ids, at, d.ID())
	}
	t.docs[d.ID()] = slices.Clone(d)
	t.changed()
	return nil
}

func (m *memory) Delete(table string, id int64) error {
	t := m.tables[table]
	at, found := slices.BinarySearch(t.ids, id)
	if !found {
		return errors.New("deleted a document that is not there")
	}
	t.ids = slices.Delete(t.ids, at, at+1)
	clear(t.docs[id]) // so that a reader that still uses it reads garbage
	delete(t.docs, id)
	t.changed()
	return nil
}

func (m *memory) CreateCollection(s *doc.Schema) error {
	m.tables[s.Name] = &memoryTable{schema: s, docs: map[int64]doc.Document{}}
	m.tables[s.Name].changed()
	m.version++
	return nil
}

func (m *memory) DropCollection(name string) error {
	delete(m.tables, name)
	m.version++
	return nil
}

func (m *memory) CreateIndex(_ context.Context, table, on string, x doc.Index) error {
	t := m.tables[table]
	t.schema = t.schema.Clone()
	if field := t.schema.Field(on); field != nil {
		field.Index = x
	} else {
		t.schema.Paths = append(t.schema.Paths, doc.PathIndex{Path: on, Index: x.Kind})
	}
	m.version++
	return nil
}

func (m *memory) AlterCollection(s *doc.Schema) error {
	m.tables[s.Name].schema = s
	m.tables[s.Name].changed()
	m.version++
	return nil
}

func (m *memory) EndStatement(context.Context) error {
	m.ended++
	for _, t := range m.tables {
		for _, field := range t.schema.Fields {
			if field.Index.Kind != doc.IndexUnique {
				continue
			}
			seen := map[string]bool{}
			for _, d := range t.docs {
				r := d.Field(field.Slot)
				if r != nil && seen[string(r)] {
					return fail.New(fail.Conflict, "two documents of %s hold one %s", t.schema.Name, field.Name)
				}
				seen[string(r)] = true
			}
		}
	}
	return nil
}

// snapshot copies what a failed statement must restore.
func (m *memory) snapshot() *memory {
	c := &memory{tables: map[string]*memoryTable{}, version: m.version}
	for name, t := range m.tables {
		docs := map[int64]doc.Document{}
		for id, d := range t.docs {
			docs[id] = slices.Clone(d)
		}
		c.tables[name] = &memoryTable{schema: t.schema, docs: docs, ids: slices.Clone(t.ids), next: t.next}
		c.tables[name].changed()
	}
	return c
}

func (t *memoryTable) changed() {
	t.hashes, t.sorted, t.scored = map[string]*index.Hash{}, map[string]*index.Sorted{}, map[string]any{}
}

func (t *memoryTable) Schema() *doc.Schema { return t.schema }
func (t *memoryTable) Len() int            { return len(t.ids) }

func (t *memoryTable) Get(id int64) doc.Document {
	t.reads++
	return t.docs[id]
}

func (t *memoryTable) Ascend(from int64, fn func(doc.Document) bool) {
	at, _ := slices.BinarySearch(t.ids, from)
	for _, id := range t.ids[at:] {
		t.reads++
		if !fn(t.docs[id]) {
			return
		}
	}
}

func (t *memoryTable) value(on string, id int64) doc.Value {
	parts := strings.Split(on, ".")
	r := t.docs[id].Field(t.schema.Field(parts[0]).Slot)
	return r.Path(parts[1:]).Value()
}

func (t *memoryTable) Hash(on string) *index.Hash {
	if k := indexOn(t.schema, on); k != doc.IndexHash && k != doc.IndexUnique {
		return nil
	}
	x := t.hashes[on]
	if x == nil {
		x = &index.Hash{}
		for _, id := range t.ids {
			if v := t.value(on, id); v.Kind != doc.Null {
				x.Add(doc.Hash(v), id)
			}
		}
		t.hashes[on] = x
	}
	return x
}

// Ready fails where the test says that the context ended meanwhile.
func (t *memoryTable) Ready(ctx context.Context, on string) error {
	return fail.Stopped(ctx, "building the index on %s of %s", on, t.schema.Name)
}

func (t *memoryTable) Sorted(on string) *index.Sorted {
	if !indexOn(t.schema, on).Ordered() {
		return nil
	}
	x := t.sorted[on]
	if x == nil {
		by := collation.None
		if f := t.schema.Field(on); f != nil {
			by = f.Collate
		}
		x = index.NewSorted(by, func(id int64) doc.Value { return t.value(on, id) })
		for _, id := range t.ids {
			x.Add(t.value(on, id), id)
		}
		t.sorted[on] = x
	}
	return x
}

// scoredIndex is an index on a field, made where it is not there, of a kind declared; nil of another.
func scoredIndex[X any](t *memoryTable, on string, kind doc.IndexKind, make func(f *doc.Field) *X) *X {
	f := t.schema.Field(on)
	if f == nil || f.Index.Kind != kind {
		return nil
	}
	if t.scored[on] == nil {
		t.scored[on] = make(f)
	}
	return t.scored[on].(*X)
}

// each calls fn with each value of a field that is not null.
func (t *memoryTable) each(on string, fn func(v doc.Value, id int64)) {
	for _, id := range t.ids {
		if v := t.value(on, id); v.Kind != doc.Null {
			fn(v, id)
		}
	}
}

func (t *memoryTable) Vectors(on string) *hnsw.Graph {
	return scoredIndex(t, on, doc.IndexHNSW, func(f *doc.Field) *hnsw.Graph {
		o := f.Index.HNSW
		g := hnsw.New(hnsw.Options{Dim: f.Type.Dim, Metric: o.Metric, M: o.M, EFConstruction: o.EFConstruction, Quant: o.Quant},
			func(id int64, dst []float32) []float32 { return t.value(on, id).Floats(dst) })
		t.each(on, func(v doc.Value, id int64) { g.Add(id, v.Floats(nil)) })
		for g.Link(1, math.MaxInt) > 0 {
		}
		return g
	})
}

func (t *memoryTable) Text(on string) *text.Index {
	return scoredIndex(t, on, doc.IndexText, func(f *doc.Field) *text.Index {
		x := text.New(text.Options(f.Index.Text))
		t.each(on, func(v doc.Value, id int64) { x.Add(id, v.B) })
		return x
	})
}

func (t *memoryTable) Inverted(on string) *index.Inverted {
	return scoredIndex(t, on, doc.IndexInverted, func(*doc.Field) *index.Inverted {
		x := &index.Inverted{}
		t.each(on, func(v doc.Value, id int64) { x.Add(v.Weights(), id) })
		return x
	})
}

// testNow is the value of now() in tests: 2026-01-02T03:04:05.678Z.
var testNow = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// prepare parses and prepares one statement.
func (m *memory) prepare(text string) (*Plan, error) {
	st, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	return Prepare(st, m)
}

// exec runs one statement; a failed one leaves the database unchanged.
func (m *memory) exec(text string, params ...doc.Value) (Result, error) {
	p, err := m.prepare(text)
	if err != nil {
		return Result{}, err
	}
	var before *memory
	if p.Writes() {
		before = m.snapshot()
	}
	r, err := p.Run(&Env{Ctx: context.Background(), Params: params, Now: testNow}, m, nil)
	if err != nil && before != nil {
		m.tables, m.version = before.tables, before.version
	}
	return r, err
}

// must runs one statement that works.
func (m *memory) must(t rapid.TB, text string, params ...doc.Value) Result {
	t.Helper()
	r, err := m.exec(text, params...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}
