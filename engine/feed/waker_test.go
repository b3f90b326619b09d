package feed

import "testing"

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
			if !f.Await(&wakers[i], 0) {
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
	if f.Await(&wakers[1], 1) {
		t.Error("change 2 is not seen")
	}
	settled()
	expect("who was told is not woken", 0, 1, 1)
	if !f.Await(&wakers[2], 3) || !f.Await(&wakers[0], 3) {
		t.Error("there is something behind change 3")
	}
	f.Leave(&wakers[2])
	settled()
	expect("the others wait on", 1, 1, 1)
	if len(f.wakers) != 0 {
		t.Errorf("%d wait", len(f.wakers))
	}
}
