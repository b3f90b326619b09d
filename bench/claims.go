package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	workers    = 16
	queueJobs  = 64_000 // of a turn
	claimSize  = 10
	heldClaims = 1000
)

// claimQuery takes the ten jobs that have been due longest.
const claimQuery = `set jobs {owner: $1, run_at: now() + 30_000} where state = \"ready\" and run_at <= now() order by run_at limit 10 returning id, payload`

// claimFigures measures a queue made of one collection.
func claimFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	port, err := l.startNode("", "claims", "--sync", "off", "--max-connections", "4096")
	if err != nil {
		return err
	}
	node := l.started[len(l.started)-1].Process.Pid
	if err := createTenant(port, "x"); err != nil {
		return err
	}
	base := "http://" + address(port) + "/t/x"
	for _, statement := range []string{
		"create collection jobs (payload text, state text, owner text, run_at timestamp @sorted)",
		"create collection puts (payload text, state text, owner text, run_at timestamp @sorted)",
		"create collection other (payload text)",
	} {
		if _, err := send("POST", base+"/query", "", `{"query": "`+statement+`"}`); err != nil {
			return err
		}
	}
	for _, measure := range []func() error{
		func() error { return r.jobFigures(base, port) },
		func() error { return r.wakeFigure(port) },
		func() error { return r.heldFigure(port, node) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// jobFigures compares jobs done with documents put, and with PostgreSQL's jobs.
func (r *report) jobFigures(base string, port int) error {
	jobs := side{"jobs", func() (float64, error) { return doJobs(base, port) }}
	if err := r.figure(figure{
		name: "jobs that 16 workers claim in tens and acknowledge in batches, beside 16 clients' puts", unit: "/s", rate: true, atLeast: 0.4,
		ours: jobs, peer: side{"puts", func() (float64, error) { return putJobs(port) }},
	}); err != nil {
		return err
	}
	p, err := startPostgres()
	if errors.Is(err, errNoPostgres) {
		r.skip("the same jobs in PostgreSQL, for update skip locked", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	return r.figure(figure{
		name: "the same jobs in PostgreSQL, for update skip locked", unit: "/s", rate: true, atLeast: 3,
		ours: jobs, peer: side{"PostgreSQL, 16 connections", p.doJobs},
	})
}

// together runs work on so many connections at once.
func together(port, connections int, work func(n int, c *client) error) error {
	var all sync.WaitGroup
	failed := make([]error, connections)
	for n := range connections {
		all.Go(func() {
			c, err := dial(port)
			if err != nil {
				failed[n] = err
				return
			}
			defer c.close()
			failed[n] = work(n, c)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// doJobs fills the queue and has the workers empty it: jobs a second.
func doJobs(base string, port int) (float64, error) {
	var rows []string
	for i := range queueJobs {
		rows = append(rows, fmt.Sprintf(`{payload: "job %d", state: "ready", run_at: now()}`, i))
	}
	if _, err := send("POST", base+"/query", "", fmt.Sprintf(`{"query": %q}`, "put jobs ["+strings.Join(rows, ",")+"]")); err != nil {
		return 0, err
	}
	began := time.Now()
	err := together(port, workers, func(n int, c *client) error {
		for turn := 0; ; turn++ {
			owner := fmt.Sprintf("w%d-%d", n, turn)
			body, err := c.post("/t/x/query", `{"query": "`+claimQuery+`", "params": ["`+owner+`"]}`)
			if err != nil || string(body) == "[]" {
				return err
			}
			var ids []byte
			claimed := bytes.Split(body, []byte(`{"id":`))[1:]
			for _, row := range claimed {
				id, _, _ := bytes.Cut(row, []byte(","))
				ids = append(append(ids, ','), id...)
			}
			done, err := c.post("/t/x/query", fmt.Sprintf(`{"query": "del jobs where id in $1 and owner = $2", "params": [[%s], "%s"]}`, ids[1:], owner))
			if err != nil {
				return err
			}
			if string(done) != fmt.Sprintf(`{"affected":%d}`, len(claimed)) {
				return fmt.Errorf("%d jobs were claimed, and their acknowledgement answers %s", len(claimed), done)
			}
		}
	})
	return queueJobs / time.Since(began).Seconds(), err
}

// putJobs is documents put a second.
func putJobs(port int) (float64, error) {
	began := time.Now()
	err := together(port, workers, func(_ int, c *client) error {
		for range queueJobs / workers {
			if _, err := c.post("/t/x/puts", `{"payload": "a job", "state": "ready", "run_at": 1767323045678}`); err != nil {
				return err
			}
		}
		return nil
	})
	return queueJobs / time.Since(began).Seconds(), err
}

// doJobs is doJobs of the same in PostgreSQL, by pgbench with prepared statements over a unix socket.
func (p *postgres) doJobs() (float64, error) {
	table := fmt.Sprintf(`drop table if exists jobs;
create table jobs (id bigserial primary key, payload text, state text, owner text, run_at timestamptz);
insert into jobs (payload, state, run_at) select 'job ' || n, 'ready', now() from generate_series(1, %d) n;
create index on jobs (run_at);
vacuum analyze jobs;
`, queueJobs)
	if _, err := p.psql(strings.NewReader(table)); err != nil {
		return 0, err
	}
	const script = `with mine as (
  update jobs set owner = :client_id::text, run_at = now() + interval '30 s' where id in (
    select id from jobs where state = 'ready' and run_at <= now() order by run_at limit 10 for update skip locked)
  returning id, payload)
select array_agg(id)::text as ids, max(payload) as payload from mine \gset
delete from jobs where id = any(:ids::bigint[]) and owner = :client_id::text;
`
	file := filepath.Join(p.dir, "jobs.sql")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		return 0, err
	}
	each := strconv.Itoa(queueJobs / workers / claimSize)
	cmd := exec.Command(filepath.Join(p.bin, "pgbench"), "-n", "-h", p.dir, "-U", "postgres", "-c", strconv.Itoa(workers), "-j", "2", "-M", "prepared", "-t", each, "-f", file, "postgres")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "tps = ")
	tps, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if err != nil {
		return 0, fmt.Errorf("pgbench printed %s", out)
	}
	left, err := p.psql(strings.NewReader("select count(*) from jobs;"))
	if err == nil && strings.TrimSpace(left) != "0" {
		err = fmt.Errorf("%s jobs are left", strings.TrimSpace(left))
	}
	return tps * claimSize, err
}

// wakeFigure compares the time from a put to the answer of a claim that waits for it with that of a GET.
func (r *report) wakeFigure(port int) error {
	if err := fill("http://" + address(port)); err != nil {
		return err
	}
	waiting, err := dial(port)
	if err != nil {
		return err
	}
	defer waiting.close()
	other, err := dial(port)
	if err != nil {
		return err
	}
	defer other.close()
	const samples = 300
	wakes, gets := make([]float64, 0, rounds), make([]float64, 0, rounds)
	for range rounds {
		var wake, get []float64
		for range samples {
			answered := make(chan error, 1)
			go func() {
				body, err := waiting.post("/t/x/query", `{"query": "`+claimQuery+`", "params": ["w"]}`, "Fenec-Wait: 30000")
				if err == nil && string(body) == "[]" {
					err = errors.New("a claim that waited found nothing")
				}
				answered <- err
			}()
			time.Sleep(2 * time.Millisecond) // by then it is held; and the processor is as idle for the one as for the other
			began := time.Now()
			if _, err := other.post("/t/x/query", `{"query": "put jobs {payload: \"a job\", state: \"ready\", run_at: now()}"}`); err != nil {
				return err
			}
			if err := <-answered; err != nil {
				return err
			}
			wake = append(wake, float64(time.Since(began).Nanoseconds())/1e3)
			time.Sleep(2 * time.Millisecond)
			began = time.Now()
			if _, err := other.do("GET", getTarget, ""); err != nil {
				return err
			}
			get = append(get, float64(time.Since(began).Nanoseconds())/1e3)
		}
		wakes, gets = append(wakes, median(wake)), append(gets, median(get))
	}
	r.row(figure{name: "enqueue to a waiting worker's answer, p50", unit: "us", atMost: 4, peer: side{name: "GET"}}, wakes, gets)
	return nil
}

// heldFigure compares the processor time of a put beside claims that are held with that of one beside none.
func (r *report) heldFigure(port, pid int) error {
	const puts = 50_000
	turn := func() (float64, error) {
		began, err := processorTime(pid)
		if err != nil {
			return 0, err
		}
		if err := together(port, 1, func(_ int, c *client) error {
			for range puts {
				if _, err := c.post("/t/x/other", `{"payload": "nobody waits for this"}`); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
		ended, err := processorTime(pid)
		return float64((ended - began).Microseconds()) / puts, err
	}
	var with, without []float64
	for range rounds {
		alone, err := turn()
		if err != nil {
			return err
		}
		held, err := hold(port)
		if err != nil {
			return err
		}
		beside, err := turn()
		held.leave()
		if err != nil {
			return err
		}
		with, without = append(with, beside), append(without, alone)
	}
	r.row(figure{name: "processor time of a put beside 1 000 held claims of 1 000 lines", unit: "us", atMost: 1.05, peer: side{name: "beside none"}}, with, without)
	return nil
}

// heldCrowd is claims that are held.
type heldCrowd struct{ clients []*client }

func (c *heldCrowd) leave() {
	for _, one := range c.clients {
		one.close()
	}
}

// hold sends claims, each of a line of its own, and returns once the node holds them all.
func hold(port int) (*heldCrowd, error) {
	c := &heldCrowd{}
	for n := range heldClaims {
		one, err := dial(port)
		if err != nil {
			return c, err
		}
		c.clients = append(c.clients, one)
		body := fmt.Sprintf(`{"query": "del jobs where payload = $1 and run_at <= now()", "params": ["%d"]}`, n)
		if err := one.send("POST", "/t/x/query", body, "Fenec-Wait: 30000"); err != nil {
			return c, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		metrics, err := send("GET", "http://"+address(port)+"/_metrics", adminToken, "")
		if err != nil {
			return c, err
		}
		if bytes.Contains(metrics, fmt.Appendf(nil, "fenec_claims_held %d\n", heldClaims)) {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return c, errors.New("the node does not hold the claims")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
