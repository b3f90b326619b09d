package feed

import (
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/wal"
)

func TestAWakerIsWokenOncePerWait(t *testing.T) {
	f := New(DefaultKeep)
	settled := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settle(f.settled + 1)
	}
	woken := make([]int, 3)
	wakers := make([]Waker, len(woken))
	for i := range wakers {
		wakers[i].Wake = func() { woken[i]++ }
	}
	expect := func(what string, want ...int) {
		t.Helper()
		for i, n := range want {
			if woken[i] != n {
				t.Errorf("%s: woken are %v, want %v", what, woken, want)
				return
			}
		}
	}
	for i := range wakers {
		for range 2 { // a second wait of one waiter has no effect
			if !f.Await(&wakers[i], Settled, 0) {
				t.Error("there is something behind change 0")
			}
		}
	}
	expect("nothing settled", 0, 0, 0)
	f.Leave(&wakers[0]) // the last one takes its place
	f.Leave(&wakers[0])
	settled()
	expect("who left is not woken", 0, 1, 1)
	settled()
	expect("who does not wait is not woken", 0, 1, 1)
	if f.Await(&wakers[1], Settled, 1) {
		t.Error("change 2 is not seen")
	}
	settled()
	expect("who was told is not woken", 0, 1, 1)
	if !f.Await(&wakers[2], Settled, 3) || !f.Await(&wakers[0], Settled, 3) {
		t.Error("there is something behind change 3")
	}
	f.Leave(&wakers[2])
	settled()
	expect("the others wait on", 1, 1, 1)
	if n := len(f.wakers[Settled]); n != 0 {
		t.Errorf("%d wakers wait, want none", n)
	}
}

func TestAWakerForDurableBlocksIsWokenByASync(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{Sync: wal.Policy{Every: time.Hour}})
	f.exec("create collection c (n int)")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	woken := 0
	w := Waker{Wake: func() { woken++ }}
	if !f.Await(&w, Durable, 1) {
		t.Fatal("a block after change 1 is durable, want none")
	}
	f.exec("put c {n: 1}")
	if woken != 0 || f.End(Settled) != 2 {
		t.Errorf("a write that is not on disk has woken it %d times, the settled end is %d; want 0 and 2", woken, f.End(Settled))
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if woken != 1 {
		t.Errorf("the sync has woken it %d times, want 1", woken)
	}
	if f.Await(&w, Durable, 1) {
		t.Error("it waits after change 1 though change 2 is durable")
	}
}

func TestAWakerForDurableBlocksThatNothingSyncsIsWokenByTheWrite(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{})
	woken := 0
	w := Waker{Wake: func() { woken++ }}
	if !f.Await(&w, Durable, 0) {
		t.Fatal("a block is durable, want none")
	}
	f.exec("create collection c (n int)")
	if woken != 1 {
		t.Errorf("the write has woken it %d times, want 1: its reader has to sync", woken)
	}
}
