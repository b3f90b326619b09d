package directory

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newMaps() *Maps[*object] {
	m := &Maps[*object]{}
	m.init((&events{}).owner())
	return m
}

// drawTenant draws a row that names nodes of n0 to n3.
func drawTenant(t *rapid.T, name string) *Tenant {
	node := rapid.StringMatching(`n[0-3]`)
	row := &Tenant{Name: name, Node: node.Draw(t, "node"), State: State(rapid.IntRange(int(Placing), int(Promoting)).Draw(t, "state"))}
	switch row.State {
	case Moving, Promoting:
		row.Target = node.Draw(t, "target")
	case Gone:
		row.Node = ""
	}
	if row.State == Moving || row.State == Settling {
		row.Token = rapid.StringMatching(`[A-Z]{3}`).Draw(t, "token")
	}
	if row.State != Gone && rapid.Bool().Draw(t, "replicated") {
		row.Replica, row.Lineage = node.Draw(t, "replica"), "00c0ffee00c0ffee"
	}
	for range rapid.IntRange(0, 2).Draw(t, "leftovers") {
		row.Stale = With(row.Stale, Leftover{
			node.Draw(t, "stale"), rapid.SampledFrom([]string{"", "T1"}).Draw(t, "its token"), Kind(rapid.IntRange(0, int(Dead)).Draw(t, "kind")),
		})
	}
	return row
}

// drawChanges draws a history of changes.
func drawChanges(t *rapid.T) []Change {
	var changes []Change
	for version := range uint64(rapid.IntRange(1, 60).Draw(t, "changes")) {
		deleted := rapid.IntRange(0, 3).Draw(t, "what") == 0
		if rapid.IntRange(0, 2).Draw(t, "of") == 0 {
			name := rapid.StringMatching(`n[0-3]`).Draw(t, "name")
			changes = append(changes, Change{Node: &Node{Name: name, Addr: fmt.Sprintf("%s:%d", name, version), Version: version + 1}, Deleted: deleted})
			continue
		}
		row := drawTenant(t, rapid.StringMatching(`[a-d]`).Draw(t, "name"))
		row.Version = version + 1
		changes = append(changes, Change{Tenant: row, Deleted: deleted})
	}
	return changes
}

func TestChangesFoldAlikeInAnyOrderAndMoreThanOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := drawChanges(t)
		want := newMaps()
		model := table{Tenants: map[string]Tenant{}, Nodes: map[string]Node{}}
		for _, c := range changes {
			want.fold([]Change{c}, 0)
			switch {
			case c.Node != nil && c.Deleted:
				delete(model.Nodes, c.Node.Name)
			case c.Node != nil:
				model.Nodes[c.Node.Name] = Node{Name: c.Node.Name, Addr: c.Node.Addr}
			case c.Deleted:
				delete(model.Tenants, c.Tenant.Name)
			default:
				row := *c.Tenant
				row.Version = 0
				model.Tenants[row.Name] = row
			}
		}
		got := newMaps()
		twice := append(append([]Change(nil), changes...), rapid.SliceOfN(rapid.SampledFrom(changes), 0, 20).Draw(t, "again")...)
		for _, c := range rapid.Permutation(twice).Draw(t, "order") {
			got.fold([]Change{c}, 0)
		}
		ordered, mixed := shown(want), shown(got)
		if diff := cmp.Diff(model.Nodes, ordered.Nodes) + cmp.Diff(model.Tenants, ordered.Tenants); diff != "" {
			t.Fatalf("in order it is not the model: %s", diff)
		}
		if diff := cmp.Diff(ordered, mixed); diff != "" {
			t.Fatal(diff)
		}
		for name, at := range mixed.At {
			if node := mixed.Nodes[mixed.Tenants[name].Node]; node.Addr != at {
				t.Fatalf("%s is sent to %s, its node is at %s", name, at, node.Addr)
			}
		}
		if _, tenants := got.Len(); tenants != len(mixed.Tenants) {
			t.Fatalf("it counts %d of %d", tenants, len(mixed.Tenants))
		}
		// Once all are known to be applied, none of them changes anything.
		got.fold(nil, uint64(len(changes)))
		got.fold(twice, 0)
		if diff := cmp.Diff(ordered, shown(got)); diff != "" {
			t.Fatalf("applied again: %s", diff)
		}
		if len(got.deleted) > 0 {
			t.Fatalf("it still knows what was deleted: %v", got.deleted)
		}
	})
}

func filled(n int) *Maps[*object] {
	m := newMaps()
	changes := []Change{{Node: &Node{Name: "n1", Addr: "n1:1", Version: 1}}}
	for i := range n {
		changes = append(changes, Change{Tenant: &Tenant{Name: fmt.Sprintf("tenant-%d", i), Node: "n1", State: Active, Version: uint64(i + 2)}})
	}
	m.fold(changes, uint64(n+1))
	return m
}

func TestReadersSeeBeforeOrAfter(t *testing.T) {
	m := filled(1000)
	version := m.Version()
	set := func(name string, s State) {
		version++
		m.fold([]Change{{Tenant: &Tenant{Name: name, Node: "n1", State: s, Version: version}, Deleted: s == 0}}, version)
	}
	set("acme", Active)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if t, at := m.Find([]byte("acme")); t == nil || t.State != Active && t.State != Settling || at == nil {
					panic("a reader saw neither")
				}
			}
		})
	}
	for i := range 2000 {
		set("acme", Settling)
		set(fmt.Sprintf("tenant-%d", i%1000), 0)
		set("acme", Active)
	}
	close(stop)
	readers.Wait()
}

// A change copies a part of the map that does not grow with the map as long as there are shards enough.
func TestAChangeCopiesLittle(t *testing.T) {
	m := filled(100_000)
	largest := 0
	for i := range m.tenants.shards {
		if shard := m.tenants.shards[i].Load(); shard != nil {
			largest = max(largest, len(*shard))
		}
	}
	if largest > 100 {
		t.Errorf("a shard holds %d of 100000 tenants", largest)
	}
	name := []byte("tenant-500")
	if n := testing.AllocsPerRun(100, func() { m.Find(name) }); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	m := filled(100_000)
	name := []byte("tenant-77777")
	b.ReportAllocs()
	for b.Loop() {
		if t, _ := m.Find(name); t == nil {
			b.Fatal("lost")
		}
	}
}

func BenchmarkChange(b *testing.B) {
	m := filled(100_000)
	version := m.Version()
	b.ReportAllocs()
	for b.Loop() {
		version++
		m.fold([]Change{{Tenant: &Tenant{Name: "tenant-77777", Node: "n1", State: Active, Version: version}}}, version)
	}
}
