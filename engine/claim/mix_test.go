package claim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
)

// held is a claim run as a node runs it: it tries, joins its queue, and retries each time it becomes active until it has written
// or its wait ends.
type held struct {
	sts  []engine.Statement
	wait time.Duration

	mu   sync.Mutex
	got  string // the results, once it wrote
	done bool   // it has left the queue
}

func (h *held) try(r *fixture) error {
	reply, err := r.db.Run(context.Background(), engine.Everything(), &engine.Request{Statements: h.sts, Batch: true, Claim: true})
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range reply.Results {
			h.got += string(reply.Results[i].Body)
		}
	}
	return err
}

func (h *held) run(r *fixture) {
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.done = true
	}()
	c, _, err := r.db.Claim(engine.Everything(), h.sts)
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := h.try(r); !Retryable(err) {
		if err != nil {
			r.t.Error(err)
		}
		return
	}
	w := r.queues.Join(c)
	defer w.Leave()
	timer := time.NewTimer(h.wait)
	defer timer.Stop()
	for {
		select {
		case <-w.Ready():
			done, err := w.Retry(context.Background(), func() error { return h.try(r) })
			if err != nil {
				r.t.Error(err)
			}
			if done {
				return
			}
		case <-timer.C:
			return
		case <-r.over:
			return
		}
	}
}

func (h *held) left() (got string, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got, h.done
}

// start runs a claim in a goroutine and returns once the claim is held or has written.
func (r *fixture) start(wait time.Duration, sts ...engine.Statement) *held {
	h := &held{sts: sts, wait: wait}
	go h.run(r)
	synctest.Wait()
	return h
}

func one(text string, params ...doc.Value) engine.Statement {
	return engine.Statement{Text: text, Params: params}
}

func text(s string) doc.Value { return doc.TextValue([]byte(s)) }

func (r *fixture) wantLeft(what string, h *held, want string) {
	r.t.Helper()
	synctest.Wait()
	if got, done := h.left(); !done || got != want {
		r.t.Errorf("%s has %q and is done %v, want %q", what, got, done, want)
	}
}

func (r *fixture) wantHeld(what string, h *held) {
	r.t.Helper()
	synctest.Wait()
	if got, done := h.left(); done {
		r.t.Errorf("%s is not held any more, and has %q", what, got)
	}
}

const ready = `set jobs {state: "taken"} where state = "ready" `

// TestAClaimIsNotBlockedByOneThatRequiresMoreRows holds two claims. The first requires rows that are never put.
func TestAClaimIsNotBlockedByOneThatRequiresMoreRows(t *testing.T) {
	for says, tc := range map[string]struct{ first, second engine.Statement }{
		"of two and one":               {one(ready + "limit 2 require 2 returning name"), one(ready + "limit 1 require 1 returning name")},
		"of two and of any":            {one(ready + "require 2 returning name"), one(ready + "limit 1 returning name")},
		"of one parameter's value":     {one(ready+"require $1 returning name", doc.IntValue(3)), one(ready+"require $1 returning name", doc.IntValue(1))},
		"of one limit's value":         {one(ready+"limit $1 require 1 returning name", doc.IntValue(0)), one(ready+"limit $1 require 1 returning name", doc.IntValue(5))},
		"of no rows and of one":        {one(ready + "limit 0 returning name"), one(ready + "limit 1 returning name")},
		"of two values of its filter":  {one(ready+"and name = $1 returning name", text("x")), one(ready+"and name = $1 returning name", text("a"))},
		"of two parameters by turns":   {one(ready+"and (name = $1 or name = $2) returning name", text("x"), text("y")), one(ready+"and (name = $1 or name = $2) returning name", text("x"), text("a"))},
		"of a del and a set":           {one(`del jobs where state = "ready" require 2`), one(ready + "returning name")},
		"of a batch and its statement": {one(ready + "require 2"), one(ready + "require 1 returning name")},
	} {
		t.Run(says, func(t *testing.T) {
			withFixture(t, func(r *fixture) {
				first, second := r.start(time.Minute, tc.first), r.start(time.Minute, tc.second)
				r.put("a", 0)
				r.wantLeft("the second", second, `[{"name":"a"}]`)
				r.wantHeld("the first", first)
				time.Sleep(time.Minute)
				r.wantLeft("the first", first, "")
			})
		})
	}
}

func TestBatchesThatDifferInOneStatementDoNotQueue(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.exec("create collection seats (n int)")
		r.exec("put seats {n: 1}")
		batch := func(seat int) *held {
			return r.start(time.Minute, one(ready+"require 1 returning name"), one(fmt.Sprintf("set seats {n: n} where n = %d require 1", seat)))
		}
		first, second := batch(2), batch(1)
		r.put("a", 0)
		r.wantLeft("the second", second, `[{"name":"a"}]`)
		r.wantHeld("the first", first)
		r.put("b", 0)
		r.exec("put seats {n: 2}")
		r.wantLeft("the first", first, `[{"name":"b"}]`)
	})
}

func TestAClaimThatFindsSomethingWritesBeforeTheQueue(t *testing.T) {
	withFixture(t, func(r *fixture) {
		var waiting []*Waiter
		for range 3 {
			w := r.join(take) // and never retries
			defer w.Leave()
			waiting = append(waiting, w)
		}
		r.put("a", 0)
		r.wantReady("the head of the queue", waiting[0], true)
		h := r.start(time.Minute, one(take))
		r.wantLeft("a claim that arrives when there is a job", h, `[{"name":"a"}]`)
	})
}

func TestRowsDueLaterWakeAClaimThatCounts(t *testing.T) {
	const due = `set jobs {state: "taken"} where state = "ready" and run_at <= now() require 2 returning name`
	withFixture(t, func(r *fixture) {
		h := r.start(time.Hour, one(due))
		r.put("a", time.Minute)
		r.put("b", 2*time.Minute)
		time.Sleep(2*time.Minute - time.Millisecond)
		r.wantHeld("with one job due, the claim", h)
		time.Sleep(time.Millisecond)
		r.wantLeft("the claim", h, `[{"name":"a"},{"name":"b"}]`)
	})
}

func TestAnExpiredRowWakesAClaimThatCounts(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.exec("create collection seats (n int, till timestamp @ttl(1s))")
		h := r.start(time.Hour, one("del seats require 1 returning n"))
		inner := r.start(time.Hour, one(`set jobs {state: "free"} where id not in (get seats select n) returning name`))
		r.exec("put jobs {id: 7, name: 'a'}")
		r.wantLeft("with no seat, the claim that reads them", inner, `[{"name":"a"}]`)
		r.exec("put seats [{n: 7, till: now() + 60_000}, {n: 8, till: now() + 120_000}]")
		inner = r.start(time.Hour, one(`set jobs {state: "free"} where id not in (get seats select n) returning name`))
		time.Sleep(61*time.Second - time.Millisecond)
		r.wantHeld("with two seats, the claim", h)
		r.wantHeld("with the seat, the claim that reads them", inner)
		time.Sleep(time.Millisecond)
		r.wantLeft("the claim", h, `[{"n":8}]`)
		r.wantLeft("the claim that reads them", inner, `[{"name":"a"}]`)
	})
}

func TestALargeBlockOfRowsDueLaterWakesAClaimWhenTheyAreDue(t *testing.T) {
	withFixture(t, func(r *fixture) {
		h := r.start(time.Hour, one(take))
		row := fmt.Sprintf(`{name: "a", state: "ready", run_at: now() + %d}`, time.Minute.Milliseconds())
		r.exec("put jobs [" + strings.Repeat(row+",", 1<<14) + row + "]")
		time.Sleep(time.Minute - time.Millisecond)
		r.wantHeld("a millisecond before, the claim", h)
		time.Sleep(time.Millisecond)
		r.wantLeft("the claim", h, `[{"name":"a"}]`)
	})
}

func TestAnAlterOfTheTimeAClaimWaitsForMovesItsWake(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.exec("alter collection jobs add field other timestamp")
		h := r.start(time.Hour, one(take))
		r.exec(`put jobs {name: "a", state: "ready", run_at: now() + 1_800_000, other: now() + 60_000}`)
		var swap []engine.Statement
		for _, rename := range []string{"run_at to x", "other to run_at", "x to other"} {
			swap = append(swap, one("alter collection jobs rename field "+rename))
		}
		if _, _, err := r.db.Batch(context.Background(), engine.Everything(), swap); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		r.wantHeld("a millisecond before, the claim", h)
		time.Sleep(time.Millisecond)
		r.wantLeft("the claim", h, `[{"name":"a"}]`)
	})
}

// wish is a claim on the jobs: its condition, its limit and the number of rows it requires.
type wish struct {
	where          string
	params         []doc.Value
	limit, require int // -1 for none
}

// drawWish draws one of a few, so that some are equal.
func drawWish(rnd *rand.Rand) wish {
	w := wish{where: `state = "ready"`, limit: rnd.IntN(4) - 1, require: -1}
	name := func() doc.Value { return text(string('a' + rune(rnd.IntN(3)))) }
	switch rnd.IntN(6) {
	case 0:
		w.where, w.params = w.where+" and name = $1", []doc.Value{name()}
	case 1:
		w.where, w.params = w.where+" and (name = $1 or name = $2)", []doc.Value{name(), name()}
	case 2:
		w.where += " and run_at <= now()"
	case 3:
		w.where += " and name in (get names select name)"
	}
	if rnd.IntN(2) == 0 {
		w.require = 1 + rnd.IntN(2)
	}
	return w
}

// statement returns the claim as a statement.
func (w *wish) statement() engine.Statement {
	st := one(`set jobs {state: "taken"} where `+w.where, slices.Clone(w.params)...)
	if w.limit >= 0 {
		st.Params = append(st.Params, doc.IntValue(int64(w.limit)))
		st.Text += fmt.Sprintf(" order by name limit $%d", len(st.Params))
	}
	if w.require >= 0 {
		st.Text += fmt.Sprint(" require ", w.require)
	}
	st.Text += " returning name"
	return st
}

// granted reports whether the claim would find its rows now.
func (r *fixture) granted(w *wish) bool {
	r.t.Helper()
	res, err := r.db.Exec(context.Background(), engine.Everything(), one("get jobs where "+w.where, w.params...), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	picked := int(res.Rows)
	if w.limit >= 0 {
		picked = min(picked, w.limit)
	}
	return picked > 0 && (w.require < 0 || picked == w.require)
}

// TestNoMixOfClaimsLeavesOneHeldThatWouldWrite runs random sequences of claims, jobs and time. Whenever everything
// is idle, no claim is held that would write, and equal claims were served in the order in which they joined.
func TestNoMixOfClaimsLeavesOneHeldThatWouldWrite(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withFixture(t, func(r *fixture) {
				rnd := rand.New(rand.NewPCG(seed, 14))
				r.exec("create collection names (name text)")
				var all []*wishing
				for range 120 {
					name := string('a' + rune(rnd.IntN(3)))
					switch rnd.IntN(8) {
					case 0, 1, 2:
						w := drawWish(rnd)
						all = append(all, &wishing{w, r.start(time.Duration(1+rnd.IntN(120))*time.Second, w.statement())})
					case 3:
						r.put(name, time.Duration(rnd.IntN(20)-5)*time.Second)
					case 4:
						r.exec(fmt.Sprintf(`put jobs [{name: "a", state: "ready", run_at: now()}, {name: %q, state: "ready", run_at: now()}]`, name))
					case 5:
						r.exec([]string{
							fmt.Sprintf("put names {name: %q}", name), "del names limit 1", `del jobs where state = "ready" limit 1`,
							`set jobs {state: "ready"} where state = "taken" limit 1`,
						}[rnd.IntN(4)])
					case 6, 7:
						time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
					}
					synctest.Wait()
					all = r.judge(all)
				}
			})
		})
	}
}

// wishing is a claim and the rows it requires.
type wishing struct {
	wish
	*held
}

// judge checks the claims, in the order in which they joined, against the rows they require, and returns those still held.
func (r *fixture) judge(all []*wishing) (still []*wishing) {
	r.t.Helper()
	waiting := map[string]bool{} // by statement and parameters
	for _, w := range all {
		says := fmt.Sprint(w.statement())
		got, done := w.left()
		switch {
		case !done && r.granted(&w.wish):
			r.t.Fatalf("a claim is held though its rows exist: %s", says)
		case !done:
			waiting[says] = true
			still = append(still, w)
		case got != "" && waiting[says]:
			r.t.Errorf("a claim is served before its equal that was held longer: %s", says)
		}
	}
	return still
}
