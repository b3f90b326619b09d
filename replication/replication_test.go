package replication

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/vfs/crashfs"
)

// pair runs a test with a primary that has the tenant t with a collection c, and a copy of it that has caught up.
func pair(t *testing.T, test func(w *world, one, two *host)) {
	t.Helper()
	pairOf(t, nil, test)
}

// sameRandomness returns the same bytes for each tenant, so that different ones have one history.
func sameRandomness() io.Reader { return strings.NewReader(strings.Repeat("r", 1000)) }

// pairOf is pair with the randomness of the primary's history.
func pairOf(t *testing.T, random func() io.Reader, test func(w *world, one, two *host)) {
	t.Helper()
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.random = random
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		two.create("t", true)
		two.follower.Follow("t", Target{From: "one", Counts: true})
		w.same("t", one, two)
		test(w, one, two)
	})
}

func (w *world) status(h *host) Status {
	w.t.Helper()
	s, ok := h.follower.Status("t")
	if !ok {
		w.t.Fatal("the tenant follows nothing")
	}
	return s
}

func TestACopyFollowsEveryWrite(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		for n := range 50 {
			one.exec("t", fmt.Sprintf(`put c {n: %d}`, n))
		}
		one.exec("t", `set c {n: 7} where n > 20`)
		one.exec("t", `del c where n = 3`)
		one.exec("t", `alter collection c drop field s`)
		one.exec("t", `compact`)
		one.exec("t", `put c {n: 99}`)
		w.same("t", one, two)
		w.eventually("not behind", func() bool { return w.status(two).Behind == 0 }) // it is noted after reads see the change
		s := w.status(two)
		if !s.Connected || !s.CaughtUp || !s.Known || s.Behind != 0 || s.Images != 1 || s.Err != nil {
			t.Errorf("the copy's status is %+v", s)
		}
		if !two.get("t").seen {
			t.Error("that the copy has caught up was not noted")
		}
		if err := two.tryExec("t", `put c {n: 1}`); fail.KindOf(err) != fail.Follows {
			t.Errorf("a write to the copy: %v", err)
		}
		w.eventually("synced as far as sent", func() bool {
			r := one.primary.Copies("t").Replicas()
			seq, _ := one.get("t").now().Position()
			return len(r) == 1 && r[0].Sent == seq && r[0].Applied == seq && r[0].Synced == seq
		})
	})
}

func TestACopyOfAnEmptyTenantCatchesUp(t *testing.T) {
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.create("t", false)
		two.create("t", true)
		two.follower.Follow("t", Target{From: "one"})
		w.eventually("caught up", func() bool { return w.status(two).CaughtUp })
		time.Sleep(time.Minute)
		if s := w.status(two); s.Images != 1 || !s.Connected {
			t.Errorf("the copy's status is %+v, want one image", s)
		}
		one.exec("t", `create collection c (n int)`)
		w.same("t", one, two)
		if s := w.status(two); s.Images != 1 {
			t.Errorf("after a write the copy's status is %+v, want one image", s)
		}
	})
}

func TestALostConnectionGoesOnWithoutAnImage(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		for n := range 5 {
			one.net.Silence(two.net)
			one.exec("t", fmt.Sprintf(`put c {n: %d}`, n)) // waits until the connection is given up
			w.eventually("disconnected", func() bool { return !w.status(two).Connected })
			one.exec("t", fmt.Sprintf(`put c {n: %d}`, 10+n))
			w.network.Heal()
			w.same("t", one, two)
		}
		if s := w.status(two); s.Images != 1 {
			t.Errorf("the copy took %d images, want 1: the first", s.Images)
		}
	})
}

func TestAWriteWaitsForAConnectedCopyAndNotForALostOne(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.net.Silence(two.net)
		began := time.Now()
		one.exec("t", `put c {n: 1}`)
		if took := time.Since(began); took > silence+time.Second {
			t.Errorf("a write with a copy that is cut off took %v, at most %v are meant", took, silence)
		}
		w.eventually("disconnected", func() bool { return len(one.primary.Copies("t").Replicas()) == 0 })
		began = time.Now()
		one.exec("t", `put c {n: 2}`)
		if took := time.Since(began); took > 0 {
			t.Errorf("a write without a connected copy took %v", took)
		}
	})
}

func TestACopyTakesAnImageIfWhatItLacksIsGone(t *testing.T) {
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.keep = 1
		one.create("t", false)
		one.exec("t", `create collection c (n int)`)
		two.create("t", true)
		two.follower.Follow("t", Target{From: "one"})
		w.same("t", one, two)
		one.net.Silence(two.net)
		w.eventually("disconnected", func() bool { return !w.status(two).Connected })
		one.exec("t", `put c {n: 1}`)
		one.exec("t", `compact`)
		w.network.Heal()
		w.same("t", one, two)
		if s := w.status(two); s.Images != 2 {
			t.Errorf("the copy took %d images, want 2", s.Images)
		}
		if kept := two.get("t").kept; len(kept) != 0 {
			t.Errorf("changes %v of the copy are kept, though the image has them", kept)
		}
	})
}

func TestABlockLargerThanTheWindowArrives(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 1, s: "`+strings.Repeat("x", 1<<20)+`"}`)
		statement := `put c [`
		for n := range 7 {
			statement += fmt.Sprintf(`{n: %d, s: "%s"}, `, n, strings.Repeat("y", 1<<20))
		}
		one.exec("t", statement+`{n: 8}]`)
		w.same("t", one, two)
		if s := w.status(two); s.Images != 1 {
			t.Errorf("the copy took %d images, want 1", s.Images)
		}
	})
}

// promote ends the following of the copy and lets it take writes.
func (h *host) promote() {
	h.w.t.Helper()
	h.follower.Stop("t")
	h.get("t").follower = false
	if err := h.get("t").now().Promote(func() error { return nil }); err != nil {
		h.w.t.Fatal(err)
	}
}

func (h *host) demote(target Target) {
	h.w.t.Helper()
	h.get("t").follower = true
	err := h.get("t").now().Demote(func() error {
		h.follower.Follow("t", target)
		return nil
	})
	if err != nil {
		h.w.t.Fatal(err)
	}
}

func TestAnOldPrimaryThatWroteNothingPastTheForkGoesOnWithoutAnImage(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		two.promote()
		two.exec("t", `put c {n: 2}`)
		one.demote(Target{From: "two"})
		w.same("t", one, two)
		if s := w.status(one); s.Images != 0 || !s.CaughtUp {
			t.Errorf("the old primary's status is %+v, want no image", s)
		}
	})
}

func TestAnOldPrimarysTailIsKeptBeforeItTakesAnImage(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.net.Silence(two.net)
		w.eventually("disconnected", func() bool { return !w.status(two).Connected })
		fork, _ := two.get("t").now().Position()
		one.exec("t", `put c {n: 1}`)
		one.exec("t", `put c {n: 2}`)
		two.promote()
		two.exec("t", `put c {n: 3}`)
		w.network.Heal()
		one.demote(Target{From: "two"})
		w.same("t", one, two)
		if kept, want := strings.Join(one.get("t").kept, ", "), fmt.Sprintf("%d to %d", fork+1, fork+2); kept != want {
			t.Errorf("kept are changes %s, want %s", kept, want)
		}
	})
}

func TestACopyIsNotReplacedByWhatIsNoContinuationOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(w *world, one, two *host)
		want  string
		force bool // the copy is replaced if it is forced
	}{
		"another tenant": {func(w *world, one, two *host) {
			one.get("t").db.Close()
			one.create("t", false)
			one.exec("t", `create collection c (n int)`)
		}, "the primary is another tenant", true},
		"no tenant": {func(w *world, one, two *host) {
			one.mu.Lock()
			one.get2("t").db.Close()
			delete(one.tenants, "t")
			one.mu.Unlock()
		}, "no tenant t here", false},
		"an older copy": {func(w *world, one, two *host) {
			two.promote()
			two.exec("t", `put c {n: 5}`)
			if err := two.get("t").now().Demote(func() error { return nil }); err != nil {
				w.t.Fatal(err)
			}
		}, "the primary is older than this copy", true},
		"itself": {func(w *world, one, two *host) {
			one.demote(Target{From: "two"})
		}, "is this node or follows it", false},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(w *world, one, two *host) {
				two.follower.Stop("t")
				tc.begin(w, one, two)
				before := two.rows("t", "get c order id")
				two.follower.Follow("t", Target{From: "one"})
				w.eventually("refused", func() bool {
					err := w.status(two).Err
					if s, ok := one.follower.Status("t"); ok && s.Err != nil {
						err = s.Err
					}
					return err != nil && strings.Contains(err.Error(), tc.want)
				})
				if after := two.rows("t", "get c order id"); after != before {
					t.Errorf("the copy holds %s, before it was refused %s", after, before)
				}
				if s := w.status(two); name != "itself" && (s.Connected || s.CaughtUp) {
					t.Errorf("the copy's status is %+v", s)
				}
				if tc.force {
					two.follower.Follow("t", Target{From: "one", Force: true})
					w.same("t", one, two)
					one.get("t").db.Close()
					one.create("t", false) // which nobody has forced
					one.exec("t", `create collection c (n int)`)
					one.primary.End("t", &Ended{endLater, "another tenant has its name"})
					w.eventually("refused", func() bool {
						err := w.status(two).Err
						return err != nil && strings.Contains(err.Error(), "the primary is another tenant")
					})
				}
			})
		})
	}
}

// get2 is get for a holder of the lock.
func (h *host) get2(name string) *held { return h.tenants[name] }

func TestACopyThatDivergedTakesOneImageAndThenStops(t *testing.T) {
	pairOf(t, sameRandomness, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 0}`)
		w.same("t", one, two)
		two.spoil("t")
		one.exec("t", `put c {n: 1}`)
		w.eventually("replaced", func() bool { return w.status(two).Images == 2 })
		w.same("t", one, two)
		if one.diverged != 1 || !strings.Contains(one.log.String(), "other content") || !strings.Contains(two.log.String(), "other content") {
			t.Errorf("%d divergences are counted and the logs are\n%s\n%s", one.diverged, one.log, two.log)
		}
		two.spoil("t")
		one.exec("t", `put c {n: 2}`)
		w.eventually("stopped", func() bool {
			err := w.status(two).Err
			return err != nil && strings.Contains(err.Error(), "no longer follows")
		})
		if s := w.status(two); s.Images != 2 || s.Connected {
			t.Errorf("the copy's status is %+v, want no further image", s)
		}
	})
}

// spoil puts another content in place of a copy's, at the same change of the same history, as a fault of the program might.
func (h *host) spoil(name string) {
	h.w.t.Helper()
	t := h.get(name)
	seq, _ := t.db.Position()
	t.db.Close()
	t.fs = crashfs.New(2)
	o := h.options(t, false)
	o.Rand = sameRandomness()
	var err error
	if t.db, err = engine.Create(t.path, o); err != nil {
		h.w.t.Fatal(err)
	}
	t.feed = o.Feed.(*feed.Feed)
	h.exec(name, `create collection c (n int, s text)`)
	for n := range seq - 1 {
		h.exec(name, fmt.Sprintf(`put c {n: %d}`, 1000+n))
	}
	t.follower = true
	if err := t.db.Demote(func() error { return nil }); err != nil {
		h.w.t.Fatal(err)
	}
}

func TestConfirmedWaitsForADiskElsewhere(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		copies := one.primary.Copies("t")
		one.exec("t", `put c {n: 1}`)
		seq, _ := one.get("t").now().Position()
		if err := copies.Confirmed(context.Background(), seq, time.Second); err != nil || !copies.Connected() {
			t.Errorf("a change that a copy has: %v", err)
		}
		if err := copies.Confirmed(context.Background(), seq+1, time.Second); fail.KindOf(err) != fail.Timeout {
			t.Errorf("a change that no copy has: %v, want a timeout", err)
		}
		two.follower.Stop("t")
		w.eventually("no copy", func() bool { return !copies.Connected() })
	})
}
