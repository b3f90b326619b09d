package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// forkModel is a file that is written, killed, cut by power losses, restored and copied, and what readers have seen of it:
// for each position, the numbers of the documents up to it. Each put writes a new number.
type forkModel struct {
	fs     *crashfs.FS
	policy wal.Policy
	db     *DB
	next   int
	shown  map[position]shown
	copies [][]byte // of the file
	synced *syncedTo
}

// shown is what a reader saw at a position.
type shown struct {
	numbers []int
	made    bool // the position names the history that its change was made in
}

// syncedTo is a feed that records the change up to which the database reports everything on disk.
type syncedTo struct {
	recorder
	landed  []Landed
	durable uint64
}

func (s *syncedTo) Begin(_ *DB, seq uint64, _ []Collection) { s.durable = seq }
func (s *syncedTo) Landed(b Landed)                         { s.landed = append(s.landed, b) }
func (s *syncedTo) Opened(onDisk int64) {
	for _, b := range s.landed {
		if int64(len(b.Memory)) <= onDisk {
			s.durable = b.After
		}
	}
}

func (s *syncedTo) Synced(last wal.Ticket) {
	for _, b := range s.landed {
		if b.Ticket <= last {
			s.durable = max(s.durable, b.After)
		}
	}
}

// TestAPositionNeverNamesTwoStates checks random lives of a file: no position ever names two states, a position is reported as
// included only if the database holds that state, and a position that it will never hold is distinguished from a later one.
func TestAPositionNeverNamesTwoStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &forkModel{
			fs:     crashfs.New(rapid.Uint64().Draw(t, "seed")),
			policy: rapid.SampledFrom([]wal.Policy{{}, always}).Draw(t, "policy"),
			shown:  map[position]shown{},
		}
		db, err := Create(file, m.options())
		if err != nil {
			t.Fatal(err)
		}
		m.db = db
		defer func() { m.db.Close() }()
		m.exec(t, `create collection c (n int, s text)`)
		t.Repeat(map[string]func(*rapid.T){
			"put":        m.put,
			"put more":   m.put,
			"put, fails": m.putFails,
			"sync":       m.sync,
			"sync fails": m.syncFails,
			"compact":    func(t *rapid.T) { m.exec(t, `compact`) },
			"fork":       func(t *rapid.T) { _ = m.db.Fork() },
			"restart":    func(t *rapid.T) { m.db.Close(); m.open(t) },
			"kill":       m.open,
			"drop cache": func(*rapid.T) { m.fs.DropCache() },
			"power loss": func(t *rapid.T) { m.fs = m.fs.Crash(); m.open(t) },
			"copy":       func(*rapid.T) { m.copies = append(m.copies, m.content()) },
			"put back":   m.putBack,
			"move":       m.move,
			"":           m.check,
		})
	})
}

func (m *forkModel) options() Options {
	m.synced = &syncedTo{}
	return Options{FS: m.fs, Sync: m.policy, Feed: m.synced}
}

func (m *forkModel) exec(t *rapid.T, text string) {
	_, _ = exec(m.db, text) // storage may have failed
	m.see(t)
}

func (m *forkModel) put(t *rapid.T) {
	m.next++
	m.exec(t, fmt.Sprintf(`put c {n: %d, s: "%s"}`, m.next, strings.Repeat("x", m.next*1237%5000))) // of some pages
}

// putFails runs a put that is visible to readers and then cannot be written.
func (m *forkModel) putFails(t *rapid.T) {
	op := rapid.SampledFrom([]crashfs.Op{crashfs.Write, crashfs.Sync}).Draw(t, "fails")
	m.fs.Hook(func(o crashfs.Op, _ string) error {
		if o != op {
			return nil
		}
		m.see(t)
		return syscall.EIO
	})
	m.put(t)
	m.fs.Hook(nil)
}

func (m *forkModel) sync(t *rapid.T) { _ = m.db.Sync() }

func (m *forkModel) syncFails(t *rapid.T) {
	m.fs.FailAt(m.fs.Ops()+1, syscall.EIO)
	_ = m.db.Sync()
	m.fs.Heal()
}

// open opens the file as the last process left it, and checks that all synced content is present.
func (m *forkModel) open(t *rapid.T) {
	durable := m.synced.durable
	m.openOther(t)
	if seq := positionOf(m.db).seq; seq < durable {
		t.Fatalf("the file ends at change %d, and was said to be on disk up to %d", seq, durable)
	}
}

func (m *forkModel) openOther(t *rapid.T) {
	db, err := Open(file, m.options())
	if err != nil {
		t.Fatalf("the file does not open: %v", err)
	}
	m.db = db
}

func (m *forkModel) content() []byte { return contentOf(&testing.T{}, m.fs, file) }

// putBack replaces the file by an older copy after its process was stopped or killed.
func (m *forkModel) putBack(t *rapid.T) {
	if len(m.copies) == 0 {
		t.Skip("no copy")
	}
	if rapid.Bool().Draw(t, "closed in order") {
		m.db.Close()
	}
	putBack(&testing.T{}, m.fs, file, m.copies[rapid.IntRange(0, len(m.copies)-1).Draw(t, "copy")])
	m.openOther(t)
}

// move installs the frozen file elsewhere, either as its successor or as one of several copies.
func (m *forkModel) move(t *rapid.T) {
	if _, err := m.db.Freeze(); err != nil {
		m.db.Thaw()
		return
	}
	var img bytes.Buffer
	r, _, _, err := m.db.OpenImage()
	if err == nil {
		_, err = img.ReadFrom(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	copied := rapid.Bool().Draw(t, "a copy")
	if copied { // and the original continues as well
		m.copies = append(m.copies, m.content())
	}
	m.db.Close()
	m.fs = crashfs.New(rapid.Uint64().Draw(t, "seed"))
	if m.db, err = InstallImage(file, &img, m.options()); err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "restarted") {
		m.db.Close()
		m.open(t)
	}
	if copied {
		if err := m.db.Fork(); err != nil {
			t.Fatal(err)
		}
		return
	}
	m.db.GoOn()
}

// numbers returns those of the documents, in the order of their puts.
func (m *forkModel) numbers(t *rapid.T) (all []int) {
	var rows []struct{ N int }
	res, err := exec(m.db, `get c select n`)
	if err == nil {
		err = json.Unmarshal(res.Body, &rows)
	}
	if err != nil {
		return nil // the collection was lost
	}
	for _, r := range rows {
		all = append(all, r.N)
	}
	return all
}

// see records every change for a reader, under the history in which it was made, and the last change also under the current
// history.
func (m *forkModel) see(t *rapid.T) {
	numbers := m.numbers(t)
	now := positionOf(m.db)
	show := func(p position, made bool) {
		upTo := numbers[:max(0, min(len(numbers), int(p.seq)-1))] // change 1 began the collection
		before, ok := m.shown[p]
		if ok && !slices.Equal(before.numbers, upTo) {
			t.Fatalf("change %d of %s was %v and is %v", p.seq, p.history, before.numbers, upTo)
		}
		m.shown[p] = shown{slices.Clone(upTo), made || before.made}
	}
	for seq := range now.seq + 1 {
		show(position{seq, m.db.HistoryAt(seq)}, true)
	}
	show(now, false)
}

func (m *forkModel) check(t *rapid.T) {
	m.see(t)
	numbers, now := m.numbers(t), positionOf(m.db)
	failed := m.db.Stats().Failed != nil
	for p, then := range m.shown {
		relation, err := m.db.Relation(p.seq, []byte(p.history))
		if err != nil {
			t.Fatal(err)
		}
		same := p.seq <= now.seq && len(numbers) >= len(then.numbers) && slices.Equal(numbers[:len(then.numbers)], then.numbers)
		toCome := p.history == now.history && p.seq > now.seq && m.db.ours && !failed
		switch {
		case relation == Included && !same:
			t.Fatalf("change %d of %s was %v and is held to be %v", p.seq, p.history, then.numbers, numbers)
		case relation == Ahead && !toCome:
			t.Fatalf("change %d of %s is said to come, at change %d of %s", p.seq, p.history, now.seq, now.history)
		case relation != Included && same && then.made && p.seq > 1:
			t.Fatalf("change %d of %s exists, and relates as %d", p.seq, p.history, relation)
		}
	}
}
