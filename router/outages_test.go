package router

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fenec/internal/vfs/crashfs"
)

var cuts = []verdict{before, after}

// The router is killed at each step of a move, with writers running, and started again.
func TestAMoveKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := newWorld(t, uint64(at))
		w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		w.rt.must("POST", "/t/acme/c", "first", 200)
		s := w.write()
		w.plan(at, how, false)
		status, body, err := ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
		met := w.happened()
		if !met && (err != nil || status != 200) {
			t.Fatalf("the move is answered %d %s %v", status, body, err)
		}
		kept := s.end()
		if met {
			w.restart()
		}
		s = w.write()
		w.holds(kept)
		// Running it again, or the other way, ends it.
		to := "n2"
		if w.rt.tenants()["acme"] == "n2 active" {
			to = "n1"
		}
		w.rt.must("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`, 200)
		for v := range s.end() {
			kept[v] = true
		}
		w.holds(kept)
		w.alone()
		return met
	})
}

// The same, and the operator cancels what was interrupted.
func TestAnInterruptedMoveCancelled(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := newWorld(t, uint64(at))
		w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		s := w.write()
		w.plan(at, how, false)
		ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
		met := w.happened()
		kept := s.end()
		if met {
			w.restart()
		}
		w.holds(kept)
		if w.rt.tenants()["acme"] == "n1 moving" {
			w.rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n1"}`, 200)
		}
		w.holds(kept)
		w.alone()
		return met
	})
}

// One step fails and the router lives: the move is put back, or gone through with.
func TestAMoveWhoseStepFails(t *testing.T) {
	everyOutage(t, true, []verdict{before, after, refuse503}, func(t *testing.T, at int, how verdict) bool {
		w := newWorld(t, uint64(at))
		w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		s := w.write()
		w.plan(at, how, true)
		status, body, err := ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
		met := w.happened()
		if err != nil || !met && status != 200 {
			t.Fatalf("the move is answered %d %s %v", status, body, err)
		}
		kept := s.end()
		w.holds(kept)
		if w.rt.tenants()["acme"] != "n2 active" {
			w.rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
		}
		w.holds(kept)
		w.alone()
		return met
	})
}

// The directory's disk fails in a move, and what it was writing may be found there later or not: no write is answered
// meanwhile that the next start would not know of.
func TestAMoveWhoseDirectoryFails(t *testing.T) {
	for name, crash := range map[string]func(*crashfs.FS) *crashfs.FS{
		"and what was not synced is found": everything, "and what was not synced is lost": nothing,
	} {
		t.Run(name, func(t *testing.T) {
			everyOutage(t, true, cuts, func(t *testing.T, at int, how verdict) bool {
				w := newWorld(t, uint64(at))
				w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
				w.plan(at, how, true)
				ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
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
				w.restartOn(crash)
				w.holds(kept)
				return met
			})
		})
	}
}

func TestACreateKilledAtAnyStep(t *testing.T) {
	for _, to := range []string{"n1", "n2"} {
		t.Run("and run again on "+to, func(t *testing.T) {
			everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
				w := newWorld(t, uint64(at))
				w.plan(at, how, false)
				ask(w.rt.addr, "PUT", "/_shard/tenants/acme", `{"node":"n1"}`, "")
				met := w.happened()
				if met {
					w.restart()
				}
				eventually(t, "nothing is under way", func() bool {
					status, _ := w.rt.call("PUT", "/_shard/tenants/acme", `{"node":"`+to+`"}`)
					return status == 201 || status == 409 && w.rt.tenants()["acme"] != ""
				})
				w.holds(nil)
				w.alone()
				return met
			})
		})
	}
}

// Without a retry of the create, nothing of it is left on the node.
func TestACreateKilledAtAnyStepLeavesNothing(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := newWorld(t, uint64(at))
		w.plan(at, how, false)
		ask(w.rt.addr, "PUT", "/_shard/tenants/acme", `{"node":"n1"}`, "")
		met := w.happened()
		if met {
			w.restart()
		}
		eventually(t, "no repair is pending", func() bool { return w.rt.repairer.pending() == 0 })
		if known, there := w.rt.tenants()["acme"] != "", w.nodes[0].copyOf("acme") != nil; known != there {
			t.Errorf("in the directory: %v, on the node: %v", known, there)
		}
		return met
	})
}

func TestADeleteKilledAtAnyStep(t *testing.T) {
	everyOutage(t, false, cuts, func(t *testing.T, at int, how verdict) bool {
		w := newWorld(t, uint64(at))
		w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		w.rt.must("POST", "/t/acme/c", "old", 200)
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
		w.rt.must("PUT", "/_shard/tenants/acme", "", 201)
		if got := w.rt.must("GET", "/t/acme/c", "", 200); got != "null\n" {
			t.Errorf("the new tenant begins with %s", got)
		}
		w.alone()
		return met
	})
}

// The source is still frozen under the interrupted move's token as the tenant is moved again.
func TestAMoveRunAgainBeforeItsRepair(t *testing.T) {
	w := newWorld(t, 1)
	w.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	w.nodes[1].cutting(func(n *fakeNode, r *http.Request) verdict {
		if strings.HasSuffix(r.URL.Path, "/file") { // the source is frozen, the target has nothing
			w.mu.Lock()
			w.off = true
			w.mu.Unlock()
		}
		return w.request(n, r)
	})
	ask(w.rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
	w.nodes[1].cutting(w.request)
	refused, thawing := make(chan struct{}), atomic.Bool{}
	var once sync.Once
	w.nodes[0].cutting(func(n *fakeNode, r *http.Request) verdict {
		v := w.request(n, r)
		if v == pass && strings.HasSuffix(r.URL.Path, "/thaw") && !thawing.Load() {
			v = refuse503
			once.Do(func() { close(refused) })
		}
		return v
	})
	w.restart()
	<-refused // the repair has failed, and comes again in a second
	if c := w.nodes[0].copyOf("acme"); !c.frozen {
		t.Fatal("the source is not frozen")
	}
	thawing.Store(true)
	w.rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	w.holds(nil)
	w.alone()
}
