package router

import (
	"strings"
	"testing"
)

// toReplica makes n1's copy of acme one that follows n2.
func toReplica(n1, n2 *fakeNode) {
	n1.mu.Lock()
	defer n1.mu.Unlock()
	n1.tenants["acme"].replica = &follow{from: n2.url(), caughtUp: true}
}

// A write that was on its way to a node whose copy has become a replica is served by the tenant's node.
func TestAWriteCaughtByAChangeOfPrimaryIsServedByTheNewOne(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	reached, release := hold(nodes[0], "POST /t/acme/c")
	answered := make(chan string)
	go func() {
		status, body, err := ask(rt.addr, "POST", "/t/acme/c", "caught", "")
		answered <- itoa(status) + " " + body
		if err != nil {
			t.Error(err)
		}
	}()
	<-reached
	rt.must("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`, 200)
	nodes[0].give("acme", &fakeTenant{})
	toReplica(nodes[0], nodes[1])
	close(release)
	if got := <-answered; got != "200 kept" {
		t.Errorf("answered %s", got)
	}
	if got := nodes[1].copyOf("acme"); len(got.Values) != 1 {
		t.Errorf("the new node holds %q", got.Values)
	}
}

func TestARefusalOfAReplicaReachesOnlyClientsThatAskForIt(t *testing.T) {
	rt, nodes := cluster(t, Config{}, 2)
	rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
	toReplica(nodes[0], nodes[1])
	for _, c := range []struct{ name, head, status, says string }{
		{"a write", "", "503", "\r\nRetry-After: 1\r\n"},
		{"a write that its client marks as a read of a replica", "Fenec-Read: replica\r\n", "403", "cannot be marked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := raw(t, rt.addr, "POST /t/acme/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+c.head+"Content-Length: 0\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || !strings.Contains(got, c.says) || strings.Contains(got, "Fenec-Tenant") {
				t.Errorf("answered %q", got)
			}
		})
	}
	rt.must("GET", "/t/acme/c", "", 200)
}
