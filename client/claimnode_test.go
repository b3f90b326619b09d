package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"fenec/client"
)

type job struct {
	ID   int64 `json:"id"`
	Done int   `json:"done"`
}

// TestWorkersRunEachJobOnce has workers claim jobs through a proxy that loses responses.
func TestWorkersRunEachJobOnce(t *testing.T) {
	t.Parallel()
	const workers, jobs = 4, 60
	tenant := serveTenant(t)
	direct := newClient(t, tenant, client.Options{})
	exec(t, direct, "create collection jobs (run_at timestamp @sorted, done int)")
	address, lost := cutting(t, tenant)
	c := newClient(t, address, client.Options{}).WithKeys()
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	done := make(chan int64, jobs)
	for range workers {
		g.Go(func() {
			for {
				claimed, err := client.Claim[job](ctx, c, time.Minute, "set jobs {run_at: now() + 3_600_000} where run_at <= now() and done = 0 order run_at limit 1 returning *")
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				for _, j := range claimed {
					if _, err := c.Exec(ctx, "set jobs {done: done + 1} where id = $1", j.ID); err != nil {
						t.Error(err)
					}
					done <- j.ID
				}
			}
		})
	}
	for range jobs {
		exec(t, c, "put jobs {run_at: now(), done: 0}")
	}
	for range jobs {
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("timed out: expected that every job is claimed")
		}
	}
	cancel()
	g.Wait()
	rows, err := client.Query[job](t.Context(), direct, "get jobs where done = 1")
	if len(rows) != jobs || err != nil || lost.Load() == 0 {
		t.Errorf("got %d of %d jobs done once, %d responses lost, %v, expected all and some lost", len(rows), jobs, lost.Load(), err)
	}
}

func ExampleClaim() {
	c, done := open()
	defer done()
	ctx := context.Background()
	must(c.Exec(ctx, "create collection jobs (task text, run_at timestamp @sorted)"))
	enqueued := make(chan struct{})
	go func() {
		defer close(enqueued)
		must(c.Exec(ctx, "put jobs {task: 'send the letter', run_at: now()}"))
	}()

	type Job struct {
		ID   int64  `json:"id"`
		Task string `json:"task"`
	}
	// The job belongs to this worker for 30 s; then it is due again, unless it was deleted.
	jobs, err := client.Claim[Job](ctx, c.WithKeys(), time.Minute,
		"set jobs {run_at: now() + 30_000} where run_at <= now() order run_at limit 1 returning *")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range jobs {
		fmt.Println(job.Task)
		must(c.Exec(ctx, "del jobs where id = $1", job.ID))
	}
	<-enqueued
	// Output: send the letter
}
