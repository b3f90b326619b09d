package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// made writes a file with valid checksums that contains an image with a head and the operations ops.
func made(t *testing.T, ops ...[]byte) *crashfs.FS {
	t.Helper()
	fs := crashfs.New(1)
	rec := appendHead(make([]byte, wal.HeaderSize), head{Tables: 1, History: history{Term: 1}})
	for _, op := range ops {
		rec = append(rec, op...)
	}
	log, err := wal.Create(file, wal.Options{FS: fs}, wal.Record{Kind: wal.Image, Data: rec})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

func number(n uint64) doc.Schema {
	return doc.Schema{Name: fmt.Sprint("c", n), Slots: 3, Fields: []doc.Field{
		{Name: "n", Type: doc.Type{Kind: doc.TypeInt}, Index: doc.Index{Kind: doc.IndexSorted}},
		{Name: "at", Type: doc.Type{Kind: doc.TypeTimestamp}, Index: doc.Index{Kind: doc.IndexUnique}, Slot: 1},
		{Name: "tags", Type: doc.Type{Kind: doc.TypeList, Elem: doc.TypeText}, Slot: 2},
	}}
}

func schemaOp(op byte, table uint64, s doc.Schema) []byte { return appendSchema(nil, op, table, &s) }

func putOp(id int64, values ...doc.Value) []byte {
	var b doc.Builder
	b.Reset(len(values))
	for slot, v := range values {
		b.SetRaw(slot, doc.Append(nil, v))
	}
	return b.AppendTo([]byte{opPut, 1}, id)
}

func TestAFileWithRecordsThatAreNeverWrittenIsRefused(t *testing.T) {
	create := schemaOp(opCreate, 1, number(1))
	for name, ops := range map[string][][]byte{
		"a document of id 0":                 {create, putOp(0)},
		"a document of a negative id":        {create, putOp(-5)},
		"a next id past what there is":       {create, appendNumbers(nil, opNext, 1, math.MaxUint64)},
		"a collection of number 0":           {schemaOp(opCreate, 0, number(1))},
		"a number after which there is none": {schemaOp(opCreate, math.MaxUint64, number(1))},
		"a second head":                      {create, appendHead(nil, head{History: history{Term: 2}})},
		"a collection that begins twice":     {create, create},
		"a name that is taken":               {create, schemaOp(opCreate, 2, number(1))},
		"a schema of another name":           {create, schemaOp(opSchema, 1, number(2))},
		"a document of no collection":        {putOp(1)},
	} {
		db, err := Open(file, Options{FS: made(t, ops...)})
		if fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			db.Close()
		}
		if report, err := Check(made(t, ops...), file, ""); err != nil || report.Sound() {
			t.Errorf("%s: a check says %+v, %v", name, report, err)
		}
	}
}

// TestDocumentsThatDoNotFitTheirSchemaAreRead runs every statement on values of other types than their fields.
func TestDocumentsThatDoNotFitTheirSchemaAreRead(t *testing.T) {
	text, list := doc.TextValue([]byte("a")), doc.Raw(mustParse(t, `[1, {"x": [null]}]`)).Value()
	fs := made(t, schemaOp(opCreate, 1, number(1)),
		putOp(1, text, list, doc.IntValue(1)), putOp(2, list, text, text), putOp(3, doc.FloatValue(math.NaN()), doc.IntValue(7), list),
		putOp(4, doc.IntValue(4), doc.TimestampValue(math.MinInt64), doc.BoolValue(true)), putOp(5), putOp(6, text))
	db := reopen(t, Options{FS: fs})
	for _, q := range []string{
		`get c1`, `get c1 where n > 1`, `get c1 where n = 1 or at > "2024-01-01"`, `get c1 order n`, `get c1 order n desc limit 2`,
		`get c1 order at, tags`, `get c1 where n in [1, 4] count`, `get c1 where tags has "a"`, `get c1 where at < now()`,
		`get c1 select n + 1`, `get c1 where at = "2024-01-01"`, `get c1 where n is null`, `set c1 {n: 5} where id = 1`,
		`set c1 {n: n + 1}`, `del c1 where n = 5`, `put c1 {n: 9}`, `compact`, `create index on c1 (at) @sorted`, `del c1`,
	} {
		_, err := exec(db, q)
		if kind := fail.KindOf(err); err != nil && kind != fail.Invalid && kind != fail.Conflict {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func TestOpenAndCheckRefuseTheSameImpossibleBlocks(t *testing.T) {
	block := func(seq uint64, ops ...byte) []byte {
		b := binary.LittleEndian.AppendUint64(make([]byte, wal.HeaderSize), seq)
		return append(append(b, make([]byte, 8)...), ops...)
	}
	del := appendNumbers(nil, opDelete, 1, 5)
	for name, rec := range map[string][]byte{
		"no head":                        make([]byte, wal.HeaderSize),
		"a count too high":               block(2, del...),
		"a count too low":                block(0, del...),
		"an operation that is not known": block(1, 99, 1),
		"an operation cut short":         block(1, del[:2]...),
	} {
		fs := made(t, schemaOp(opCreate, 1, number(1)))
		log, err := wal.Open(file, wal.Options{FS: fs}, func(wal.Kind, []byte, int, int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		log.Stage(wal.Block, rec)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, Options{FS: fs}); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: %v", name, err)
		}
		if report, err := Check(fs, file, ""); err != nil || report.Sound() {
			t.Errorf("%s: a check says %+v, %v", name, report, err)
		}
	}
}

func mustParse(t *testing.T, text string) []byte {
	t.Helper()
	b, err := doc.ParseJSON(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestASalvagedFileOpens damages the end of one collection and the beginning of another of the same name.
func TestASalvagedFileOpens(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c [{n: 1}, {n: 2}]`)
	from := db.Stats().FileBytes
	if _, _, err := db.Batch(context.Background(), Everything(), statements1(`drop collection c`, `create collection c (n int)`)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `put c {n: 3}`)
	mustExec(t, db, `create index on c (n) @hash`)
	mustExec(t, db, `put c {n: 4}`)
	db.Close()
	flip(t, fs, from+30)
	report, err := Check(fs, file, "/saved.fenec")
	if err != nil || report.Sound() || report.Lost != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	saved, err := Open("/saved.fenec", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	wantRows(t, saved, `get c where n = 4`, `[{"id":2,"n":4}]`)
	wantRows(t, saved, `get c count`, `[{"count":1}]`)
}

// TestSalvageOfACollectionWhoseDropIsLost damages only the drop: the current collection of that name is kept.
func TestSalvageOfACollectionWhoseDropIsLost(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c [{n: 1}, {n: 2}]`)
	from := db.Stats().FileBytes
	mustExec(t, db, `drop collection c`)
	mustExec(t, db, `create collection c (n int, m int)`)
	mustExec(t, db, `put c {n: 3, m: 4}`)
	db.Close()
	flip(t, fs, from+30)
	report, err := Check(fs, file, "/saved.fenec")
	if err != nil || report.Sound() || report.Lost != 0 || len(report.Collections) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	saved, err := Open("/saved.fenec", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	wantRows(t, saved, `get c`, `[{"id":1,"n":3,"m":4}]`)
}

// TestCheckUsesOneSegment checks a file with more records than a ref could address if each were a segment.
func TestCheckUsesOneSegment(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	for range 100 {
		mustExec(t, db, `put c {n: 1}`)
	}
	db.Close()
	c := checker{db: newDB(file, Options{FS: fs}.withDefaults())}
	if _, err := wal.Check(fs, file, c.visit); err != nil {
		t.Fatal(err)
	}
	if n, docs := len(c.db.memory.segments), c.db.tables["c"].Len(); n != 1 || docs != 100 {
		t.Errorf("%d documents take %d segments", docs, n)
	}
}
