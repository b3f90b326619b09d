package router

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// mail is what comes late: one of the requests by which the router changes what nodes hold, each time it is sent.
type mail struct {
	mu    sync.Mutex
	at    int    // the how manyth of them, from 1; 0 for none
	seen  int    // of them
	which string // the one that is held back, once it is known
	sent  int    // how often that one was
}

// hold holds back the request at a number, counted from now on.
func (m *mail) hold(at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.seen, m.which, m.sent = at, 0, "", 0
}

// end lets everything pass from now on and returns what was held back, empty for nothing.
func (m *mail) end() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	which := m.which
	m.at, m.which = 0, ""
	return which
}

func (m *mail) judge(n *fakeNode, r *http.Request) verdict {
	if r.Method == "GET" || !strings.HasPrefix(r.URL.Path, "/_admin/tenants/") || r.Header.Get("By") == "operator" {
		return pass
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := n.name + ": " + r.Method + " " + r.URL.Path + " at " + r.Header.Get("Fenec-Revision")
	switch {
	case m.at == 0:
		return pass
	case m.which == name && m.sent == 1: // sent again, as its connection broke
		m.sent++
		return late
	case m.which != "":
		return pass
	}
	if m.seen++; m.seen != m.at {
		return pass
	}
	m.which, m.sent = name, 1
	return late
}

// post is a world whose nodes get requests late.
type post struct {
	*world
	mail
	rows map[string]bool // that were answered and have to be there
	next int
}

func newPost(t *testing.T) *post { return newPostOf(t, 2, Config{}) }

func newPostOf(t *testing.T, nodes int, c Config) *post {
	p := &post{world: newWorldOf(t, 1, nodes, c), rows: map[string]bool{}}
	p.traces = true
	for _, n := range p.nodes {
		n.cutting(p.judged)
	}
	return p
}

func (p *post) judged(n *fakeNode, r *http.Request) verdict {
	if v := p.request(n, r); v != pass {
		return v
	}
	return p.judge(n, r)
}

// write has acme take a row, now or soon: it is not frozen for good.
func (p *post) write() {
	p.t.Helper()
	p.next++
	value := fmt.Sprint("row ", p.next)
	eventually(p.t, "acme takes writes", func() bool {
		status, _ := p.rt.call("POST", "/t/acme/c", value)
		return status == 200
	})
	p.rows[value] = true
}

// answered repeats a request of an operator until it has the status.
func (p *post) answered(method, path, body string, statuses ...int) {
	p.t.Helper()
	last := ""
	eventually(p.t, method+" "+path+" "+body+" is answered as it should be", func() bool {
		status, text := p.rt.call(method, path, body)
		if said := fmt.Sprint(status, " ", text); said != last {
			last = said
			p.t.Logf("%s %s %s: %s", method, path, body, said)
		}
		for _, s := range statuses {
			if s == status {
				return true
			}
		}
		time.Sleep(5 * time.Millisecond)
		return false
	})
}

func (p *post) on() string {
	node, _, _ := strings.Cut(p.rt.tenants()["acme"], " ")
	return node
}

func (p *post) other() string {
	if p.on() == "n1" {
		return "n2"
	}
	return "n1"
}

func (p *post) move(to string) {
	p.t.Helper()
	p.answered("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`, 200, 409)
}

func (p *post) deliver() {
	for _, n := range p.nodes {
		n.deliver()
		p.watch("after a late request")
	}
}

// The stages that a late request may arrive after.
var stages = map[string]func(p *post){
	"the router is restarted": func(p *post) {
		p.restart()
		repairedAll(p.t, p.rt)
	},
	"the nodes are restarted": func(p *post) {
		for _, n := range p.nodes {
			n.restart()
		}
	},
	"pending repairs are done": func(p *post) { repairedAll(p.t, p.rt) },
	"it is moved on":           func(p *post) { p.move(p.other()) },
	"it is moved back":         func(p *post) { p.move(p.other()) },
	"it is moved to where it is": func(p *post) {
		p.move(p.on())
	},
	"its operator froze and thawed it": func(p *post) {
		for _, n := range p.nodes {
			// One that a move still has frozen is not frozen by anybody else.
			if n.name == p.on() && n.operate("POST", "acme/freeze", `{"token":"backup"}`) == 200 {
				n.operate("POST", "acme/thaw", `{"token":"backup"}`)
			}
		}
	},
	"it is deleted": func(p *post) {
		p.answered("DELETE", "/_shard/tenants/acme", "", 204, 404)
		p.rows = map[string]bool{}
	},
	"it is created again": func(p *post) { p.answered("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201, 409) },
	"it is written to":    func(p *post) { p.write() },
}

// operate sends a node an admin request of its operator, which names nothing, and returns the answer's status.
func (n *fakeNode) operate(method, path, body string) int {
	r, err := http.NewRequest(method, "http://"+n.addr()+"/_admin/tenants/"+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.name+"-token")
	r.Header.Set("By", "operator")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// Each request by which the router changes what a node holds is held back, and arrives after each stage of what comes
// next. Wherever it does: one copy is there and takes writes, and it has every row that was answered.
func TestALateRequestChangesNothing(t *testing.T) {
	made := func(p *post) {
		p.rt.must("PUT", "/_shard/tenants/acme", `{"node":"n1"}`, 201)
		p.write()
	}
	moveTo := func(to string) func(p *post) {
		return func(p *post) { p.rt.call("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`) }
	}
	interrupted := func(p *post) {
		made(p)
		p.hold(2) // the image
		moveTo("n2")(p)
		p.mail.end()
		for _, n := range p.nodes {
			n.mu.Lock()
			n.held = nil
			n.mu.Unlock()
		}
	}
	for _, c := range []struct {
		name    string
		before  func(p *post)
		do      func(p *post)
		least   int // so many requests it makes
		scripts []string
	}{
		{"a move", made, moveTo("n2"), 5, []string{
			"the router is restarted, it is written to, it is moved on, it is written to, it is moved back, it is written to",
			"pending repairs are done, it is moved on, it is moved back, its operator froze and thawed it, it is written to",
			"it is moved to where it is, it is written to, the nodes are restarted, it is written to",
			"the nodes are restarted, the router is restarted, it is written to",
			"pending repairs are done, it is deleted, it is created again, it is written to",
			"it is moved on, the router is restarted, it is moved back, the nodes are restarted, it is written to",
		}},
		{"a move after one that failed", interrupted, moveTo("n2"), 5, []string{
			"it is written to, it is moved on, it is written to, it is moved back, it is written to",
			"the router is restarted, it is deleted, it is created again, it is written to",
		}},
		{"the end of a move", func(p *post) {
			made(p)
			p.nodes[0].cutting(func(n *fakeNode, r *http.Request) verdict {
				if r.Method == "DELETE" { // of the source's copy: the router is killed there
					p.world.mu.Lock()
					p.off = true
					p.world.mu.Unlock()
				}
				return p.judged(n, r)
			})
			moveTo("n2")(p)
			p.nodes[0].cutting(p.judged)
		}, func(p *post) { p.stage("the router is restarted") }, 1, []string{
			"it is moved on, it is written to, it is moved back, it is written to",
			"it is deleted, it is created again, it is written to",
		}},
		{"a delete", made, func(p *post) {
			if status, _ := p.rt.call("DELETE", "/_shard/tenants/acme", ""); status == 204 {
				p.rows = map[string]bool{}
			}
		}, 2, []string{
			"it is deleted, it is created again, it is written to",
			"the router is restarted, it is deleted, it is created again, it is written to",
			"the nodes are restarted, it is deleted, it is created again, it is written to, it is moved on, it is moved back",
			"pending repairs are done, it is created again, it is written to, it is moved on, it is moved back, it is written to",
		}},
		{"a create", func(p *post) {}, func(p *post) { p.rt.call("PUT", "/_shard/tenants/acme", `{"node":"n2"}`) }, 1, []string{
			"pending repairs are done, it is created again, it is written to, it is moved on, it is written to, it is moved back",
			"the router is restarted, it is created again, it is written to",
			"it is created again, it is written to, it is deleted, it is created again, it is written to",
		}},
	} {
		scripts := c.scripts
		if testing.Short() {
			scripts = scripts[:1]
		}
		for _, script := range scripts {
			names := strings.Split(script, ", ")
			for after := 0; after <= len(names); after++ {
				at := 1
				for met := true; met && !t.Failed(); at++ {
					point := "at once"
					if after > 0 {
						point = fmt.Sprint("after stage ", after, " of ", script)
					}
					t.Run(fmt.Sprintf("%s, request %d late, %s", c.name, at, point), func(t *testing.T) {
						p := newPost(t)
						c.before(p)
						p.hold(at)
						c.do(p)
						which := p.mail.end()
						met = which != ""
						t.Logf("held back: %s", which)
						p.play(names, after)
					})
				}
				if at-2 < c.least && !t.Failed() {
					t.Errorf("%s makes %d requests", c.name, at-2)
				}
			}
		}
	}
}

func (p *post) stage(name string) {
	p.t.Helper()
	do := stages[name]
	if do == nil {
		p.t.Fatalf("there is no stage %q", name)
	}
	do(p)
}

// play runs the stages, delivers what was held back after one of them, and looks at what there is in the end.
func (p *post) play(names []string, after int) {
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
	p.stage("pending repairs are done")
	p.write()
	p.stage("the router is restarted")
	p.write()
	p.holds(p.rows)
	// A move that clears away what interrupted ones have left.
	p.move(p.other())
	p.write()
	p.holds(p.rows)
	p.alone()
}

// Stories of operations, restarts and requests that come late, any of them any time, several on their way at once.
func TestStoriesWithLateRequests(t *testing.T) {
	acts := []string{
		"it is moved on", "it is moved on", "it is moved to where it is", "it is deleted", "it is created again",
		"it is written to", "its operator froze and thawed it", "the router is restarted", "the nodes are restarted",
		"pending repairs are done",
	}
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			p := newPost(t)
			p.stage("it is created again")
			for range 25 {
				if random.IntN(2) == 0 {
					p.hold(1 + random.IntN(5))
				}
				if random.IntN(4) == 0 {
					p.deliver()
				}
				act := acts[random.IntN(len(acts))]
				t.Logf("%s, request %d late", act, p.at)
				p.attempt(act)
				if which := p.mail.end(); which != "" {
					t.Logf("held back: %s", which)
				}
			}
			p.stage("it is created again")
			p.play([]string{"it is written to"}, 1)
		})
	}
}

// attempt has an operator do something once, whether or not that succeeds.
func (p *post) attempt(act string) {
	p.t.Helper()
	move := func(to string) { p.rt.call("POST", "/_shard/tenants/acme/move", `{"to":"`+to+`"}`) }
	switch act {
	case "it is moved on":
		move(p.other())
	case "it is moved to where it is":
		move(p.on())
	case "it is deleted":
		if status, _ := p.rt.call("DELETE", "/_shard/tenants/acme", ""); status == 204 || p.on() == "" {
			p.rows = map[string]bool{}
		}
	case "it is created again":
		p.rt.call("PUT", "/_shard/tenants/acme", "")
	case "it is written to":
		p.next++
		value := fmt.Sprint("row ", p.next)
		if status, _ := p.rt.call("POST", "/t/acme/c", value); status == 200 {
			p.rows[value] = true
		}
	case "the router is restarted":
		p.restart() // and what it owes is not waited for
	case "pending repairs are done":
		p.rt.repairer.wake()
	default:
		p.stage(act)
	}
}
