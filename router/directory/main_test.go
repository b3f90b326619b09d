package directory

import (
	"testing"
	"time"

	"fenec/internal/vfs/crashfs"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is what the tests keep for a node.
type object struct {
	addr    string
	removed bool
}

// events are the notifications of an owner.
type events struct {
	tenants []string // names, with a mark if somebody works on it
}

func (e *events) owner() Owner[*object] {
	return Owner[*object]{
		Node: func(row *Node, had *object) (*object, error) {
			if had == nil {
				had = &object{}
			}
			had.addr = row.Addr
			return had, nil
		},
		Removed: func(had *object) { had.removed = true },
		Tenant: func(name string, _ *Tenant, working bool) {
			if working {
				name += "!"
			}
			e.tenants = append(e.tenants, name)
		},
	}
}

const path = "shard.fenec"

func openOn(fs *crashfs.FS) (*File[*object], error) {
	return Open(path, Options{FS: fs, Clock: time.Now, Log: zerolog.Nop()}, (&events{}).owner())
}

// opened is openOn that must succeed, closed at the end of the test.
func opened(t testing.TB, fs *crashfs.FS) *File[*object] {
	t.Helper()
	f, err := openOn(fs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() }) // its disk may have failed
	return f
}

// two returns a directory with the nodes n1 and n2.
func two(t testing.TB, fs *crashfs.FS) *File[*object] {
	t.Helper()
	f := opened(t, fs)
	for _, name := range []string{"n1", "n2"} {
		if err := f.ChangeNode(nil, &Node{Name: name, Addr: name + ":1", Token: "secret"}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// put is Change that must succeed.
func put(t testing.TB, f *File[*object], old, next *Tenant) *Tenant {
	t.Helper()
	now, err := f.Change(old, next)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// table is all that maps show, without versions.
type table struct {
	Nodes   map[string]Node
	Objects map[string]string // the addresses of the nodes' objects
	Tenants map[string]Tenant
	At      map[string]string // the addresses of the objects of the tenants' nodes
	Naming  map[string]int
	Copies  map[string]int // by the node of the tenants and that of the replicas
	Follow  map[string]int
	Alone   int
}

func shown(m *Maps[*object]) table {
	t := table{map[string]Node{}, map[string]string{}, map[string]Tenant{}, map[string]string{}, map[string]int{}, map[string]int{}, map[string]int{}, m.alone}
	for name, n := range *m.nodes.Load() {
		row := *n.row
		row.Version = 0
		t.Nodes[name], t.Objects[name] = row, n.object.addr
	}
	m.Each(func(row *Tenant, at *object) {
		plain := *row
		plain.Version = 0
		t.Tenants[row.Name] = plain
		if at != nil {
			t.At[row.Name] = at.addr
		}
	})
	for name, n := range m.naming {
		t.Naming[name] = n
	}
	for p, n := range m.copies {
		t.Copies[p.of+" "+p.on] = n
	}
	for name, n := range m.follow {
		t.Follow[name] = n
	}
	return t
}
