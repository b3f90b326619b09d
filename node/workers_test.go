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

// lease is how long a worker of crew has a job for itself.
const lease = time.Minute

// crew is workers that claim jobs in tens and acknowledge them in batches. Some die: as they wait, as they are handed jobs,
// or with jobs in their hands.
type crew struct {
	r     *running
	clock *fakeClock
	jobs  int

	mu     sync.Mutex
	owners int
	hands  map[int64]int64 // by job: when the lease of whoever has it ends, in ms
	done   map[string]bool
	alive  []context.CancelFunc // claims under way that may be cut off
	deaths int
	wrong  []string
	ended  chan struct{} // closed as all is done
}

const leasing = `{"query": "set jobs {state: \"leased\", owner: $1, run_at: now() + %d} where state in [\"ready\", \"leased\"] and run_at <= now() order by run_at limit 10 returning id, name, run_at", "params": ["%s"]}`

type leased struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	RunAt time.Time `json:"run_at"`
}

// work is one worker until all is done.
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
			continue // with jobs in its hands
		}
		c.acknowledge(jobs, owner)
	}
}

// claim is one claim, cut off now and then.
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
		c.fails("a claim is answered %d %s", resp.StatusCode, text)
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range jobs {
		// The lease began a lease before its end.
		if until, ok := c.hands[job.ID]; ok && until > job.RunAt.Add(-lease).UnixMilli() {
			c.wrong = append(c.wrong, fmt.Sprintf("%s is in two hands", job.Name))
		}
		c.hands[job.ID] = job.RunAt.UnixMilli()
	}
	return jobs, true
}

// acknowledge deletes the jobs that are the worker's still.
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
		c.fails("an acknowledgement is answered %d %s %v", got.status, got.body, err)
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
		delete(c.hands, jobs[i].ID)
		if c.done[jobs[i].Name] = true; len(c.done) == c.jobs {
			close(c.ended)
		}
	}
}

// enqueue puts jobs, and cuts a claim off as they land.
func (c *crew) enqueue(from, n int) {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"name": "job %d", "state": "ready", "run_at": %d}`, from+i, c.clock.Now().UnixMilli())
	}
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		if got, err := c.r.send("POST", "/t/x/jobs", "["+strings.Join(rows, ",")+"]"); err != nil || got.status != 201 {
			c.fails("a put is answered %d %s %v", got.status, got.body, err)
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

func (c *crew) died() {
	c.mu.Lock()
	c.deaths++
	c.mu.Unlock()
}

func (c *crew) fails(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 10 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func TestJobsAreInOneHandAtATimeAndAllDone(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", "create collection jobs (name text, state text, owner text, run_at timestamp @sorted)")
	c := &crew{r: r, clock: clock, jobs: 6000, hands: map[int64]int64{}, done: map[string]bool{}, ended: make(chan struct{})}
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
	eventually(t, "all jobs are done", func() bool { // what the dead had comes back as their leases run out
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
		t.Errorf("%d workers died, which is too few", c.deaths)
	}
	c.mu.Unlock()
	r.stop() // which answers those that wait still
	workers.Wait()
}

func TestHeldClaimsLeaveNothingBehind(t *testing.T) {
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
