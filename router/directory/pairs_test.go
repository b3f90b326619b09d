package directory

import (
	"context"
	"errors"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

// three returns a directory with the nodes n1, n2 and n3, n2 being the standby of n1.
func three(t *testing.T) *File[*object] {
	t.Helper()
	f := two(t, crashfs.New(1))
	if err := f.ChangeNode(nil, &Node{Name: "n3", Addr: "n3:1"}); err != nil {
		t.Fatal(err)
	}
	n2, _ := f.Node("n2")
	if err := f.ChangeNode(n2, &Node{Name: "n2", Addr: "n2:1", Standby: "n1"}); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAStandbyIsRefusedIfPairsDoNotAllowIt(t *testing.T) {
	f := three(t)
	if got := f.StandbyOf("n1"); got != "n2" {
		t.Errorf("the standby of n1 is %q", got)
	}
	put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active, Replica: "n2"})
	put(t, f, nil, &Tenant{Name: "beta", Node: "n3", State: Active})
	for _, c := range []struct{ name, node, standby, says string }{
		{"of itself", "n3", "n3", "node n3 cannot be the standby of itself"},
		{"of no node", "n3", "n9", "no node n9"},
		{"of a standby", "n3", "n2", "node n2 is itself the standby of node n1"},
		{"of a node that has one", "n3", "n1", "node n1 has the standby n2 already"},
		{"a node that has one", "n1", "n3", "node n1 has the standby n2: it cannot be one itself"},
		{"a new node of a standby", "n4", "n2", "node n2 is itself the standby of node n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, _ := f.Node(c.node)
			err := f.ChangeNode(old, &Node{Name: c.node, Addr: "x:1", Standby: c.standby})
			if err == nil || err.Error() != c.says {
				t.Errorf("says %v, want %s", err, c.says)
			}
		})
	}
	n2, _ := f.Node("n2")
	if err := f.ChangeNode(n2, &Node{Name: "n2", Addr: "n2:2", Standby: "n1"}); err != nil {
		t.Errorf("a standby with replicas gets another address: %v", err)
	}
}

func TestANodeThatHoldsSomethingDoesNotBecomeAStandby(t *testing.T) {
	f := two(t, crashfs.New(1))
	if err := f.ChangeNode(nil, &Node{Name: "n3", Addr: "n3:1"}); err != nil {
		t.Fatal(err)
	}
	n2, _ := f.Node("n2")
	pair := func() error { return f.ChangeNode(n2, &Node{Name: "n2", Addr: "n2:1", Standby: "n1"}) }
	row := put(t, f, nil, &Tenant{Name: "acme", Node: "n2", State: Active})
	if held := (*Held)(nil); !errors.As(pair(), &held) || *held != (Held{"n2", 1, 0}) {
		t.Errorf("a node with a tenant: %v", pair())
	}
	row = put(t, f, row, &Tenant{Name: "acme", Node: "n3", State: Active, Replica: "n2"})
	if held := (*Held)(nil); !errors.As(pair(), &held) || *held != (Held{"n2", 0, 1}) {
		t.Errorf("a node with a replica of another node's tenant: %v", pair())
	}
	put(t, f, row, &Tenant{Name: "acme", Node: "n1", State: Active, Replica: "n2"})
	if err := pair(); err != nil {
		t.Errorf("a node with replicas of its primary's tenants: %v", err)
	}
}

func TestNothingIsPlacedOnAStandbyOrMovedToIt(t *testing.T) {
	f := three(t)
	for name, row := range map[string]*Tenant{
		"placed": {Name: "acme", Node: "n2", State: Placing},
		"moved":  {Name: "acme", Node: "n1", State: Moving, Target: "n2"},
	} {
		if _, err := f.Change(nil, row); !errors.As(err, new(*Paired)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(t, f, nil, &Tenant{Name: "acme", Node: "n2", State: Active}) // by a failover
}

func TestANodeWithReplicasOrAStandbyIsNotRemoved(t *testing.T) {
	f := three(t)
	n1, _ := f.Node("n1")
	if err := f.ChangeNode(n1, nil); !errors.As(err, new(*Paired)) {
		t.Errorf("a node with a standby: %v", err)
	}
	row := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active, Replica: "n2"})
	n2, _ := f.Node("n2")
	if held := (*Held)(nil); !errors.As(f.ChangeNode(n2, nil), &held) || *held != (Held{"n2", 0, 1}) {
		t.Errorf("a node with a replica: %v", f.ChangeNode(n2, nil))
	}
	if _, err := f.Change(row, &Tenant{Name: "acme", Node: "n1", State: Active, Replica: "n9"}); !errors.As(err, new(*NoNode)) {
		t.Errorf("a replica on no node: %v", err)
	}
	put(t, f, row, nil)
	if err := f.ChangeNode(n2, nil); err != nil {
		t.Error(err)
	}
}

// A file that an earlier version has made gets the fields that it lacks, and its rows are as they were.
func TestAFileOfAnEarlierVersionIsOpened(t *testing.T) {
	fs := crashfs.New(1)
	db, err := engine.Create(path, engine.Options{FS: fs, Clock: time.Now, Log: zerolog.Nop(), Sync: wal.Policy{Always: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`create collection nodes (name text required @unique, addr text required, token text required)`,
		`create collection tenants (name text required @unique, node text required, state text required, target text, token text, stale text)`,
		`insert nodes {name: "n1", addr: "n1:1", token: "secret"}`,
		`insert tenants {name: "acme", node: "n1", state: "active", stale: "n2 n3:T1"}`,
	} {
		if _, err := db.Run(context.Background(), everything, &engine.Request{Statements: []engine.Statement{{Text: text}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f := opened(t, fs)
		got := shown(&f.Maps)
		if diff := cmp.Diff(map[string]Node{"n1": {Name: "n1", Addr: "n1:1", Token: "secret"}}, got.Nodes); diff != "" {
			t.Error(diff)
		}
		want := map[string]Tenant{"acme": {Name: "acme", Node: "n1", State: Active, Stale: []Leftover{{"n2", "", Copied}, {"n3", "T1", Copied}}}}
		if diff := cmp.Diff(want, got.Tenants); diff != "" {
			t.Error(diff)
		}
		now := put(t, f, f.Tenant("acme"), &Tenant{Name: "acme", Node: "n1", State: Active, Replica: "n1", Lineage: "00c0ffee00c0ffee"})
		if now.Lineage == "" || now.Replica == "" {
			t.Errorf("it is %+v", now)
		}
		put(t, f, now, &Tenant{Name: "acme", Node: "n1", State: Active, Stale: []Leftover{{"n2", "", Copied}, {"n3", "T1", Copied}}})
		f.Close()
	}
}
