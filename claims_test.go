package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// claimers are workers that claim jobs at a tenant and acknowledge them, whatever they are answered meanwhile.
type claimers struct {
	t      *testing.T
	tenant func() string
	web    *http.Client

	mu     sync.Mutex
	done   map[int]int // by job: how often it was acknowledged
	wrong  []string
	ended  chan struct{}
	moved  int // answers of 503
	jobs   int
	owners int
}

// post sends a request to the tenant; an answer that did not come has the status 0.
func (c *claimers) post(path, body string, headers ...string) answered {
	r, err := http.NewRequest("POST", c.tenant()+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the address is a good one
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := c.web.Do(r)
	if err != nil {
		return answered{}
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return answered{}
	}
	return answered{a.StatusCode, string(text), a.Header}
}

func (c *claimers) work() {
	for {
		select {
		case <-c.ended:
			return
		default:
		}
		c.mu.Lock()
		c.owners++
		owner := fmt.Sprint("w", c.owners)
		c.mu.Unlock()
		a := c.post("/query", queryBody(`set jobs {owner: "`+owner+`", run_at: now() + 2_000} where run_at <= now() order by run_at limit 10 returning id, n`), "Fenec-Wait", "30000")
		var jobs []struct{ ID, N int }
		switch {
		case a.status == 503:
			c.mu.Lock()
			c.moved++
			c.mu.Unlock()
			continue
		case a.status != 200:
			continue // what it may have claimed comes back
		case json.Unmarshal([]byte(a.body), &jobs) != nil:
			c.fails("a claim answered %s", a.body)
			continue
		}
		for _, job := range jobs {
			c.acknowledge(job.ID, job.N, owner)
		}
	}
}

// acknowledge deletes a job under a key, so that an answer that is lost can be asked for again.
func (c *claimers) acknowledge(id, n int, owner string) {
	body := queryBody(fmt.Sprintf(`del jobs where id = %d and owner = "%s"`, id, owner))
	for {
		switch a := c.post("/query", body, "Idempotency-Key", fmt.Sprint(owner, " ", id)); {
		case a.status == 200 && a.body == `{"affected":1}`:
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.done[n]++; len(c.done) == c.jobs {
				close(c.ended)
			}
			return
		case a.status == 200:
			return // it came to be another's
		case a.status != 0 && a.status < 500:
			c.fails("an acknowledgement answered %d %s", a.status, a.body)
			return
		}
	}
}

func (c *claimers) fails(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func TestClaimsThroughTheRouterWhileTheTenantMoves(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	c := &claimers{
		t: t, tenant: cluster.tenant, web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
		done: map[int]int{}, ended: make(chan struct{}), jobs: 600,
	}
	query(t, cluster.tenant(), "create collection jobs (n int, owner text, run_at timestamp @sorted)")
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(c.work)
	}
	held := func(n int) func() bool {
		return func() bool {
			sum := 0
			for _, node := range cluster.nodes {
				sum += gauge(t, node, "fenec_claims_held")
			}
			return sum == n
		}
	}
	on := "n1"
	for n := 0; n < c.jobs; n += 60 {
		eventually(t, "the workers wait at the server", held(8))
		switch n / 60 % 4 {
		case 1:
			on = other(on)
			if a := cluster.move(on); a.status != 200 {
				t.Fatalf("the move answered %d %s", a.status, a.body)
			}
			eventually(t, "the workers wait at the other node", held(8))
		case 3:
			cluster.nodes[on].kill()
			cluster.startNode(on)
		}
		rows := make([]string, 60)
		for i := range rows {
			rows[i] = fmt.Sprintf("{n: %d, run_at: now() + %d}", n+i, i%3*20)
		}
		query(t, cluster.tenant(), "put jobs ["+strings.Join(rows, ",")+"]")
	}
	eventually(t, "all jobs are done", func() bool {
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	})
	for _, node := range cluster.nodes {
		node.stop() // which answers those that wait still
	}
	cluster.router.Load().stop()
	workers.Wait()
	c.web.CloseIdleConnections()
	for n, times := range c.done {
		if times != 1 {
			t.Errorf("job %d was acknowledged %d times", n, times)
		}
	}
	for _, wrong := range c.wrong {
		t.Error(wrong)
	}
	if c.moved == 0 {
		t.Error("no held claim was told that its tenant moves")
	}
}

func TestAHeldClaimOutlastsTheRoutersTimeout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	router := startRouter(t, dir+"/shard.fenec", "--upstream-timeout", "200ms")
	node := startNode(t, dir+"/node")
	record(t, router, "n1", node.addr)
	must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", `{"node": "n1"}`)
	tenant := router.url() + "/t/acme"
	query(t, tenant, "create collection jobs (n int)")
	c := &claimers{t: t, tenant: func() string { return tenant }, web: &http.Client{}}
	defer c.web.CloseIdleConnections()
	if a := c.post("/query", queryBody("del jobs where n = 1"), "Fenec-Wait", "500"); a.status != 200 || a.body != `{"affected":0}` {
		t.Errorf("a claim that finds nothing for longer than the timeout is answered %d %s", a.status, a.body)
	}
}

// gauge reads a number of a node's metrics.
func gauge(t *testing.T, node *process, name string) int {
	t.Helper()
	for line := range strings.Lines(must(t, 200, "GET", node.url()+"/_metrics", "")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
