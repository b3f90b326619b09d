package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// TestTheFeedMatchesTheModel checks the feed against a list of all changes over random histories of writes, compacts,
// syncs, failing disks, restarts and power loss. A read from any cursor, in pages of any size, returns that part of the
// list, in order, without a gap, in whole blocks. A change that was returned as durable survives a crash.
func TestTheFeedMatchesTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, fs: crashfs.New(rapid.Uint64().Draw(t, "seed")), state: state{collections: map[string]*modelled{}}}
		m.policy = rapid.SampledFrom([]wal.Policy{{}, {Every: time.Hour}, {Always: true}}).Draw(t, "policy")
		m.keep = rapid.SampledFrom([]int64{0, 500, DefaultKeep}).Draw(t, "keep")
		m.open(engine.Create)
		m.write(t, "create collection a (n int)")
		m.sync(t) // so that no crash loses it
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"put":     func(t *rapid.T) { m.write(t, m.put(t)) },
			"delete":  func(t *rapid.T) { m.write(t, m.delete(t)) },
			"batch":   m.batch,
			"schema":  func(t *rapid.T) { m.write(t, m.schema(t)) },
			"compact": m.compact,
			"sync":    m.sync,
			"restart": m.restart,
			"crash":   m.crash,
			"kill":    m.kill,
			"fault":   m.fault,
		})
		m.Close()
	})
}

// model is a database and every change of it.
type model struct {
	*followed
	t      *rapid.T
	fs     *crashfs.FS
	policy wal.Policy
	keep   int64

	state
	ends    []uint64         // where the blocks end
	states  map[uint64]state // after each block
	handed  uint64           // the last change returned as durable
	first   uint64           // cursors from here on must be served: the file or the copies have the changes after it
	failed  bool             // the disk has failed
	wrote   bool             // since the file was opened
	perhaps *state           // the content if a failed write did reach the disk
}

// state is the content of a database, and the line of each change that led to it.
type state struct {
	all         []string
	collections map[string]*modelled
}

type modelled struct {
	fields []string
	ids    map[int64]bool
}

func (s *state) clone() state {
	c := state{slices.Clone(s.all), map[string]*modelled{}}
	for name, one := range s.collections {
		c.collections[name] = &modelled{slices.Clone(one.fields), maps.Clone(one.ids)}
	}
	return c
}

func (s *state) line(op engine.ChangeOp, rest string) {
	s.all = append(s.all, fmt.Sprintf("%d %d %s", len(s.all)+1, op, rest))
}

// apply applies a statement to the state.
func (s *state) apply(text string) {
	var name, field string
	var id int64
	var n int
	switch word, _, _ := strings.Cut(text, " "); word {
	case "put":
		fmt.Sscanf(text, "put %s {id: %d, n: %d}", &name, &id, &n)
		one := s.collections[name]
		one.ids[id] = true
		line := fmt.Sprintf("%s %d n=%d", name, id, n)
		for _, field := range one.fields[1:] {
			line += " " + field + "=null"
		}
		s.line(engine.Put, line)
	case "del":
		fmt.Sscanf(text, "del %s where id = %d", &name, &id)
		if s.collections[name].ids[id] {
			delete(s.collections[name].ids, id)
			s.line(engine.Deleted, fmt.Sprintf("%s %d", name, id))
		}
	case "create":
		fmt.Sscanf(text, "create collection %s (n int)", &name)
		s.collections[name] = &modelled{[]string{"n"}, map[int64]bool{}}
		s.line(engine.Created, name+"1")
	case "drop":
		fmt.Sscanf(text, "drop collection %s", &name)
		delete(s.collections, name)
		s.line(engine.Dropped, name)
	case "alter":
		fmt.Sscanf(text, "alter collection %s add field %s int", &name, &field)
		one := s.collections[name]
		one.fields = append(one.fields, field)
		s.line(engine.Altered, fmt.Sprint(name, len(one.fields)))
	}
}

func (m *model) open(how func(string, engine.Options) (*engine.DB, error)) {
	m.followed = follow(m.t, how, m.keep, engine.Options{FS: m.fs, Sync: m.policy})
	if m.states == nil {
		m.states = map[uint64]state{0: m.state.clone()}
	}
	m.failed, m.wrote, m.perhaps = false, false, nil
}

func (m *model) put(t *rapid.T) string {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.collections))).Draw(t, "collection")
	return fmt.Sprintf("put %s {id: %d, n: %d}", name, rapid.Int64Range(1, 5).Draw(t, "id"), rapid.IntRange(0, 9).Draw(t, "n"))
}

func (m *model) delete(t *rapid.T) string {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.collections))).Draw(t, "collection")
	return fmt.Sprintf("del %s where id = %d", name, rapid.Int64Range(1, 5).Draw(t, "id"))
}

func (m *model) schema(t *rapid.T) string {
	if m.collections["b"] == nil {
		return "create collection b (n int)"
	}
	if rapid.Bool().Draw(t, "drop") {
		return "drop collection b"
	}
	return fmt.Sprintf("alter collection b add field f%d int", len(m.collections["b"].fields))
}

// write runs statements as one block, on the database and on the model.
func (m *model) write(t *rapid.T, texts ...string) {
	statements := make([]engine.Statement, len(texts))
	after := m.clone()
	for i, text := range texts {
		statements[i].Text = text
		after.apply(text)
	}
	_, _, err := m.Batch(context.Background(), engine.Everything(), statements)
	if err != nil {
		if !m.failed {
			t.Fatalf("%q: %v", texts, err)
		}
		if m.perhaps == nil {
			m.perhaps = &after
		}
		return
	}
	if len(after.all) > len(m.all) {
		m.state, m.wrote = after, true
		m.ends = append(m.ends, uint64(len(m.all)))
		m.states[uint64(len(m.all))] = m.clone()
	}
}

func (m *model) batch(t *rapid.T) {
	texts := make([]string, rapid.IntRange(1, 4).Draw(t, "size"))
	for i := range texts {
		texts[i] = m.put(t)
		if rapid.Bool().Draw(t, "delete") {
			texts[i] = m.delete(t)
		}
	}
	m.write(t, texts...)
}

func (m *model) compact(t *rapid.T) {
	if err := m.Compact(context.Background()); err != nil {
		if !m.failed {
			t.Fatal(err)
		}
		return
	}
	m.first = uint64(len(m.all))
	if m.keep == DefaultKeep {
		m.first = m.First()
	}
	if m.handed = max(m.handed, m.End(Durable)); m.handed != uint64(len(m.all)) {
		t.Fatalf("after a compact the end is at %d of %d", m.handed, len(m.all))
	}
}

func (m *model) sync(t *rapid.T) {
	if err := m.Sync(); err != nil && !m.failed {
		t.Fatal(err)
	}
}

func (m *model) restart(t *rapid.T) {
	if m.failed { // a later sync may not cover what a failed one left unsynced
		m.crash(t)
		return
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.reopen(t)
}

// kill ends only the process: what it wrote without a sync is in the file, and a power loss may still take it.
func (m *model) kill(t *rapid.T) {
	if m.failed || m.policy.Every > 0 { // the log's goroutine would go on
		m.restart(t)
		return
	}
	m.reopen(t)
}

func (m *model) crash(t *rapid.T) {
	fs := m.fs.Crash()
	m.Close() // of the machine that is gone
	m.fs = fs
	m.reopen(t)
}

// reopen opens the file and updates the model to its content.
func (m *model) reopen(t *rapid.T) {
	perhaps := m.perhaps
	m.open(engine.Open)
	seq, _ := m.Position()
	switch found, known := m.states[seq]; {
	case known:
		m.state = found.clone()
	case perhaps != nil && seq == uint64(len(perhaps.all)):
		m.state = *perhaps
		m.ends = append(m.ends, seq)
		m.states[seq] = m.clone()
	default:
		t.Fatalf("the database opens at change %d, which no block ends at", seq)
	}
	if seq < m.handed {
		t.Fatalf("change %d was handed out, and the database opens at %d", m.handed, seq)
	}
	m.ends = slices.DeleteFunc(m.ends, func(end uint64) bool { return end > seq })
	maps.DeleteFunc(m.states, func(end uint64, _ state) bool { return end > seq })
	if m.First() > seq {
		t.Fatalf("the feed begins behind %d, past the end at %d", m.First(), seq)
	}
	m.first = max(m.first, m.First())
	if !rapid.Bool().Draw(t, "cover") {
		return
	}
	if err := m.Cover(); err != nil {
		t.Fatal(err)
	}
	if m.End(Durable) != seq {
		t.Fatalf("opened and covered, the feed ends at %d, want %d", m.End(Durable), seq)
	}
}

// fault makes some operations of the disk fail from now on.
func (m *model) fault(t *rapid.T) {
	m.fs.FailFrom(m.fs.Ops()+rapid.IntRange(1, 3).Draw(t, "operations"), errors.New("the disk fails"))
	m.failed = true
}

func (m *model) check(t *rapid.T) {
	seq, _ := m.Position()
	if seq != uint64(len(m.all)) {
		t.Fatalf("the database is at change %d, want %d", seq, len(m.all))
	}
	if m.End(Landed) != seq || m.End(Settled) != seq || m.First() > m.first || m.End(Durable) > seq {
		t.Fatalf("the feed has %d to %d, on disk to %d; want %d to %d", m.First(), m.End(Landed), m.End(Durable), m.first, seq)
	}
	if m.policy.Always && m.wrote && m.End(Durable) != seq && !m.failed {
		t.Fatalf("every write is synced before it is acknowledged, and the feed has %d of %d on disk", m.End(Durable), seq)
	}
	since := rapid.Uint64Range(0, seq+1).Draw(t, "since")
	budget := rapid.SampledFrom([]int{1, 100, 1000, 1 << 20}).Draw(t, "budget")
	for _, r := range []Reach{Landed, Durable} {
		end := m.End(r)
		got, err := m.tryLines(since, r, budget)
		var gone *Gone
		var ahead *Ahead
		switch {
		case since < m.First():
			if !errors.As(err, &gone) || gone.First != m.First() {
				t.Fatalf("behind %d of %d on: %v", since, m.First(), err)
			}
		case since > seq:
			if !errors.As(err, &ahead) {
				t.Fatalf("behind %d of %d: %v", since, seq, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			if want := m.all[min(since, end):end]; !slices.Equal(got, want) {
				t.Fatalf("behind %d in reach %d:\n got %q\nwant %q", since, r, got, want)
			}
			m.checkChanged(t, since)
		}
		if r == Durable {
			if end > 0 && !slices.Contains(m.ends, end) {
				t.Fatalf("the durable end, %d, is within a block", end)
			}
			m.handed = max(m.handed, end)
		}
	}
	if behind, err := m.Behind(engine.Everything(), max(since, m.First())); err != nil || since <= seq && behind != m.End(Durable)-min(max(since, m.First()), m.End(Durable)) {
		t.Fatalf("behind %d on disk are %d changes, %v", since, behind, err)
	}
}

func (m *model) checkChanged(t *rapid.T, since uint64) {
	number := m.Collection(engine.Everything(), "a", since)
	if number == 0 {
		return // since is from before the collection
	}
	got, err := m.Changed(engine.Everything(), nil, number, since, uint64(len(m.all)))
	if err != nil || got.Seq != uint64(len(m.all)) || got.Dropped || got.Schema {
		t.Fatalf("changed behind %d: %v, %v", since, got, err)
	}
	var want []int64
	for _, line := range m.all[since:] {
		var seq, op, id int64
		if n, _ := fmt.Sscanf(line, "%d %d a %d", &seq, &op, &id); n == 3 {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got.IDs, want) {
		t.Fatalf("changed behind %d: %v, want %v", since, got.IDs, want)
	}
}
