package router

import "testing"

func TestAReplicaIsPlaced(t *testing.T) {
	for _, c := range []struct {
		name string
		list []candidate
		want string // empty for no node
	}{
		{"on no node without another", []candidate{{name: "n1"}}, ""},
		{"never on the tenant's node, even if that holds a copy", []candidate{{name: "n1", holds: true}, {name: "n2"}}, "n2"},
		{"not on a node that does not answer", []candidate{{name: "n2", away: true}, {name: "n3"}}, "n3"},
		{"not on a node of a pair", []candidate{{name: "n2", paired: true}, {name: "n3"}}, "n3"},
		{"not on a node that is drained", []candidate{{name: "n2", draining: true}, {name: "n3"}}, "n3"},
		{"not on a node that cannot have it", []candidate{{name: "n2", unfit: true, holds: true}, {name: "n3"}}, "n3"},
		{"on no node that is left out, even if all are", []candidate{{name: "n2", away: true, holds: true}, {name: "n3", paired: true}}, ""},
		{"first on a node that holds a copy", []candidate{{name: "n2"}, {name: "n3", holds: true, ofNode: 9, total: 9}}, "n3"},
		{"of those that hold a copy by what follows", []candidate{{name: "n2", holds: true, ofNode: 2}, {name: "n3", holds: true, ofNode: 1, total: 9}}, "n3"},
		{"then by the replicas of the node's tenants", []candidate{{name: "n2", ofNode: 2}, {name: "n3", ofNode: 1, total: 9}}, "n3"},
		{"then by all tenants and replicas", []candidate{{name: "n2", ofNode: 1, total: 3}, {name: "n3", ofNode: 1, total: 2}}, "n3"},
		{"then by name", []candidate{{name: "n3", ofNode: 1, total: 2}, {name: "n2", ofNode: 1, total: 2}}, "n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if i := placeReplica("n1", c.list); i >= 0 {
				got = c.list[i].name
			}
			if got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

// Placed one after the other, the replicas of each node's tenants are spread over all other nodes, so that a failover spreads
// the tenants.
func TestReplicasOfANodesTenantsAreSpread(t *testing.T) {
	nodes := []string{"n1", "n2", "n3", "n4"}
	copies, total := map[[2]string]int{}, map[string]int{}
	for i := range 120 {
		of := nodes[i%len(nodes)]
		var list []candidate
		for _, name := range nodes {
			list = append(list, candidate{name: name, ofNode: copies[[2]string{of, name}], total: total[name]})
		}
		on := nodes[placeReplica(of, list)]
		copies[[2]string{of, on}]++
		total[of]++
		total[on]++
	}
	for _, of := range nodes {
		for _, on := range nodes {
			if got := copies[[2]string{of, on}]; of != on && got != 10 {
				t.Errorf("of the tenants of %s, %d have their replica on %s, want 10", of, got, on)
			}
		}
	}
}

// Replicas that are being placed count as those that are placed already.
func TestReplicasPlacedAtTheSameTimeAreSpread(t *testing.T) {
	var p intents
	list := []candidate{{name: "n2"}, {name: "n3", total: 5}}
	var ends []func()
	for _, want := range []string{"n2", "n3", "n2"} { // by the replicas of the node's tenants first
		i, done := p.choose("n1", list)
		if got := list[i].name; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		ends = append(ends, done)
	}
	for _, done := range ends {
		done()
	}
	if i, done := p.choose("n1", list); list[i].name != "n2" || len(p.placed) != 1 {
		t.Errorf("after they are placed %d count", len(p.placed)-1)
	} else {
		done()
	}
}
