package router

import (
	"testing"
)

// copied is a world whose tenant acme is on n1, with a replica on n2.
func copiedWorld(t *testing.T, seed uint64, nodes int) *world {
	w := newWorldOf(t, seed, nodes, Config{Replicas: true})
	w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	if on := w.rt.dir.Tenant("acme").Replica; on != "n2" {
		t.Fatalf("the replica is on %q", on)
	}
	w.rt.must("POST", "/t/acme/c", "first", 200)
	return w
}

// replicated checks that acme has a replica with all that was answered.
func (w *world) replicated(kept map[string]bool) {
	w.t.Helper()
	row := w.rt.dir.Tenant("acme")
	if row.Replica == "" {
		w.t.Errorf("acme has no replica: %+v", row)
		return
	}
	for _, n := range w.nodes {
		if n.name != row.Replica {
			continue
		}
		n.pull("acme")
		seen := map[string]bool{}
		for _, v := range n.copyOf("acme").Values {
			seen[v] = true
		}
		for v := range kept {
			if !seen[v] {
				w.t.Errorf("%s was answered and is not on the replica", v)
			}
		}
	}
}

func TestACreateWithAReplicaKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := newWorldOf(t, uint64(at), 3, Config{Replicas: true})
		w.plan(at, how, false)
		ask(w.rt.addr, "PUT", "/_shard/tenants/acme", `{"node":"n1"}`, "")
		met := w.happened()
		if met {
			w.restart()
		}
		eventually(t, "nothing is under way", func() bool {
			status, _ := w.rt.call("PUT", "/_shard/tenants/acme", `{"node":"n1"}`)
			return status == 201 || status == 409 && w.rt.tenants()["acme"] != ""
		})
		w.rt.must("POST", "/_shard/replicas", "", 200)
		w.holds(nil)
		w.alone()
		w.replicated(nil)
		return met
	})
}

// A move to a node without a copy takes the replica along; one onto the node of the replica places another.
func TestAMoveWithAReplicaKilledAtAnyStep(t *testing.T) {
	for _, to := range []string{"n2", "n3"} {
		t.Run("to "+to, func(t *testing.T) {
			everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
				w := copiedWorld(t, uint64(at), 3)
				s := w.write()
				w.plan(at, how, false)
				status, body, err := ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`, "")
				met := w.happened()
				if !met && (err != nil || status != 200) {
					t.Fatalf("the move is answered %d %s %v", status, body, err)
				}
				kept := s.end()
				if met {
					w.restart()
				}
				w.holds(kept)
				if at := w.rt.tenants()["acme"]; at != to+" active" {
					w.rt.must("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`, 200)
				}
				w.holds(kept)
				w.rt.must("POST", "/_shard/replicas", "", 200)
				w.alone()
				w.replicated(kept)
				return met
			})
		})
	}
}

func TestADeleteWithAReplicaKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := copiedWorld(t, uint64(at), 3)
		w.plan(at, how, false)
		ask(w.rt.addr, "DELETE", "/_shard/tenants/acme", "", "")
		met := w.happened()
		if met {
			w.restart()
		}
		status, body := w.rt.call("DELETE", "/_shard/tenants/acme", "")
		if status != 204 && status != 404 {
			t.Errorf("deleting it again is answered %d %s", status, body)
		}
		repairedAll(t, w.rt)
		if left := copies(w.nodes, "acme"); len(left) > 0 {
			t.Errorf("it is deleted and still on %v", left)
		}
		w.rt.must("PUT", "/_shard/tenants/acme", "", 201)
		if got := w.rt.must("GET", "/t/acme/c", "", 200); got != "null\n" {
			t.Errorf("the new tenant begins with %s", got)
		}
		w.alone()
		return met
	})
}

// The node is killed, and then the router at each step of the failover; the node comes back, and in between more is written.
func TestAFailoverKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := copiedWorld(t, uint64(at), 3)
		s := w.write()
		w.nodes[0].kill()
		w.plan(at, how, false)
		status, body, err := ask(w.rt.addr, "POST", "/_shard/nodes/n1/failover", "", "")
		met := w.happened()
		if !met && (err != nil || status != 200) {
			t.Fatalf("the failover is answered %d %s %v", status, body, err)
		}
		kept := s.end()
		if met {
			w.restart()
		}
		if at := w.rt.tenants()["acme"]; at != "n2 active" {
			eventually(t, "the failover can be run again", func() bool {
				status, _ := w.rt.call("POST", "/_shard/nodes/n1/failover", "")
				return status == 200 || status == 409 && w.rt.tenants()["acme"] == "n2 active"
			})
		}
		s = w.write()
		eventually(t, "acme takes writes", func() bool {
			status, _ := w.rt.call("POST", "/t/acme/c", "while it is away")
			return status == 200
		})
		w.nodes[0].revive()
		for v := range s.end() {
			kept[v] = true
		}
		repairedAll(t, w.rt)
		w.nodes[0].gone.Store(false) // from here on its copy is one of the others
		w.holds(kept)
		w.alone()
		w.replicated(kept)
		return met
	})
}

// A node that lives is failed over, with the router killed at each step: the node is frozen first, so that nothing is lost and
// no two copies take writes at any time.
func TestAFailoverOfALivingNodeKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := copiedWorld(t, uint64(at), 3)
		s := w.write()
		w.plan(at, how, false)
		status, body, err := ask(w.rt.addr, "POST", "/_shard/nodes/n1/failover", "", "")
		met := w.happened()
		if !met && (err != nil || status != 200) {
			t.Fatalf("the failover is answered %d %s %v", status, body, err)
		}
		kept := s.end()
		if met {
			w.restart()
		}
		s = w.write()
		w.holds(kept)
		if at := w.rt.tenants()["acme"]; at != "n2 active" {
			w.rt.must("POST", "/_shard/nodes/n1/failover", "", 200)
		}
		for v := range s.end() {
			kept[v] = true
		}
		w.holds(kept)
		w.alone()
		w.replicated(kept)
		return met
	})
}

// One step of a failover fails and the router lives: the tenant is served by one node or the other, and never by both.
func TestAFailoverWhoseStepFails(t *testing.T) {
	everyOutage(t, true, []verdict{before, after, refuse503}, func(t *testing.T, at int, how verdict) bool {
		w := copiedWorld(t, uint64(at), 3)
		s := w.write()
		w.plan(at, how, true)
		status, body, err := ask(w.rt.addr, "POST", "/_shard/nodes/n1/failover", "", "")
		met := w.happened()
		if err != nil || !met && status != 200 {
			t.Fatalf("the failover is answered %d %s %v", status, body, err)
		}
		kept := s.end()
		w.holds(kept)
		w.alone()
		w.replicated(kept)
		return met
	})
}

// The directory's disk fails in a failover, and what it was writing may be found there later or not.
func TestAFailoverWhoseDirectoryFails(t *testing.T) {
	for name, crash := range map[string]func(w *world){
		"and what was not synced is found": func(w *world) { w.restartOn(everything) },
		"and what was not synced is lost":  func(w *world) { w.restartOn(nothing) },
	} {
		t.Run(name, func(t *testing.T) {
			everyOutage(t, true, cuts, func(t *testing.T, at int, how verdict) bool {
				w := copiedWorld(t, uint64(at), 3)
				w.plan(at, how, true)
				ask(w.rt.addr, "POST", "/_shard/nodes/n1/failover", "", "")
				met := w.happened()
				if !w.disk.Load() {
					return met
				}
				kept := map[string]bool{}
				for i := range 5 {
					value := "after the failure " + itoa(i)
					if status, _ := w.rt.call("POST", "/t/acme/c", value); status == 200 {
						kept[value] = true
					}
				}
				crash(w)
				w.holds(kept)
				w.alone()
				return met
			})
		})
	}
}
