package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// recorder is a feed that records its calls.
type recorder struct {
	told    []string
	changes []string
}

func (r *recorder) tell(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

func (r *recorder) Begin(_ *DB, seq uint64, collections []Collection) {
	r.tell("begin %d with %d", seq, len(collections))
}

func (r *recorder) Landed(b Landed) {
	rec := RecordAt(b.Memory[b.Start:])
	r.tell("%d-%d ticket %d schemas %v", b.Before, b.After, b.Ticket, b.Schemas)
	if rec.After() != b.After || len(rec) != len(b.Memory)-b.Start {
		r.tell("a record of %d bytes up to %d", len(rec), rec.After())
	}
	err := rec.Changes(func(c *Change) error {
		r.changes = append(r.changes, fmt.Sprintf("%d %d %d %v %v", c.Op, c.Table, c.ID, c.Doc != nil, c.Schema != nil))
		return nil
	})
	if err != nil {
		r.tell("%v", err)
	}
}

func (r *recorder) Relocated(segment int, memory []byte) { r.tell("segment %d moved", segment) }
func (r *recorder) Undone(first wal.Ticket)              { r.tell("undone from %d", first) }
func (r *recorder) Opened(onDisk int64)                  { r.tell("opened with %d on disk", onDisk) }
func (r *recorder) Settled(wal.Ticket)                   {}
func (r *recorder) Synced(last wal.Ticket)               { r.tell("synced %d", last) }
func (r *recorder) Rewriting(seq uint64)                 { r.tell("rewriting %d", seq) }
func (r *recorder) Abandoned()                           { r.tell("abandoned") }
func (r *recorder) Rewritten(segments [][]byte)          { r.tell("rewritten and %d segments", len(segments)) }

func (r *recorder) want(t *testing.T, where string, want ...string) {
	t.Helper()
	if !slices.Equal(r.told, want) {
		t.Errorf("%s the feed is told\n%q\nwant\n%q", where, r.told, want)
	}
	r.told = nil
}

func TestAFeedIsNotifiedOfWhatLands(t *testing.T) {
	fs, r := crashfs.New(1), &recorder{}
	db := inMemory(t, Options{FS: fs, Sync: always, Feed: r})
	mustExec(t, db, "create collection c (n int)")
	mustExec(t, db, "put c [{n: 1}, {n: 2}]")
	mustExec(t, db, "del c where n = 1")
	mustExec(t, db, "del c where n = 1") // changes nothing
	if _, err := exec(db, "put c {id: 'x'}"); err == nil {
		t.Error("what is no id is taken")
	}
	r.want(t, "as it is written", "begin 0 with 0", "0-1 ticket 1 schemas true", "synced 1", "1-3 ticket 2 schemas false", "synced 2",
		"3-4 ticket 3 schemas false", "synced 3")
	if want := []string{"2 1 0 false true", "5 1 1 true false", "5 1 2 true false", "6 1 1 false false"}; !slices.Equal(r.changes, want) {
		t.Errorf("the changes are %q, want %q", r.changes, want)
	}
	b, _ := image(t, db)
	r.want(t, "as an image is taken")
	mustExec(t, db, "compact")
	r.want(t, "as it is rewritten", "rewriting 4", "synced 3", "rewritten and 0 segments")
	fs.Hook(func(op crashfs.Op, _ string) error {
		if op == crashfs.Rename {
			return errors.New("the disk fails")
		}
		return nil
	})
	if _, err := exec(db, "compact"); err == nil {
		t.Error("a compact that failed is answered")
	}
	fs.Hook(nil)
	r.want(t, "as a rewrite fails", "rewriting 4", "abandoned")
	mustExec(t, db, "alter collection c add field m int")
	fs.FailAt(fs.Ops()+1, errors.New("the disk fails"))
	if _, err := exec(db, "put c {n: 3}"); err == nil {
		t.Error("a write that failed is answered")
	}
	r.want(t, "as the disk fails", "4-5 ticket 4 schemas true", "synced 4", "5-6 ticket 5 schemas false", "undone from 5")
	db.Close()
	db = reopen(t, Options{FS: fs, Sync: always, Feed: r})
	r.want(t, "opened again", "begin 4 with 1", "4-5 ticket 0 schemas true", "opened with 189 on disk", "synced 1")
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "at a wish")
	installed, err := InstallImage("/other.fenec", bytes.NewReader(b), Options{FS: fs, Feed: r})
	if err != nil {
		t.Fatal(err)
	}
	defer installed.Close()
	r.want(t, "as an image is installed", "begin 0 with 0", "0-1 ticket 0 schemas true", "1-3 ticket 0 schemas false",
		"3-4 ticket 0 schemas false", "segment 0 moved", "synced 0")
}
