package router

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlacementsAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, model := &placements{}, map[string]state{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			name := rapid.StringMatching(`[a-z0-9_-]{1,3}`).Draw(t, "name")
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				p.set(name, nil)
				delete(model, name)
				continue
			}
			s := state(rapid.IntRange(int(placing), int(deleting)).Draw(t, "state"))
			p.set(name, &tenant{name: name, state: s})
			model[name] = s
		}
		seen := map[string]state{}
		p.each(func(t *tenant) { seen[t.name] = t.state })
		if diff := cmp.Diff(model, seen); diff != "" {
			t.Fatal(diff)
		}
		if p.len() != len(model) {
			t.Fatalf("it counts %d of %d", p.len(), len(model))
		}
		for name, s := range model {
			if found := p.find(name); found == nil || found.state != s {
				t.Fatalf("%s is %v, want %s", name, found, s)
			}
		}
		if p.find("no-such") != nil {
			t.Fatal("it finds what is not there")
		}
	})
}

func TestReadersSeeBeforeOrAfter(t *testing.T) {
	p := filled(1000)
	n1, n2 := &node{name: "n1"}, &node{name: "n2"}
	here := &tenant{name: "acme", node: n1, state: active}
	there := &tenant{name: "acme", node: n2, state: settling}
	p.set("acme", here)
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
				if t := p.find("acme"); t != here && t != there {
					panic("a reader saw neither")
				}
			}
		})
	}
	for i := range 2000 {
		p.set("acme", there)
		p.set(fmt.Sprintf("tenant-%d", i%1000), nil)
		p.set("acme", here)
	}
	close(stop)
	readers.Wait()
}

// A change copies a part of the map that does not grow with the map as long as there are shards enough.
func TestAChangeCopiesLittle(t *testing.T) {
	p := filled(100_000)
	largest := 0
	for i := range p.shards {
		if shard := p.shards[i].Load(); shard != nil {
			largest = max(largest, len(*shard))
		}
	}
	if largest > 100 {
		t.Errorf("a shard holds %d of 100000 tenants", largest)
	}
	name := []byte("tenant-500")
	if n := testing.AllocsPerRun(100, func() { p.get(name) }); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

func TestATenantIsReadAsItWasWritten(t *testing.T) {
	n1, n2 := &node{name: "n1"}, &node{name: "n2"}
	d := &directory{}
	d.nodes.Store(&map[string]*node{"n1": n1, "n2": n2})
	for _, one := range []*tenant{
		{name: "a", node: n1, state: active},
		{name: "b", node: n1, state: moving, target: n2, token: "T1", stale: []leftover{{"n2", "T0"}, {"n3", ""}}},
		{name: "c", node: n2, state: settling, token: "T1", stale: []leftover{{"n1", "T1"}}},
		{name: "d", node: n1, state: deleting, token: "T2"},
		{name: "e", state: gone, stale: []leftover{{"n1", "T1"}}},
		{name: "f", node: n1, state: placing, stale: []leftover{{"n2", ""}}}, // as earlier versions wrote every one
	} {
		row := one.row()
		text := func(i int) string { return string(row[i].B) }
		got, err := d.read(tenantRow{text(0), text(1), text(2), text(3), text(4), text(5)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one, got, cmp.AllowUnexported(tenant{}, leftover{}), cmp.Comparer(func(a, b *node) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
	}
}
