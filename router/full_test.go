package router

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// witness counts the requests that change what nodes hold.
type witness struct {
	mu      sync.Mutex
	changes []string
}

func (w *witness) see(n *fakeNode, r *http.Request) verdict {
	if r.Method != "GET" && strings.HasPrefix(r.URL.Path, "/_admin/") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changes = append(w.changes, n.name+" "+r.Method+" "+r.URL.Path)
	}
	return pass
}

func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.changes
	w.changes = nil
	return seen
}

// Every operation of an operator, with room for so many bytes in the directory: where the first of its changes does not
// fit it is answered 507 and nothing was asked of a node, and wherever it ends, a router that starts once there is room
// finds every tenant whole.
func TestAnOperationThatCannotBeRecordedDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"a create", "PUT", "/_shard/tenants/new", `{"node":"n1"}`, 201},
		{"a delete", "DELETE", "/_shard/tenants/acme", "", 204},
		{"a move", "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200},
		{"the cancelling of a move", "POST", "/_shard/tenants/torn/move", `{"to":"n1"}`, 200},
		{"a move after one that was interrupted", "POST", "/_shard/tenants/torn/move", `{"to":"n2"}`, 200},
		{"a delete after a move that was interrupted", "DELETE", "/_shard/tenants/torn", "", 204},
		{"a drain", "POST", "/_shard/nodes/n1/drain", "", 200},
		{"a node that is recorded", "PUT", "/_shard/nodes/n9", "node", 201},
		{"a node that is recorded again", "PUT", "/_shard/nodes/n3", "node", 200},
		{"a node that is removed", "DELETE", "/_shard/nodes/n3", "", 204},
	} {
		for room := int64(0); ; room += 40 {
			done := false
			t.Run(fmt.Sprintf("%s with room for %d bytes", c.name, room), func(t *testing.T) {
				fs := crashfs.New(1)
				rt, nodes := cluster(t, Config{FS: fs}, 3)
				for _, name := range []string{"acme", "torn"} {
					rt.must("PUT", "/_shard/tenants/"+name, `{"node":"n1"}`, 201)
					rt.must("POST", "/t/"+name+"/c", "first", 200)
				}
				rt = interruptMove(t, rt, nodes, fs)
				repairedAll(t, rt)
				seen := &witness{}
				for _, n := range nodes {
					n.cutting(seen.see)
				}
				body := c.body
				if body == "node" {
					body = `{"addr":"` + nodes[2].addr() + `","token":"n3-token"}`
				}
				fs.SetSpace(room)
				status, text := rt.call(c.method, c.path, body)
				fs.SetSpace(-1)
				done = status == c.status && (c.name != "a drain" || strings.Contains(text, `"left":0`))
				if c.name != "a drain" && !done && status != 507 {
					t.Errorf("answered %d %s", status, text)
				}
				if changes := seen.take(); room == 0 && (done || !allowed(c.name, changes)) {
					t.Errorf("without any room it is answered %d %s, and nodes were asked for %q", status, text, changes)
				}
				for _, name := range []string{"acme", "torn"} {
					if strings.HasPrefix(c.name, "a delete") && strings.Contains(c.path, name) && status == 204 {
						continue
					}
					if got := rt.must("GET", "/t/"+name+"/c", "", 200); got != `["first"]`+"\n" {
						t.Errorf("%s holds %s", name, got)
					}
				}
				rt.stop()
				rt = start(t, Config{FS: fs})
				repairedAll(t, rt)
				if done && rt.tenants()["new"] == "" && c.name == "a create" {
					t.Error("a tenant that was created is gone")
				}
				for name := range rt.tenants() {
					rt.must("POST", "/t/"+name+"/c", "after", 200)
				}
				for _, name := range []string{"acme", "torn"} {
					if deleted := strings.HasPrefix(c.name, "a delete") && strings.Contains(c.path, name) && status == 204; deleted == (rt.tenants()[name] != "") {
						t.Errorf("%s is %s", name, rt.tenants()[name])
					}
				}
			})
			if done || t.Failed() {
				break
			}
			if room > 4000 {
				t.Fatalf("%s is never done", c.name)
			}
		}
	}
}

// allowed reports whether an operation that is not recorded may ask that of nodes: what is recorded already, that the
// source of an interrupted move may be frozen, may be put right.
func allowed(name string, changes []string) bool {
	for _, one := range changes {
		if !strings.Contains(name, "move") && name != "a drain" || !strings.HasSuffix(one, "/revision") && !strings.HasSuffix(one, "/thaw") {
			return false
		}
	}
	return true
}

// interruptMove leaves the tenant torn marked as moving from n1 to n2.
func interruptMove(t *testing.T, rt *running, nodes []*fakeNode, fs *crashfs.FS) *running {
	t.Helper()
	reached := make(chan struct{})
	var once sync.Once
	nodes[1].cutting(func(_ *fakeNode, r *http.Request) verdict {
		if r.Method == "PUT" {
			io.Copy(io.Discard, r.Body) // so that the end of the router is noticed
			once.Do(func() { close(reached) })
			<-r.Context().Done()
			return before
		}
		return pass
	})
	go ask(rt.addr, "POST", "/_shard/tenants/torn/move", `{"to":"n2"}`, "")
	<-reached
	for _, n := range nodes {
		n.cutting(func(*fakeNode, *http.Request) verdict { return before })
	}
	rt.give()
	rt.stop()
	for _, n := range nodes {
		n.cutting(nil)
	}
	rt = start(t, Config{FS: fs})
	if rt.tenants()["torn"] != "n1 moving" {
		t.Fatalf("it is %s", rt.tenants()["torn"])
	}
	return rt
}

// Every change of the directory is one sync: no operation makes more changes than it has states.
func TestAnOperationSyncsTheDirectoryOnceForEachState(t *testing.T) {
	fs := crashfs.New(1)
	rt, _ := cluster(t, Config{FS: fs}, 2)
	for _, c := range []struct {
		method, path, body string
		status, syncs      int
	}{
		{"PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201, 2},
		{"POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200, 3},
		{"DELETE", "/_shard/tenants/acme", "", 204, 2},
		{"DELETE", "/_shard/nodes/n1", "", 204, 1},
	} {
		before := fs.Count(crashfs.Sync)
		rt.must(c.method, c.path, c.body, c.status)
		if n := fs.Count(crashfs.Sync) - before; n != c.syncs {
			t.Errorf("%s %s syncs %d times, want %d", c.method, c.path, n, c.syncs)
		}
	}
}
