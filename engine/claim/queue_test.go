package claim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

const take = `set jobs {state: "taken"} where state = "ready" and run_at <= now() order by run_at limit 1 returning name`

// fixture is the queues of a database, in a bubble whose time advances only while every goroutine waits.
type fixture struct {
	t      *testing.T
	db     *engine.DB
	queues *Queues
	over   chan struct{} // closed at the end of the test, to release the claims still held
}

// claimed returns a request of one statement that must write something.
func claimed(text string) *engine.Request {
	return &engine.Request{Statements: []engine.Statement{{Text: text}}, Claim: true}
}

func withFixture(t *testing.T, test func(r *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := engine.Create("/t.fenec", engine.Options{FS: crashfs.New(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r := &fixture{t: t, db: db, queues: New(db, time.Now), over: make(chan struct{})}
		r.exec("create collection jobs (name text, state text, run_at timestamp @sorted)")
		func() {
			defer synctest.Wait()
			defer close(r.over)
			test(r)
		}()
		if len(r.queues.queues) > 0 || !r.queues.firesAt.IsZero() {
			t.Errorf("with no waiter left: %d queues and a timer set for %v, want none", len(r.queues.queues), r.queues.firesAt)
		}
	})
}

func (r *fixture) exec(text string) {
	r.t.Helper()
	if _, err := r.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) put(name string, in time.Duration) {
	r.t.Helper()
	r.exec(fmt.Sprintf(`put jobs {name: %q, state: "ready", run_at: now() + %d}`, name, in.Milliseconds()))
}

func (r *fixture) join(text string) *Waiter {
	r.t.Helper()
	c, _, err := r.db.Claim(engine.Everything(), []engine.Statement{{Text: text}})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.queues.Join(c)
}

// retry runs w, which must be active.
func (r *fixture) retry(w *Waiter, text string) (got string, done bool) {
	r.t.Helper()
	select {
	case <-w.Ready():
	default:
		r.t.Fatal("the waiter is not active")
	}
	done, err := w.Retry(context.Background(), func() error {
		reply, err := r.db.Run(context.Background(), engine.Everything(), claimed(text))
		got = string(reply.Result.Body)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return got, done
}

func (r *fixture) wantReady(what string, w *Waiter, want bool) {
	r.t.Helper()
	if got := len(w.ready) == 1; got != want {
		r.t.Errorf("%s: active %v, want %v", what, got, want)
	}
}

func TestWaitersTryInQueueOrder(t *testing.T) {
	withFixture(t, func(r *fixture) {
		first, second, third := r.join(take), r.join(take), r.join(take)
		r.wantReady("the first waiter of a new queue", first, true)
		if _, done := r.retry(first, take); done {
			t.Fatal("it found something")
		}
		r.put("a", 0)
		r.put("b", 0)
		r.wantReady("the first, of two jobs", first, true)
		r.wantReady("the second, before the first has tried", second, false)
		if got, done := r.retry(first, take); !done || got != `[{"name":"a"}]` {
			t.Errorf("the first takes %s", got)
		}
		r.wantReady("the second, before the first has left", second, false)
		first.Leave()
		r.wantReady("the second", second, true)
		second.Leave() // while it is active
		r.wantReady("the third", third, true)
		if got, done := r.retry(third, take); !done || got != `[{"name":"b"}]` {
			t.Errorf("the third takes %s", got)
		}
		third.Leave()
	})
}

func TestAWaiterInTheMiddleLeaves(t *testing.T) {
	withFixture(t, func(r *fixture) {
		waiters := []*Waiter{r.join(take), r.join(take), r.join(take), r.join(take)}
		r.retry(waiters[0], take)
		waiters[1].Leave()
		waiters[3].Leave()
		waiters[0].Leave()
		r.put("a", 0)
		r.wantReady("the waiter that is left", waiters[2], true)
		last := r.join(take)
		waiters[2].Leave()
		r.wantReady("the waiter that joined last", last, true)
		last.Leave()
	})
}

func TestAWakeDuringATryCausesAnotherTry(t *testing.T) {
	withFixture(t, func(r *fixture) {
		w := r.join(take)
		<-w.Ready()
		tries := 0
		done, err := w.Retry(context.Background(), func() error {
			_, err := r.db.Run(context.Background(), engine.Everything(), claimed(take))
			if tries++; tries == 1 {
				r.put("a", 0) // too late for this try
			}
			return err
		})
		if !done || err != nil || tries != 2 {
			t.Errorf("done %v, %v after %d tries", done, err, tries)
		}
		w.Leave()
	})
}

func TestAQueueIsWokenWhenARowComesDue(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.put("there already", time.Hour)
		w, other := r.join(take), r.join(`del jobs where name = "x" and run_at < now()`)
		r.retry(w, take)
		r.retry(other, `del jobs where name = "x" and run_at < now()`)
		r.put("sooner", 20*time.Minute)
		began := time.Now()
		for _, want := range []struct {
			after time.Duration
			job   string
		}{{20 * time.Minute, `[{"name":"sooner"}]`}, {time.Hour, `[{"name":"there already"}]`}} {
			<-w.Ready()
			w.ready <- struct{}{}
			if at := time.Since(began).Truncate(time.Millisecond); at != want.after {
				t.Errorf("%s is due after %v, and the queue is woken after %v", want.job, want.after, at)
			}
			if got, done := r.retry(w, take); !done || got != want.job {
				t.Errorf("it takes %s, want %s", got, want.job)
			}
			w.Leave()
			w = r.join(take)
			r.retry(w, take)
		}
		w.Leave()
		r.put("x", time.Minute)
		began = time.Now()
		<-other.Ready()
		if at := time.Since(began).Truncate(time.Millisecond); at != time.Minute+time.Millisecond {
			t.Errorf("the other queue is woken after %v", at)
		}
		other.Leave()
	})
}

func TestARetryThatFailsLeavesTheDueTimeToTheNext(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.put("a", time.Minute)
		first, second := r.join(take), r.join(take)
		<-first.Ready()
		refused := fail.New(fail.Invalid, "no")
		if done, err := first.Retry(context.Background(), func() error { return refused }); !done || err != refused {
			t.Errorf("a retry that fails: done %v with %v", done, err)
		}
		first.Leave()
		if _, done := r.retry(second, take); done {
			t.Error("there was nothing to find")
		}
		<-second.Ready() // a minute later: the second worked out the due time
		second.Leave()
	})
}

func TestUnrelatedWritesWakeNoClaim(t *testing.T) {
	withFixture(t, func(r *fixture) {
		r.exec("create collection other (state text)")
		w, counts := r.join(take), r.join(`del jobs where state = "never" require 2`)
		inner := r.join(`del jobs where name in (get other select state)`)
		for _, one := range []*Waiter{w, counts, inner} {
			r.nothing(one)
		}
		r.exec(`put other {state: "ready"}`)
		r.wantReady("a claim, by another collection", w, false)
		r.wantReady("a claim that counts, by another collection", counts, false)
		r.wantReady("a claim that reads it", inner, true)
		r.exec(`put jobs [{name: "a", state: "done", run_at: now()}, {name: "b", state: "ready"}]`)
		r.wantReady("a claim, by rows its condition excludes", w, false)
		r.wantReady("a claim that counts, by a row that may have counted", counts, true)
		r.exec(`del jobs`)
		r.wantReady("a claim, by rows that are deleted", w, false)
		r.exec("create index on other (state) @hash")
		r.wantReady("a claim, by a schema that changes", w, true)
		w.Leave()
		counts.Leave()
		inner.Leave()
	})
}

func TestALargeBlockWakesClaimsWithoutTests(t *testing.T) {
	withFixture(t, func(r *fixture) {
		w := r.join(take)
		r.retry(w, take)
		r.exec("put jobs [" + strings.Repeat(`{state: "done"},`, 1<<14) + `{state: "done"}]`)
		r.wantReady("a claim", w, true)
		if _, done := r.retry(w, take); done {
			t.Error("there was nothing to find")
		}
		w.Leave()
	})
}

func TestClaimsAreFoundByTheValueTheyRequire(t *testing.T) {
	withFixture(t, func(r *fixture) {
		join := func(text string, params ...doc.Value) *Waiter {
			t.Helper()
			c, _, err := r.db.Claim(engine.Everything(), []engine.Statement{{Text: text, Params: params}})
			if err != nil {
				t.Fatal(err)
			}
			w := r.queues.Join(c)
			r.nothing(w)
			return w
		}
		untyped := func(s string) doc.Value { return doc.Value{Kind: doc.Untyped, B: []byte(s)} }
		r.exec("alter collection jobs add field queue int")
		one, alsoOne := join(`del jobs where queue = $1`, untyped("1")), join(`del jobs where queue = 1 and state = "ready"`)
		two, null := join(`del jobs where queue = 2`), join(`del jobs where queue = $1`, doc.Value{})
		either := join(`del jobs where queue = 1 or queue = 2`)
		r.exec(`put jobs {queue: 1, state: "new"}`)
		r.wantReady("a claim that wants 1", one, true)
		r.wantReady("a claim that wants 1 that is ready", alsoOne, false)
		r.wantReady("a claim that wants 2", two, false)
		r.wantReady("a claim that wants null", null, false)
		r.wantReady("a claim that wants either", either, true)
		r.nothing(one)
		r.nothing(either)
		alsoOne.Leave()
		r.exec(`put jobs [{queue: 3}, {queue: 2, state: "ready"}]`)
		r.wantReady("a claim that wants 1", one, false)
		r.wantReady("a claim that wants 2", two, true)
		r.nothing(two)
		r.nothing(either)
		// The name now belongs to another field, so the claims require another value.
		r.exec("alter collection jobs drop field queue")
		r.exec("alter collection jobs add field queue text")
		for _, w := range []*Waiter{one, null, either, two} {
			r.nothing(w)
		}
		r.exec(`put jobs {queue: "1"}`)
		r.wantReady("a claim that wants 1, now a text", one, true)
		for _, w := range []*Waiter{one, two, null, either} {
			w.Leave()
		}
		r.exec(`put jobs {queue: "1"}`)
	})
}

// nothing runs w, which must be active, with a try that finds nothing.
func (r *fixture) nothing(w *Waiter) {
	r.t.Helper()
	<-w.Ready()
	if done, err := w.Retry(context.Background(), func() error { return engine.ErrNothing }); done || err != nil {
		r.t.Fatal(done, err)
	}
}
