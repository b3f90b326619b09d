package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/internal/vfs/crashfs"
)

// stuck has the requests of the router to nodes, counted over all of them, wait without an answer until the router goes:
// all from one on.
type stuck struct {
	mu      sync.Mutex
	at      int // the first that waits, 0 for none
	seen    int
	which   string
	reached chan struct{}
}

func (s *stuck) plan(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.seen, s.which, s.reached = at, 0, "", make(chan struct{})
}

func (s *stuck) judge(n *fakeNode, r *http.Request) verdict {
	s.mu.Lock()
	if s.seen++; s.at == 0 || s.seen < s.at {
		s.mu.Unlock()
		return pass
	}
	if s.seen == s.at {
		s.which = n.name + " " + r.Method + " " + r.URL.Path
		close(s.reached)
	}
	s.mu.Unlock()
	io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
	<-r.Context().Done()
	return before
}

// The nodes keep silent from any request of any operation on. A router that is stopped then ends within the time it is given,
// and the one that starts after it finds every tenant and puts it right.
func TestAStoppingRouterWaitsForNoNode(t *testing.T) {
	const drain = 300 * time.Millisecond
	for _, c := range []struct {
		name, method, path, body string
		least                    int
	}{
		{"a move", "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 12},
		{"a drain", "POST", "/_shard/nodes/n1/drain", "", 13},
		{"a delete", "DELETE", "/_shard/tenants/acme", "", 5},
		{"a create", "PUT", "/_shard/tenants/new", `{"node":"n2"}`, 3},
		{"a create on any node", "PUT", "/_shard/tenants/new", "", 5},
		{"a node that is recorded", "PUT", "/_shard/nodes/n9", "node", 1},
		{"the list of the nodes", "GET", "/_shard/nodes", "", 2},
		{"a write", "POST", "/t/acme/c", "second", 1},
		{"a read", "GET", "/t/acme/c", "", 1},
	} {
		at := 1
		for met := true; met && !t.Failed(); at++ {
			t.Run(fmt.Sprint(c.name, ", request ", at), func(t *testing.T) {
				fs, s := crashfs.New(1), &stuck{}
				rt, nodes := cluster(t, Config{FS: fs, UpstreamTimeout: time.Minute}, 2)
				for _, n := range nodes {
					n.cutting(s.judge)
				}
				rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
				rt.must("POST", "/t/acme/c", "first", 200)
				body := c.body
				if body == "node" {
					body = `{"addr":"` + nodes[1].addr() + `","token":"n2-token"}`
				}
				s.plan(at)
				answered := make(chan struct{})
				go func() {
					ask(rt.addr, c.method, c.path, body, "")
					close(answered)
				}()
				select {
				case <-s.reached:
				case <-answered:
					met = false
					return
				}
				t.Logf("the nodes keep silent from %s", s.which)
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), drain)
				defer cancel()
				if err := rt.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it stops with %v", err)
				}
				if took := time.Since(began); took > drain+2*time.Second {
					t.Errorf("it took %s to stop", took)
				}
				<-answered
				s.plan(0)
				rt.stop()
				rt = start(t, Config{FS: fs})
				repairedAll(t, rt)
				for name := range rt.tenants() {
					rt.must("POST", "/t/"+name+"/c", "after", 200)
				}
				if where := rt.tenants()["acme"]; where != "" {
					if got := rt.must("GET", "/t/acme/c", "", 200); !strings.HasPrefix(got, `["first",`) {
						t.Errorf("acme holds %s", got)
					}
					to := "n2"
					if where == "n2 active" {
						to = "n1"
					}
					rt.must("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`, 200)
					rt.must("POST", "/t/acme/c", "at last", 200)
				} else if c.method != "DELETE" {
					t.Error("acme is gone")
				}
			})
		}
		if at-2 < c.least && !t.Failed() {
			t.Errorf("%s makes %d requests", c.name, at-2)
		}
	}
}

// An operation that can be put back in the time that is left is.
func TestAStoppingRouterRollsBackWhatItCancels(t *testing.T) {
	fs, s := crashfs.New(1), &stuck{}
	rt, nodes := cluster(t, Config{FS: fs, UpstreamTimeout: time.Minute}, 2)
	nodes[1].cutting(func(n *fakeNode, r *http.Request) verdict {
		if r.Method == "PUT" {
			return s.judge(n, r)
		}
		return pass
	})
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	s.plan(1)
	go ask(rt.addr, "POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, "")
	<-s.reached
	rt.cancel() // as Shutdown does a little before its time is over
	rt.stop()
	if c := nodes[0].copyOf("acme"); c.frozen {
		t.Error("the source is still frozen")
	}
	rt = start(t, Config{FS: fs})
	if where := rt.tenants()["acme"]; where != "n1 active" {
		t.Errorf("it is %s", where)
	}
}
