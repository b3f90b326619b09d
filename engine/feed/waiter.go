package feed

// Waiter is for a caller that waits for blocks to settle and cannot wait on the channel of Moved.
type Waiter struct {
	// Wake is called when blocks settle. It runs under the log's lock, so it must be quick and may call nothing of the
	// database or the feed.
	Wake func()

	at int // place in Feed.waiters, from 1; 0 if it does not wait
}

// Await registers w to be woken once, when the last settled block does not end at the change since or blocks that
// landed are undone. If it already does not end there, Await returns false and w is not registered.
func (f *Feed) Await(w *Waiter, since uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled != since {
		return false
	}
	if w.at == 0 {
		f.waiters = append(f.waiters, w)
		w.at = len(f.waiters)
	}
	return true
}

// Leave unregisters w.
func (f *Feed) Leave(w *Waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.at == 0 {
		return
	}
	n := len(f.waiters) - 1
	last := f.waiters[n]
	f.waiters[w.at-1], last.at = last, w.at
	f.waiters[n], w.at = nil, 0
	f.waiters = f.waiters[:n]
}

func (f *Feed) wakeWaiters() {
	for _, w := range f.waiters {
		w.at = 0
		w.Wake()
	}
	clear(f.waiters)
	f.waiters = f.waiters[:0]
}
