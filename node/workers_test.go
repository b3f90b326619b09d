package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// lease is how long a worker of a crew holds a job.
const lease = time.Minute

// crew is a group of workers that claim up to ten jobs at a time and acknowledge them in batches. Some die while they wait,
// while they receive jobs or before they acknowledge them.
type crew struct {
	r     *running
	clock *fakeClock
	jobs  int

	mu     sync.Mutex
	owners int
	leases map[int64]int64 // by job: the end of its last lease, in ms
	done   map[string]bool
	alive  []context.CancelFunc // cut off claims in progress
	deaths int
	wrong  []string
	ended  chan struct{} // closed once all jobs are done
}

const leasing = `{"query": "set jobs {state: \"leased\", owner: $1, run_at: now() + %d} where state in [\"ready\", \"leased\"] and run_at <= now() order by run_at limit 10 returning id, name, run_at", "params": ["%s"]}`

type leased struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	RunAt time.Time `json:"run_at"`
}

// work runs a worker until all jobs are done.
func (c *crew) work(rnd *rand.Rand) {
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
		jobs, ok := c.claim(rnd, owner)
		if !ok {
			continue
		}
		if rnd.IntN(20) == 0 {
			c.died()
			continue // before it acknowledges its jobs
		}
		c.acknowledge(jobs, owner)
	}
}

// claim sends a claim, which may be cut off, and returns its jobs.
func (c *crew) claim(rnd *rand.Rand, owner string) (jobs []leased, ok bool) {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	if rnd.IntN(4) == 0 {
		c.mu.Lock()
		c.alive = append(c.alive, cut)
		c.mu.Unlock()
	}
	req, err := http.NewRequestWithContext(ctx, "POST", c.r.url+"/t/x/query", strings.NewReader(fmt.Sprintf(leasing, lease.Milliseconds(), owner)))
	if err != nil {
		c.fails("%v", err)
		return nil, false
	}
	req.Header.Set("Fenec-Wait", "30000")
	resp, err := c.r.client.Do(req)
	if err != nil {
		return nil, false // cut off
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, false
	}
	if err := json.Unmarshal(text, &jobs); err != nil || resp.StatusCode != 200 {
		c.fails("a claim: got %d %s, expected 200", resp.StatusCode, text)
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range jobs {
		// The lease began a lease before its end.
		if until, ok := c.leases[job.ID]; ok && until > job.RunAt.Add(-lease).UnixMilli() {
			c.wrong = append(c.wrong, fmt.Sprintf("%s is leased to two workers", job.Name))
		}
		c.leases[job.ID] = job.RunAt.UnixMilli()
	}
	return jobs, true
}

// acknowledge deletes the jobs that the worker still holds.
func (c *crew) acknowledge(jobs []leased, owner string) {
	var batch strings.Builder
	for _, job := range jobs {
		fmt.Fprintf(&batch, `{"query": "del jobs where id = $1 and owner = $2", "params": [%d, %q]}`+"\n", job.ID, owner)
	}
	got, err := c.r.send("POST", "/t/x/batch", batch.String())
	var answer struct {
		Results []struct{ Affected int }
	}
	if err != nil || json.Unmarshal([]byte(got.body), &answer) != nil || len(answer.Results) != len(jobs) {
		c.fails("an acknowledgement: got %d %s %v, expected a result for each job", got.status, got.body, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, result := range answer.Results {
		if result.Affected == 0 {
			continue // the lease ran out, and another worker has the job
		}
		if c.done[jobs[i].Name] {
			c.wrong = append(c.wrong, jobs[i].Name+" is done twice")
		}
		delete(c.leases, jobs[i].ID)
		if c.done[jobs[i].Name] = true; len(c.done) == c.jobs {
			close(c.ended)
		}
	}
}

// enqueue inserts jobs, and cuts off claims while they land.
func (c *crew) enqueue(from, n int) {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"name": "job %d", "state": "ready", "run_at": %d}`, from+i, c.clock.Now().UnixMilli())
	}
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		if got, err := c.r.send("POST", "/t/x/jobs", "["+strings.Join(rows, ",")+"]"); err != nil || got.status != 201 {
			c.fails("an insert: got %d %s %v, expected 201", got.status, got.body, err)
		}
	}()
	if from%3 == 0 {
		<-landed
	}
	c.mu.Lock()
	for _, cut := range c.alive {
		cut()
		c.deaths++
	}
	c.alive = c.alive[:0]
	c.mu.Unlock()
	<-landed
}

// died counts a worker that died.
func (c *crew) died() {
	c.mu.Lock()
	c.deaths++
	c.mu.Unlock()
}

// fails records a failure.
func (c *crew) fails(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 10 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func TestJobsAreLeasedToOneWorkerAtATimeAndAllDone(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", "create collection jobs (name text, state text, owner text, run_at timestamp @sorted)")
	c := &crew{r: r, clock: clock, jobs: 6000, leases: map[int64]int64{}, done: map[string]bool{}, ended: make(chan struct{})}
	seed := rand.Uint64()
	var workers sync.WaitGroup
	for i := range 16 {
		workers.Go(func() { c.work(rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	rnd := rand.New(rand.NewPCG(seed, 100))
	for n := 0; n < c.jobs; {
		some := min(1+rnd.IntN(30), c.jobs-n)
		c.enqueue(n, some)
		n += some
	}
	queues := r.tenants.Find([]byte("x")).Claims
	eventually(t, "all jobs are done", func() bool { // the jobs of dead workers are due again when their leases end
		clock.Advance(lease / 100)
		queues.WakeDue()
		select {
		case <-c.ended:
			return true
		default:
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.wrong) > 0
		}
	})
	c.mu.Lock()
	for _, wrong := range c.wrong {
		t.Errorf("seed %d: %s", seed, wrong)
	}
	if c.deaths < 20 {
		t.Errorf("got %d dead workers, expected at least 20", c.deaths)
	}
	c.mu.Unlock()
	r.stop() // ends the claims that still wait
	workers.Wait()
}

func TestHeldClaimsLeaveNoGoroutineAfterTheyEnd(t *testing.T) {
	r := start(t, Config{})
	r.jobs("x")
	r.want(200, "POST", "/t/x/query", statement(claimJob), "Fenec-Wait", "1")
	r.client.CloseIdleConnections()
	eventually(t, "the connections are closed", func() bool { return r.server.Connections() == 0 })
	before := runtime.NumGoroutine()
	ctx, leave := context.WithCancel(context.Background())
	var held sync.WaitGroup
	for i := range 200 {
		held.Go(func() {
			body := fmt.Sprintf(`{"query": "del jobs where name = $1 and run_at <= now()", "params": ["%d"]}`, i%20)
			req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/t/x/query", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Fenec-Wait", "30000")
			if resp, err := r.client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	r.rest(200)
	r.put("x", "7", " + 3600000")
	leave()
	held.Wait()
	r.rest(0)
	r.client.CloseIdleConnections()
	eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}
