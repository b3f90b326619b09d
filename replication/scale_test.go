package replication

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAThousandTenantsShareAConnection: an idle stream has no goroutine, also if all of them begin at once.
func TestAThousandTenantsShareAConnection(t *testing.T) {
	tenants := 1000
	if testing.Short() {
		tenants = 100
	}
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		names := make([]string, tenants)
		for n := range names {
			names[n] = fmt.Sprintf("t%d", n)
			one.create(names[n], false)
			one.exec(names[n], `create collection c (n int)`)
			two.create(names[n], true)
		}
		synctest.Wait()
		before := runtime.NumGoroutine()
		var mu sync.Mutex
		most := 0
		two.imaging = func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, runtime.NumGoroutine()-before)
			return nil
		}
		for _, name := range names {
			two.follower.Follow(name, Target{From: "one"})
		}
		for _, name := range names {
			w.same(name, one, two)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		// A connection has two goroutines and an owner at each end.
		if idle := runtime.NumGoroutine() - before; idle > 6 {
			t.Errorf("%d streams have %d goroutines", tenants, idle)
		}
		// Of an image, receiving has three more.
		if limit := 6 + openers + workers + 4*imagesAtOnce; most > limit {
			t.Errorf("%d streams that begin have %d goroutines, want at most %d", tenants, most, limit)
		}
		one.net.Partition(two.net)
		time.Sleep(time.Second)
		w.network.Heal()
		for n, name := range names {
			one.exec(name, fmt.Sprintf(`put c {n: %d}`, n))
		}
		for _, name := range names {
			w.same(name, one, two)
		}
		if n := two.follower.Images(); n != int64(tenants) {
			t.Errorf("%d images were taken, want one of each tenant", n)
		}
	})
}

// TestCloseAtAnyMoment closes either half at a random moment of traffic. Nothing hangs, no goroutine is left, and no tenant is in use.
func TestCloseAtAnyMoment(t *testing.T) {
	for seed := range 16 {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			run(t, []string{"one", "two"}, func(w *world) {
				one, two := w.hosts["one"], w.hosts["two"]
				for n := range 5 {
					name := fmt.Sprintf("t%d", n)
					one.create(name, false)
					one.exec(name, `create collection c (n int, s text)`)
					two.create(name, true)
				}
				one.acquiring = func(string) { time.Sleep(time.Millisecond) }
				done := make(chan struct{})
				for n := range 5 {
					name := fmt.Sprintf("t%d", n)
					go func() {
						defer func() { done <- struct{}{} }()
						two.follower.Follow(name, Target{From: "one", Counts: true})
						for range 20 {
							one.putLarge(name, 20<<10)
							time.Sleep(time.Millisecond)
						}
					}()
				}
				time.Sleep(time.Duration(random.IntN(25_000)) * time.Microsecond)
				closes := []func(){one.primary.Close, two.follower.Close, one.primary.Close, two.follower.Close}
				random.Shuffle(len(closes), func(i, k int) { closes[i], closes[k] = closes[k], closes[i] })
				began := time.Now()
				for _, c := range closes[:1+random.IntN(4)] {
					c()
				}
				if took := time.Since(began); took > silence {
					t.Errorf("closing took %v", took)
				}
				for range 5 {
					<-done
				}
			})
		})
	}
}
