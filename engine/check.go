package engine

import (
	"context"
	"encoding/binary"
	"fmt"

	"fenec/engine/doc"
	"fenec/engine/wal"
	"fenec/internal/vfs"
)

// Report is what Check found in a file.
type Report struct {
	wal.Report
	Seq         uint64
	Collections []CollectionInfo // those whose schema can be read
	// Lost counts documents that can be read but whose collection cannot: its schema was in a damaged record.
	Lost int
	// Problems lists faults of records whose checksums are right, in the order of the file.
	Problems []string
}

// Sound reports whether the whole file can be read. A record cut short at the end is what a crash leaves and is sound.
func (r *Report) Sound() bool { return len(r.Damage) == 0 && len(r.Problems) == 0 }

// Check reads the file at path, skips what is damaged and returns a report. It does not change the file. If salvage is
// not empty, what can be read is written to a new file of that path.
func Check(fs vfs.FS, path, salvage string) (Report, error) {
	o := Options{FS: fs}.withDefaults()
	c := checker{db: newDB(path, o)}
	var err error
	c.report.Report, err = wal.Check(o.FS, path, c.visit)
	if err != nil {
		return c.report, err
	}
	if !c.broken && c.db.history == (history{}) {
		c.problem(0, "the file has no head: it does not begin with an image")
	}
	c.report.Seq = c.db.seq
	for _, name := range c.db.names {
		t := c.db.tables[name]
		c.report.Collections = append(c.report.Collections, CollectionInfo{t.schema, t.Len()})
	}
	if salvage == "" {
		return c.report, nil
	}
	return c.report, c.salvage(salvage)
}

// checker builds as much of a database as it can from records, some of which may be missing.
type checker struct {
	db     *DB
	first  int64  // offset of the first record, where the one segment of the memory begins
	broken bool   // something is missing from what was read so far
	whole  uint64 // if broken, the last change before which nothing is missing
	report Report
}

// maxProblems bounds what a report lists.
const maxProblems = 100

// problem adds a problem to the report.
func (c *checker) problem(offset int64, format string, args ...any) {
	c.breaks()
	c.mention(offset, format, args...)
}

func (c *checker) mention(offset int64, format string, args ...any) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, fmt.Sprintf("offset %d: ", offset)+fmt.Sprintf(format, args...))
	}
}

// breaks records that something is missing from here on.
func (c *checker) breaks() {
	if !c.broken {
		c.broken, c.whole = true, c.db.seq
	}
}

// visit processes one record. The log has already reported a damaged one.
func (c *checker) visit(offset int64, kind wal.Kind, payload []byte, err error) {
	switch {
	case err != nil:
		if kind != wal.Derived {
			c.breaks()
		}
		return
	case kind == wal.Derived:
		if err := c.db.derived.Restore(payload, c.db.seq); err != nil {
			c.mention(offset, "%s: it is made again", err)
		}
		return
	case kind == wal.Fork:
		if c.broken && len(payload) == forkSize {
			c.db.seq = binary.LittleEndian.Uint64(payload) // it also counts the missing changes
		}
		if err := c.db.replayFork(payload); err != nil {
			c.problem(offset, "%s", err)
		}
		return
	case kind == wal.Block && len(payload) < blockHead:
		c.problem(offset, "a block of %d bytes has no head", len(payload))
		return
	case len(payload) == 0:
		return
	}
	segment, at := c.place(offset, payload)
	from, to := at, at+len(payload)
	if kind == wal.Block {
		from += blockHead
	}
	counted := c.db.seq
	err = operations(c.db.memory.segments[segment], from, to, func(o *operation) error {
		counted++
		return c.take(o, segment)
	})
	if err != nil {
		c.problem(offset, "%s", err)
	}
	if kind == wal.Block {
		c.db.seq = binary.LittleEndian.Uint64(payload)
		if !c.broken && c.db.seq != counted {
			c.problem(offset, "a block says it ends at change %d where the file counts %d", c.db.seq, counted)
		}
	}
}

// place returns where in the memory payload lies. The payloads are parts of one slice, which is one segment: a file may
// have more records than the memory can have segments.
func (c *checker) place(offset int64, payload []byte) (segment, at int) {
	m := &c.db.memory
	if len(m.segments) == 0 {
		c.first = offset
	} else if whole, at := m.segments[0], offset-c.first; at < int64(len(whole)) && &whole[at] == &payload[0] {
		return 0, int(at)
	}
	return m.adopt(payload[:cap(payload)]), 0
}

func (c *checker) take(o *operation, segment int) error {
	t := c.db.numbers[o.Table]
	switch {
	case t == nil && !c.broken: // apply returns the error
	case o.Op == opPut && t == nil:
		c.report.Lost++
		return nil
	case o.Op == opPut:
		if err := doc.Validate(o.Doc); err != nil {
			return err
		}
	case o.Op == opCreate && t == nil:
		c.supersede(o.Schema.Name)
	case o.Op == opSchema && t == nil:
		// The schema holds as much as the lost creation of the collection did.
		c.supersede(o.Schema.Name)
		c.db.addTable(o.Table, o.Schema)
		return nil
	case o.Op != opHead && t == nil:
		return nil
	}
	return c.db.apply(o, t, segment, nil)
}

// supersede removes the collection that has the name of one being created: its drop was in a damaged record.
func (c *checker) supersede(name string) {
	if t := c.db.tables[name]; t != nil {
		c.db.removeTable(t)
	}
}

// salvage writes what was read to a new file. If something is missing, the history forks there, so that a reader whose
// cursor names a change that may be lost gets an error and is not taken for up to date.
func (c *checker) salvage(path string) (err error) {
	db := c.db
	switch {
	case db.history == (history{}):
		err = db.beginHistory()
	case c.broken:
		err = db.fillRandom(db.own[:])
		db.enter(db.nextHistory(db.own), c.whole)
	}
	if err != nil {
		return err
	}
	var records []wal.Record
	w := imageWriter{emit: func(record []byte) error {
		records = append(records, wal.Record{Kind: wal.Image, Data: record})
		return nil
	}}
	h, tables := db.stateLocked()
	if err := w.write(context.Background(), h, tables); err != nil {
		return err
	}
	log, err := wal.Create(path, db.walOptions(), records...)
	if err != nil {
		return err
	}
	return log.Close()
}
