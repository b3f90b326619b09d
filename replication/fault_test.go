package replication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// gate blocks those who pass it until it is opened.
type gate struct {
	open    chan struct{}
	waiting atomic.Int32
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) pass() {
	g.waiting.Add(1)
	<-g.open
}

func TestRecordsThatComeWhileOthersAreAppliedAreApplied(t *testing.T) {
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		two.create("t", true)
		g := newGate()
		two.noting = func(string) error { g.pass(); return nil }
		two.follower.Follow("t", Target{From: "one"})
		w.eventually("caught up", func() bool { return g.waiting.Load() == 1 })
		one.exec("t", `put c {n: 1}`) // comes while the stream is busy, and nothing comes after it
		synctest.Wait()
		close(g.open)
		w.same("t", one, two)
	})
}

func TestThatACopyHasCaughtUpIsStoredOnceItCanBe(t *testing.T) {
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		two.create("t", true)
		var full atomic.Bool
		full.Store(true)
		two.noting = func(string) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}
		two.follower.Follow("t", Target{From: "one"})
		w.same("t", one, two)
		full.Store(false)
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		synctest.Wait()
		if !two.get("t").seen {
			t.Error("that the copy has caught up is not stored")
		}
	})
}

// TestAFullDiskOfACopyHoldsUpNoWrite: the copy opens its tenant again and goes on without an image once there is room.
func TestAFullDiskOfACopyHoldsUpNoWrite(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		two.get("t").fs.SetSpace(100)
		began := time.Now()
		for range 16 {
			one.putLarge("t", 300<<10) // 5 MB, and the window is 4
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the writes took %v", took)
		}
		for range 5 { // times that the copy tries again
			time.Sleep(retryEvery)
			if r := one.primary.Copies("t").Replicas(); len(r) > 1 {
				t.Fatalf("%d streams of one copy", len(r))
			}
		}
		if w.status(two).Err == nil {
			t.Error("a copy whose disk is full has no error")
		}
		two.get("t").fs.SetSpace(-1)
		w.same("t", one, two)
		if s := w.status(two); s.Images != 1 || s.Err != nil {
			t.Errorf("the copy's status is %+v", s)
		}
		if r := one.primary.Copies("t").Replicas(); len(r) != 1 {
			t.Errorf("%d streams of one copy", len(r))
		}
	})
}

// TestARefusedCopyHoldsUpNoWrite: its stream at the primary ends as the copy refuses the hello, however often it asks.
func TestARefusedCopyHoldsUpNoWrite(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		two.follower.Follow("t", Target{From: "one", Lineage: "0123456789abcdef"})
		time.Sleep(10*retryEvery + time.Second) // between two times that it asks
		if r := one.primary.Copies("t").Replicas(); len(r) != 0 {
			t.Errorf("%d streams of a copy that does not follow", len(r))
		}
		for range 16 {
			one.putLarge("t", 300<<10)
		}
	})
}

// TestImagesDoNotHoldUpRecords: more images than there are workers are awaited, and other tenants go on.
func TestImagesDoNotHoldUpRecords(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		g := newGate()
		defer func() { two.imaging = nil }()
		two.imaging = func(ctx context.Context, _ string) error {
			g.waiting.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		for n := range 2 * workers {
			name := fmt.Sprintf("other%d", n)
			one.create(name, false)
			one.exec(name, `create collection c (n int)`)
			two.create(name, true)
			two.follower.Follow(name, Target{From: "one"})
		}
		synctest.Wait()
		if n := g.waiting.Load(); n != imagesAtOnce {
			t.Errorf("%d images are fetched at a time, want %d", n, imagesAtOnce)
		}
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		began := time.Now()
		for n := range 2 * workers {
			two.follower.Stop(fmt.Sprintf("other%d", n))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("stopping copies that wait for images took %v", took)
		}
	})
}

// chain runs a test with a primary, a copy of it that syncs once an hour, and a copy of that copy. The tenant of two is not on disk yet.
func chain(t *testing.T, test func(w *world, one, two, three *host)) {
	run(t, []string{"one", "two", "three"}, func(w *world) {
		one, two, three := w.hosts["one"], w.hosts["two"], w.hosts["three"]
		two.sync = wal.Policy{Every: time.Hour}
		one.create("t", false)
		two.create("t", true)
		three.create("t", true)
		one.exec("t", `create collection c (n int, s text)`)
		two.follower.Follow("t", Target{From: "one"})
		w.same("t", one, two)
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		test(w, one, two, three)
	})
}

// losesNothingOf checks that a host's disk, if it lost now what is not synced, would have all that another host has.
func (w *world) losesNothingOf(h, other *host) {
	w.t.Helper()
	o := h.options(h.get("t"), true)
	o.FS = h.get("t").fs.CrashKeeping(func(int) int { return 0 })
	lost, err := engine.Open("/t", o)
	if err != nil {
		w.t.Fatal(err)
	}
	defer lost.Close()
	seq, history := other.get("t").now().Position()
	if relation, err := lost.Relation(seq, []byte(history)); err != nil || relation != engine.Included {
		at, of := lost.Position()
		w.t.Errorf("%s is at %d of %s, and the disk of %s at %d of %s: %v, %v", other.name, seq, history, h.name, at, of, relation, err)
	}
}

func TestNoForkIsSentThatIsNotOnDisk(t *testing.T) {
	chain(t, func(w *world, one, two, three *host) {
		three.follower.Follow("t", Target{From: "two"})
		w.same("t", two, three)
		one.reopen("t", false)
		one.exec("t", `put c {n: 2}`) // in a history of its own
		w.same("t", one, two)
		two.primary.Opened("t") // as something else might make the stream look
		synctest.Wait()
		w.losesNothingOf(two, three)
	})
}

func TestNoImageIsSentThatIsNotOnDisk(t *testing.T) {
	chain(t, func(w *world, one, two, three *host) {
		installed := 0
		three.installed = func() {
			installed++
			w.losesNothingOf(two, three)
		}
		three.follower.Follow("t", Target{From: "two"})
		w.same("t", two, three)
		if installed != 1 {
			t.Errorf("%d images were installed", installed)
		}
	})
}

// TestWhatACopyHasIsOnTheDiskOfItsPrimary: a copy that got its changes elsewhere follows one that has them and has not synced them.
func TestWhatACopyHasIsOnTheDiskOfItsPrimary(t *testing.T) {
	chain(t, func(w *world, one, two, three *host) {
		three.follower.Follow("t", Target{From: "one"})
		w.same("t", one, three)
		three.follower.Follow("t", Target{From: "two"})
		w.eventually("connected", func() bool { s, _ := three.follower.Status("t"); return s.Connected })
		w.losesNothingOf(two, three)
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		if err := two.get("t").now().Sync(); err != nil {
			t.Fatal(err)
		}
		w.same("t", two, three)
	})
}

// TestAnImageOfAnotherTenantThanTheCheckedOneIsRefused: the tenant is replaced between the hello and the image.
func TestAnImageOfAnotherTenantThanTheCheckedOneIsRefused(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		before := two.rows("t", "get c order id")
		two.follower.Stop("t")
		one.keep = 1
		one.reopen("t", false)
		one.exec("t", `put c {n: 2}`)
		one.exec("t", `compact`)
		two.imaging = func(context.Context, string) error {
			two.imaging = nil
			one.get("t").alone(func() { one.get("t").db.Close() })
			one.create("t", false)
			one.exec("t", `create collection c (n int, s text)`)
			return nil
		}
		two.follower.Follow("t", Target{From: "one"})
		w.eventually("refused", func() bool {
			err := w.status(two).Err
			var ended *Ended
			return errors.As(err, &ended) && ended.Status == endDiverged
		})
		if after := two.rows("t", "get c order id"); after != before {
			t.Errorf("the copy held %s and holds %s", before, after)
		}
	})
}

func TestATenantThatIsClosedAndOpenedWhileItIsFed(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		stale := one.primary.Copies("t")
		for n := range 20 {
			one.shut("t")
			time.Sleep(5 * time.Second) // acknowledgements and sums come, and open nothing
			if _, ok := one.Find("t"); ok {
				t.Fatal("a tenant that is followed and closed was opened")
			}
			if c, err := one.acquire("t"); err == nil {
				c.Release()
			}
			one.exec("t", fmt.Sprintf(`put c {n: %d}`, n))
			seq, _ := one.get("t").now().Position()
			if r := stale.Replicas(); len(r) != 1 || r[0].Sent != seq {
				t.Fatalf("after the answer, the copies are %v, want one that was sent %d", r, seq)
			}
			w.same("t", one, two)
		}
		if s := w.status(two); s.Images != 1 {
			t.Errorf("the copy took %d images, want 1", s.Images)
		}
	})
}

// TestAWriteWaitsForACopyThatCameWhileTheTenantWasClosed: the database's hold on the copies is older than the streams.
func TestAWriteWaitsForACopyThatCameWhileTheTenantWasClosed(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		two.follower.Stop("t")
		w.eventually("no copy", func() bool { return len(one.primary.Copies("t").Replicas()) == 0 })
		stale := one.primary.Copies("t")
		one.primary.Closed("t") // as of the database before this one
		two.follower.Follow("t", Target{From: "one", Counts: true})
		w.eventually("connected", func() bool { return w.status(two).Connected })
		if len(stale.Replicas()) != 1 || !stale.Connected() {
			t.Error("the copies of an open tenant lack one")
		}
		one.net.Silence(two.net)
		seq, _ := one.get("t").now().Position()
		began := time.Now()
		if err := stale.Handed(context.Background(), seq+1); err != nil || time.Since(began) < 2*time.Second {
			t.Errorf("a change that a connected copy does not have was handed after %v: %v", time.Since(began), err)
		}
	})
}

func TestADeletedTenantKeepsItsCopy(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		before := two.rows("t", "get c order id")
		one.mu.Lock()
		old := one.tenants["t"]
		delete(one.tenants, "t")
		one.mu.Unlock()
		one.primary.End("t", &Ended{endAbsent, "tenant t was deleted"})
		old.alone(func() { old.db.Close() })
		one.primary.Closed("t")
		w.eventually("refused", func() bool { return w.status(two).Err != nil })
		one.create("t", false)
		one.exec("t", `create collection c (n int)`)
		time.Sleep(time.Minute)
		if after := two.rows("t", "get c order id"); after != before {
			t.Errorf("the copy held %s and holds %s", before, after)
		}
		if w.status(two).Err == nil {
			t.Error("a copy that follows another tenant of its name has no error")
		}
	})
}

// TestAStreamOfAReplacedFileIsOpenedAgain: the primary's file is another one after it was opened again, and nothing said so.
func TestAStreamOfAReplacedFileIsOpenedAgain(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		before := two.rows("t", "get c order id")
		old := one.get("t")
		old.alone(func() { old.db.Close() })
		one.primary.Closed("t")
		one.create("t", false)
		one.primary.Opened("t")
		one.exec("t", `create collection c (n int, s text)`)
		one.exec("t", `put c {n: 2}`)
		one.exec("t", `put c {n: 3}`)
		w.eventually("refused", func() bool { return w.status(two).Err != nil })
		if after := two.rows("t", "get c order id"); after != before {
			t.Errorf("the copy held %s and holds %s", before, after)
		}
	})
}

func TestACopyFollowsANewTargetWhileRecordsOfTheOldOneCome(t *testing.T) {
	run(t, []string{"one", "two", "three"}, func(w *world) {
		one, two, three := w.hosts["one"], w.hosts["two"], w.hosts["three"]
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		for _, h := range []*host{two, three} {
			h.create("t", true)
			h.follower.Follow("t", Target{From: "one"})
			w.same("t", one, h)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 400 {
				one.exec("t", fmt.Sprintf(`put c {n: %d}`, n))
			}
		}()
		for n := range 40 {
			two.follower.Follow("t", Target{From: []string{"three", "one"}[n%2]})
			time.Sleep(time.Duration(n) * 100 * time.Microsecond)
			synctest.Wait()
		}
		<-done
		w.same("t", one, two)
		w.same("t", one, three)
		if s := w.status(two); s.Images != 0 || len(one.primary.Copies("t").Replicas()) != 2 {
			t.Errorf("the copy's status is %+v, and the copies are %v", s, one.primary.Copies("t").Replicas())
		}
	})
}

func TestConcurrentCallsOfFollowAndStopLeaveOneStream(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		done := make(chan struct{})
		for n := range 8 {
			go func() {
				for range 20 {
					if n == 0 {
						two.follower.Stop("t")
					} else {
						two.follower.Follow("t", Target{From: "one"})
					}
				}
				done <- struct{}{}
			}()
		}
		for range 8 {
			<-done
		}
		two.follower.Follow("t", Target{From: "one"})
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		time.Sleep(time.Second)
		if r := one.primary.Copies("t").Replicas(); len(r) != 1 {
			t.Errorf("%d streams, want 1", len(r))
		}
		two.follower.Stop("t")
		time.Sleep(time.Second)
		if r := one.primary.Copies("t").Replicas(); len(r) != 0 {
			t.Errorf("%d streams after the last Stop", len(r))
		}
	})
}

func TestStopEndsTheFetchingOfAnImage(t *testing.T) {
	run(t, []string{"one", "two"}, func(w *world) {
		one, two := w.hosts["one"], w.hosts["two"]
		one.create("t", false)
		one.exec("t", `create collection c (n int)`)
		two.create("t", true)
		fetching := make(chan struct{})
		two.imaging = func(ctx context.Context, _ string) error {
			close(fetching)
			<-ctx.Done()
			return ctx.Err()
		}
		two.follower.Follow("t", Target{From: "one"})
		<-fetching
		two.follower.Stop("t")
		two.imaging = nil
		if seq, _ := two.get("t").now().Position(); seq != 0 {
			t.Errorf("the copy is at change %d", seq)
		}
	})
}

// slowConn delivers 40 KB a second.
type slowConn struct{ net.Conn }

func (c slowConn) Read(b []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return c.Conn.Read(b[:min(len(b), 4<<10)])
}

func TestASlowConnectionIsNotALostOne(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		two.follower.Stop("t")
		two.slow = true
		two.follower.Follow("t", Target{From: "one"})
		w.eventually("connected", func() bool { return w.status(two).Connected })
		one.putLarge("t", 900<<10) // a frame of it takes six seconds
		w.same("t", one, two)
		if n := two.follower.Reconnects(); n != 0 {
			t.Errorf("%d connections were lost", n)
		}
	})
}

func TestTheLastContactIsKnownAfterTheConnectionIsLost(t *testing.T) {
	pair(t, func(w *world, one, two *host) {
		lost := time.Now()
		one.net.Partition(two.net)
		time.Sleep(10 * time.Second)
		if s := w.status(two); s.Contact.IsZero() || s.Contact.After(lost) || s.Connected || s.Err == nil {
			t.Errorf("the copy's status is %+v, the connection was lost at %v", s, lost)
		}
	})
}

func TestACopyOfACopyFollowsWhatIsOnTheDiskBetween(t *testing.T) {
	run(t, []string{"one", "two", "three"}, func(w *world) {
		one, two, three := w.hosts["one"], w.hosts["two"], w.hosts["three"]
		two.sync = wal.Policy{Every: time.Hour}
		one.create("t", false)
		one.exec("t", `create collection c (n int, s text)`)
		two.create("t", true)
		three.create("t", true)
		two.follower.Follow("t", Target{From: "one"})
		three.follower.Follow("t", Target{From: "two"})
		w.same("t", one, two)
		w.same("t", two, three)
		before, _ := three.get("t").now().Position()
		one.exec("t", `put c {n: 1}`)
		w.same("t", one, two)
		time.Sleep(10 * time.Second)
		if seq, _ := three.get("t").now().Position(); seq != before {
			t.Errorf("the end of the chain is at change %d, of which the disk between holds %d", seq, before)
		}
		if err := two.get("t").now().Sync(); err != nil {
			t.Fatal(err)
		}
		w.same("t", one, three)
		if above := three.follower.Above("t"); len(above) != 2 || above[0] != "two" || above[1] != "one" {
			t.Errorf("above the end of the chain are %v", above)
		}
		one.demote(Target{From: "three"})
		w.eventually("a ring is refused", func() bool {
			s, _ := one.follower.Status("t")
			var ended *Ended
			return errors.As(s.Err, &ended) && ended.Status == endRing
		})
	})
}

// TestWhatHasComeIsAppliedThoughTheConnectionIsLost: the primary has answered these writes and has ended, and the copy is promoted.
func TestWhatHasComeIsAppliedThoughTheConnectionIsLost(t *testing.T) {
	for name, lose := range map[string]func(one, two *host){
		"and it is stopped":           func(*host, *host) {},
		"and its connection is lost":  func(one, two *host) { one.primary.Close(); time.Sleep(time.Second) },
		"and its connection is reset": func(one, two *host) { one.net.Partition(two.net); time.Sleep(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(w *world, one, two *host) {
				g := newGate()
				two.get("t").fs.Hook(func(op crashfs.Op, _ string) error {
					if op == crashfs.Sync {
						g.pass()
					}
					return nil
				})
				one.exec("t", `put c {n: 1}`)
				synctest.Wait() // its record is being applied, and the next ones come meanwhile
				for n := range 5 {
					one.exec("t", fmt.Sprintf(`put c {n: %d}`, 2+n))
				}
				synctest.Wait()
				lose(one, two)
				stopped := make(chan struct{})
				go func() { two.follower.Stop("t"); close(stopped) }()
				synctest.Wait()
				close(g.open)
				<-stopped
				if a, b := one.rows("t", "get c order id"), two.rows("t", "get c order id"); a != b {
					t.Errorf("the copy holds %s, want %s", b, a)
				}
			})
		})
	}
}

// TestACopyThatIsAheadOfALyingDiskKeepsItsTail: the disk of the primary lost what it had reported as synced.
func TestACopyThatIsAheadOfALyingDiskKeepsItsTail(t *testing.T) {
	for name, after := range map[string]string{"nothing was written since": "", "a change was": `put c {n: 9}`} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(w *world, one, two *host) {
				held := one.get("t")
				held.fs.Hook(func(op crashfs.Op, _ string) error {
					if op == crashfs.Sync {
						return crashfs.ErrSilent
					}
					return nil
				})
				for n := range 5 {
					one.exec("t", fmt.Sprintf(`put c {n: %d}`, n))
				}
				w.same("t", one, two)
				ahead, _ := two.get("t").now().Position()
				held.alone(func() {
					lost := held.fs.CrashKeeping(func(int) int { return 0 })
					held.db.Close()
					held.fs = lost
					one.openLocked(held)
				})
				left, _ := held.now().Position()
				one.primary.Opened("t")
				if after != "" {
					one.exec("t", after)
				}
				w.same("t", one, two)
				if kept, want := two.get("t").kept, fmt.Sprintf("[%d to %d]", left+1, ahead); left >= ahead || fmt.Sprint(kept) != want {
					t.Errorf("kept are %v, want %s", kept, want)
				}
			})
		})
	}
}
