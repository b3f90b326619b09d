package router

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The stages of tenants with replicas that a late request may arrive after.
var replicaStages = map[string]func(p *post){
	"its node is failed over": func(p *post) { p.failover() },
	"it is given a replica":   func(p *post) { p.answered("POST", "/_shard/replicas", "", 200) },
	"it is moved to n1":       func(p *post) { p.move("n1") },
	"it is moved to n2":       func(p *post) { p.move("n2") },
	"it is moved to n3":       func(p *post) { p.move("n3") },
}

func init() {
	for name, do := range replicaStages {
		stages[name] = do
	}
}

// failover has the node that acme is on failed over, though it lives.
func (p *post) failover() {
	p.t.Helper()
	p.answered("POST", "/_shard/nodes/"+p.on()+"/failover", "", 200, 409)
}

// end checks what there is after everything has arrived: one copy that takes writes, a replica, and every row.
func (p *post) end() {
	p.t.Helper()
	p.stage("pending repairs are done")
	p.stage("it is given a replica")
	p.write()
	p.stage("the router is restarted")
	p.write()
	p.holds(p.rows)
	p.alone()
	p.replicated(p.rows)
	p.stage("its node is failed over")
	p.write()
	p.holds(p.rows)
	p.alone()
}

// Each request by which the router changes what a node holds of a tenant with a replica is held back, and arrives after each
// stage of what comes next. Wherever it does, at most one copy takes writes at any time, one does in the end and has every row
// that was answered, and the replica follows it.
func TestALateRequestDoesNotMakeASecondPrimary(t *testing.T) {
	made := func(p *post) {
		p.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		p.write()
	}
	asks := func(method, path, body string) func(p *post) {
		return func(p *post) { p.rt.call(method, path, body) }
	}
	for _, c := range []struct {
		name    string
		before  func(p *post)
		do      func(p *post)
		least   int // so many requests it makes
		scripts []string
	}{
		{"a create", func(p *post) {}, asks("PUT", "/_shard/tenants/acme", `{"node":"n1"}`), 2, []string{
			"pending repairs are done, it is created again, it is given a replica, it is written to, its node is failed over, it is written to",
			"it is created again, it is written to, it is moved to n2, it is written to",
		}},
		{"a replica", func(p *post) {
			p.rt.config.Replicas = false // of a create
			made(p)
		}, asks("POST", "/_shard/replicas", ""), 1, []string{
			"it is given a replica, its node is failed over, it is written to, its node is failed over, it is written to",
			"it is given a replica, it is moved to n3, it is written to, it is moved to n2, it is written to",
		}},
		{"a failover", made, func(p *post) {
			p.rt.call("POST", "/_shard/nodes/n1/failover", "")
			repairedAll(p.t, p.rt)
		}, 4, []string{
			"pending repairs are done, it is written to, its node is failed over, it is written to, its node is failed over, it is written to",
			"the router is restarted, it is written to, it is moved to n1, it is written to, its node is failed over",
			"the nodes are restarted, it is written to, it is moved to n3, it is written to, it is moved to n2, it is written to",
			"pending repairs are done, it is deleted, it is created again, it is written to",
		}},
		{"a move", made, asks("POST", "/_shard/tenants/acme/move", `{"to":"n3"}`), 6, []string{
			"pending repairs are done, it is written to, its node is failed over, it is written to, it is moved to n1, it is written to",
		}},
		{"a move onto the replica", made, asks("POST", "/_shard/tenants/acme/move", `{"to":"n2"}`), 8, []string{
			"pending repairs are done, it is given a replica, it is written to, its node is failed over, it is written to",
		}},
		{"a delete", made, func(p *post) {
			if status, _ := p.rt.call("DELETE", "/_shard/tenants/acme", ""); status == 204 {
				p.rows = map[string]bool{}
			}
		}, 4, []string{
			"it is deleted, it is created again, it is given a replica, it is written to, its node is failed over, it is written to",
		}},
	} {
		for _, script := range c.scripts {
			names := strings.Split(script, ", ")
			for after := 0; after <= len(names); after++ {
				at := 1
				for met := true; met && !t.Failed(); at++ {
					point := "at once"
					if after > 0 {
						point = fmt.Sprint("after stage ", after, " of ", script)
					}
					t.Run(fmt.Sprintf("%s, request %d late, %s", c.name, at, point), func(t *testing.T) {
						p := newPostOf(t, 3, Config{Replicas: true})
						c.before(p)
						p.hold(at)
						c.do(p)
						which := p.mail.end()
						met = which != ""
						t.Logf("held back: %s", which)
						p.playStages(names, after)
						p.end()
					})
				}
				if at-2 < c.least && !t.Failed() {
					t.Errorf("%s makes %d requests", c.name, at-2)
				}
			}
		}
	}
}

// playStages runs the stages, and delivers what was held back after one of them, or before the first.
func (p *post) playStages(names []string, after int) {
	p.t.Helper()
	if after == 0 {
		p.deliver()
	}
	for i, name := range names {
		p.stage(name)
		if after == i+1 {
			p.deliver()
		}
	}
}

// Stories of operations on a tenant with a replica, restarts and requests that come late, any of them any time.
func TestStoriesWithReplicasAndLateRequests(t *testing.T) {
	acts := []string{
		"it is moved to n1", "it is moved to n2", "it is moved to n3", "its node is failed over", "its node is failed over",
		"it is given a replica", "it is deleted", "it is created again", "it is written to", "it is written to",
		"the router is restarted", "the nodes are restarted", "pending repairs are done",
	}
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			p := newPostOf(t, 3, Config{Replicas: true})
			p.stage("it is created again")
			for range 25 {
				if random.IntN(2) == 0 {
					p.hold(1 + random.IntN(6))
				}
				if random.IntN(4) == 0 {
					p.deliver()
				}
				act := acts[random.IntN(len(acts))]
				t.Logf("%s, request %d late", act, p.at)
				switch {
				case act == "its node is failed over":
					p.rt.call("POST", "/_shard/nodes/"+p.onAny()+"/failover", "")
				case act == "it is given a replica":
					p.rt.call("POST", "/_shard/replicas", "")
				case strings.HasPrefix(act, "it is moved to n"):
					p.rt.call("POST", "/_shard/tenants/acme/move", `{"to":"`+act[len(act)-2:]+`"}`)
				default:
					p.attempt(act)
				}
				if which := p.mail.end(); which != "" {
					t.Logf("held back: %s", which)
				}
			}
			p.stage("it is created again")
			p.playStages([]string{"it is written to"}, 1)
			p.end()
		})
	}
}

// onAny is on, or n1 if acme is nowhere.
func (p *post) onAny() string {
	if on := p.on(); on != "" {
		return on
	}
	return "n1"
}
