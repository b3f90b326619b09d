package replication

// Waiter is somebody who waits for blocks to settle and cannot wait on a channel, as Moved has them do.
type Waiter struct {
	// Wake is called as blocks settle. It runs under the log's lock, so it must be quick and may call nothing of the
	// database or the feed.
	Wake func()

	at int // in Feed.waiters, from 1; 0 where it does not wait
}

// Await has w woken, once, as soon as the last block that is settled does not end at the change since, or as blocks that
// landed are taken back. Where it does not already, Await answers false, and w is not woken.
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

// Leave has w not be woken any more.
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
