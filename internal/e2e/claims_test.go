package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/client"
)

// claimers are workers that claim jobs of a tenant and acknowledge them, whatever they are answered meanwhile.
type claimers struct {
	tenant *client.Client

	mu     sync.Mutex
	done   map[int]int // by job: how often it was acknowledged
	wrong  []string
	ended  chan struct{}
	moved  int // answers of 503
	jobs   int
	owners int
}

func (c *claimers) work(ctx context.Context) {
	type job struct {
		ID int64 `json:"id"`
		N  int   `json:"n"`
	}
	once := c.tenant.WithPatience(-1) // what a claim whose answer is lost has claimed comes back
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
		jobs, err := client.Claim[job](ctx, once, 30*time.Second,
			"set jobs {owner: $1, run_at: now() + 2_000} where run_at <= now() order by run_at limit 10 returning id, n", owner)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && refused.Status == 503:
			c.mu.Lock()
			c.moved++
			c.mu.Unlock()
		case errors.As(err, &refused) && refused.Status < 500:
			c.fails("a claim answered %d %v", refused.Status, err)
		}
		for _, job := range jobs {
			c.acknowledge(ctx, job.ID, job.N, owner)
		}
	}
}

// acknowledge deletes a job under a key, so that an answer that is lost can be asked for again.
func (c *claimers) acknowledge(ctx context.Context, id int64, n int, owner string) {
	deleted, err := c.tenant.WithKey(fmt.Sprint(owner, " ", id)).Exec(ctx, "del jobs where id = $1 and owner = $2", id, owner)
	if err != nil {
		c.fails("an acknowledgement failed: %v", err)
	}
	if deleted == 0 {
		return // it came to be another's
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done[n]++; len(c.done) == c.jobs {
		close(c.ended)
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
	tenant := client.New(cluster.tenant(), client.Options{Patience: patience})
	defer tenant.Close()
	c := &claimers{tenant: tenant, done: map[int]int{}, ended: make(chan struct{}), jobs: 600}
	query(t, cluster.tenant(), "create collection jobs (n int, owner text, run_at timestamp @sorted)")
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() { c.work(t.Context()) })
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
	c := client.New(tenant, client.Options{Patience: -1})
	defer c.Close()
	if jobs, err := client.Claim[struct{}](t.Context(), c, 500*time.Millisecond, "del jobs where n = 1 returning id"); err != nil || len(jobs) != 0 {
		t.Errorf("a claim that finds nothing for longer than the timeout is answered %v, %v", jobs, err)
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
