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

// room is a hall and its database, in a bubble whose time only moves while everybody waits.
type room struct {
	t    *testing.T
	db   *engine.DB
	hall *Hall
	over chan struct{} // closed as the test ends, for those that are held still
}

func inRoom(t *testing.T, test func(r *room)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := engine.Create("/t.fenec", engine.Options{FS: crashfs.New(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		r := &room{t: t, db: db, hall: New(db, time.Now), over: make(chan struct{})}
		r.exec("create collection jobs (name text, state text, run_at timestamp @sorted)")
		func() {
			defer synctest.Wait()
			defer close(r.over)
			test(r)
		}()
		if len(r.hall.lines) > 0 || !r.hall.rings.IsZero() {
			t.Errorf("an empty hall has %d lines and a timer that rings at %v", len(r.hall.lines), r.hall.rings)
		}
	})
}

func (r *room) exec(text string) {
	r.t.Helper()
	if _, err := r.db.Exec(context.Background(), engine.Statement{Text: text}, nil); err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) put(name string, in time.Duration) {
	r.t.Helper()
	r.exec(fmt.Sprintf(`put jobs {name: %q, state: "ready", run_at: now() + %d}`, name, in.Milliseconds()))
}

func (r *room) join(text string) *Waiter {
	r.t.Helper()
	c, _, err := r.db.Claim([]engine.Statement{{Text: text}})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.hall.Join(c)
}

// turn takes a turn that w has.
func (r *room) turn(w *Waiter, text string) (got string, done bool) {
	r.t.Helper()
	select {
	case <-w.Called():
	default:
		r.t.Fatal("it has no turn to take")
	}
	done, err := w.Turn(context.Background(), func() error {
		res, _, err := r.db.Try(context.Background(), nil, engine.Statement{Text: text}, nil)
		got = string(res.Body)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return got, done
}

func (r *room) wantCalled(what string, w *Waiter, want bool) {
	r.t.Helper()
	if got := len(w.called) == 1; got != want {
		r.t.Errorf("%s: has the turn %v, want %v", what, got, want)
	}
}

func TestTheTurnGoesDownTheLine(t *testing.T) {
	inRoom(t, func(r *room) {
		first, second, third := r.join(take), r.join(take), r.join(take)
		r.wantCalled("a line that begins", first, true)
		if _, done := r.turn(first, take); done {
			t.Fatal("it found something")
		}
		r.put("a", 0)
		r.put("b", 0)
		r.wantCalled("the first, of two jobs", first, true)
		r.wantCalled("the second, before the first has tried", second, false)
		if got, done := r.turn(first, take); !done || got != `[{"name":"a"}]` {
			t.Errorf("the first takes %s", got)
		}
		r.wantCalled("the second, before the first has left", second, false)
		first.Leave()
		r.wantCalled("the second", second, true)
		second.Leave() // as it is woken
		r.wantCalled("the third", third, true)
		if got, done := r.turn(third, take); !done || got != `[{"name":"b"}]` {
			t.Errorf("the third takes %s", got)
		}
		third.Leave()
	})
}

func TestOneInTheMiddleLeaves(t *testing.T) {
	inRoom(t, func(r *room) {
		line := []*Waiter{r.join(take), r.join(take), r.join(take), r.join(take)}
		r.turn(line[0], take)
		line[1].Leave()
		line[3].Leave()
		line[0].Leave()
		r.put("a", 0)
		r.wantCalled("who is left", line[2], true)
		last := r.join(take)
		line[2].Leave()
		r.wantCalled("who came last", last, true)
		last.Leave()
	})
}

func TestWhatHappensDuringATryIsTriedFor(t *testing.T) {
	inRoom(t, func(r *room) {
		w := r.join(take)
		<-w.Called()
		tries := 0
		done, err := w.Turn(context.Background(), func() error {
			_, _, err := r.db.Try(context.Background(), nil, engine.Statement{Text: take}, nil)
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

func TestALineIsCalledAsARowComesDue(t *testing.T) {
	inRoom(t, func(r *room) {
		r.put("there already", time.Hour)
		w, other := r.join(take), r.join(`del jobs where name = "x" and run_at < now()`)
		r.turn(w, take)
		r.turn(other, `del jobs where name = "x" and run_at < now()`)
		r.put("sooner", 20*time.Minute)
		began := time.Now()
		for _, want := range []struct {
			after time.Duration
			job   string
		}{{20 * time.Minute, `[{"name":"sooner"}]`}, {time.Hour, `[{"name":"there already"}]`}} {
			<-w.Called()
			w.called <- struct{}{}
			if at := time.Since(began).Truncate(time.Millisecond); at != want.after {
				t.Errorf("%s is due after %v, and the line is called after %v", want.job, want.after, at)
			}
			if got, done := r.turn(w, take); !done || got != want.job {
				t.Errorf("it takes %s, want %s", got, want.job)
			}
			w.Leave()
			w = r.join(take)
			r.turn(w, take)
		}
		w.Leave()
		r.put("x", time.Minute)
		began = time.Now()
		<-other.Called()
		if at := time.Since(began).Truncate(time.Millisecond); at != time.Minute+time.Millisecond {
			t.Errorf("the other line is called after %v", at)
		}
		other.Leave()
	})
}

func TestATurnThatIsRefusedLeavesTheTimeToTheNext(t *testing.T) {
	inRoom(t, func(r *room) {
		r.put("a", time.Minute)
		first, second := r.join(take), r.join(take)
		<-first.Called()
		refused := fail.New(fail.Invalid, "no")
		if done, err := first.Turn(context.Background(), func() error { return refused }); !done || err != refused {
			t.Errorf("a turn that is refused is done %v with %v", done, err)
		}
		first.Leave()
		if _, done := r.turn(second, take); done {
			t.Error("there was nothing to find")
		}
		<-second.Called() // a minute later, for the second looked when
		second.Leave()
	})
}

func TestUnrelatedWritesWakeNobody(t *testing.T) {
	inRoom(t, func(r *room) {
		r.exec("create collection other (state text)")
		w, counts := r.join(take), r.join(`del jobs where state = "never" require 2`)
		inner := r.join(`del jobs where name in (get other select state)`)
		for _, one := range []*Waiter{w, counts, inner} {
			r.nothing(one)
		}
		r.exec(`put other {state: "ready"}`)
		r.wantCalled("a claim, by another collection", w, false)
		r.wantCalled("a claim that counts, by another collection", counts, false)
		r.wantCalled("a claim that reads it", inner, true)
		r.exec(`put jobs [{name: "a", state: "done", run_at: now()}, {name: "b", state: "ready"}]`)
		r.wantCalled("a claim, by rows it is not for", w, false)
		r.wantCalled("a claim that counts, by a row that may have counted", counts, true)
		r.exec(`del jobs`)
		r.wantCalled("a claim, by rows that go", w, false)
		r.exec("create index on other (state) @hash")
		r.wantCalled("a claim, by a schema that changes", w, true)
		w.Leave()
		counts.Leave()
		inner.Leave()
	})
}

func TestALargeBlockWakesUntested(t *testing.T) {
	inRoom(t, func(r *room) {
		w := r.join(take)
		r.turn(w, take)
		r.exec("put jobs [" + strings.Repeat(`{state: "done"},`, 1<<14) + `{state: "done"}]`)
		r.wantCalled("a claim", w, true)
		if _, done := r.turn(w, take); done {
			t.Error("there was nothing to find")
		}
		w.Leave()
	})
}

func TestClaimsAreFoundByTheValueTheyWant(t *testing.T) {
	inRoom(t, func(r *room) {
		join := func(text string, params ...doc.Value) *Waiter {
			t.Helper()
			c, _, err := r.db.Claim([]engine.Statement{{Text: text, Params: params}})
			if err != nil {
				t.Fatal(err)
			}
			w := r.hall.Join(c)
			r.nothing(w)
			return w
		}
		untyped := func(s string) doc.Value { return doc.Value{Kind: doc.Untyped, B: []byte(s)} }
		r.exec("alter collection jobs add field queue int")
		one, alsoOne := join(`del jobs where queue = $1`, untyped("1")), join(`del jobs where queue = 1 and state = "ready"`)
		two, null := join(`del jobs where queue = 2`), join(`del jobs where queue = $1`, doc.Value{})
		either := join(`del jobs where queue = 1 or queue = 2`)
		r.exec(`put jobs {queue: 1, state: "new"}`)
		r.wantCalled("who wants 1", one, true)
		r.wantCalled("who wants 1 that is ready", alsoOne, false)
		r.wantCalled("who wants 2", two, false)
		r.wantCalled("who wants what nothing is", null, false)
		r.wantCalled("who wants either", either, true)
		r.nothing(one)
		r.nothing(either)
		alsoOne.Leave()
		r.exec(`put jobs [{queue: 3}, {queue: 2, state: "ready"}]`)
		r.wantCalled("who wants 1", one, false)
		r.wantCalled("who wants 2", two, true)
		r.nothing(two)
		r.nothing(either)
		// The same name is another field, and what wants it wants another value.
		r.exec("alter collection jobs drop field queue")
		r.exec("alter collection jobs add field queue text")
		for _, w := range []*Waiter{one, null, either, two} {
			r.nothing(w)
		}
		r.exec(`put jobs {queue: "1"}`)
		r.wantCalled("who wants 1, which is a text by now", one, true)
		for _, w := range []*Waiter{one, two, null, either} {
			w.Leave()
		}
		r.exec(`put jobs {queue: "1"}`)
	})
}

// nothing takes a turn that w has, and finds nothing.
func (r *room) nothing(w *Waiter) {
	r.t.Helper()
	<-w.Called()
	if done, err := w.Turn(context.Background(), func() error { return engine.ErrNothing }); done || err != nil {
		r.t.Fatal(done, err)
	}
}
