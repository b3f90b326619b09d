package feed

// Waker is for a caller that waits for blocks to settle, or to be on disk, and cannot wait on the channel of Moved.
type Waker struct {
	// Wake is called when blocks have come into reach. It runs under the log's lock, so it must be quick and may call nothing of the
	// database or the feed.
	Wake func()

	reach Reach
	at    int // place in Feed.wakers[reach], from 1; 0 if it does not wait
}

// Await registers w to be woken once, when the last block in reach does not end at the change since or blocks that landed are
// undone. If it already does not end there, Await returns false and w is not registered. The reach is Settled or Durable. A
// feed whose database never syncs by itself wakes for Durable when blocks settle, and its reader calls Cover.
func (f *Feed) Await(w *Waker, r Reach, since uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r == Durable && f.lazy {
		r = Settled // Cover makes durable what is settled
	}
	if f.end(r) != since {
		return false
	}
	if w.at == 0 {
		f.wakers[r] = append(f.wakers[r], w)
		w.at, w.reach = len(f.wakers[r]), r
	}
	return true
}

// Leave unregisters w.
func (f *Feed) Leave(w *Waker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.at == 0 {
		return
	}
	wakers := f.wakers[w.reach]
	n := len(wakers) - 1
	last := wakers[n]
	wakers[w.at-1], last.at = last, w.at
	wakers[n], w.at = nil, 0
	f.wakers[w.reach] = wakers[:n]
}

func (f *Feed) wakeAll(r Reach) {
	wakers := f.wakers[r]
	for _, w := range wakers {
		w.at = 0
		w.Wake()
	}
	clear(wakers)
	f.wakers[r] = wakers[:0]
}
