package feed

// Waker is for a caller that waits for blocks to settle and cannot wait on the channel of Moved.
type Waker struct {
	// Wake is called when blocks settle. It runs under the log's lock, so it must be quick and may call nothing of the
	// database or the feed.
	Wake func()

	at int // place in Feed.wakers, from 1; 0 if it does not wait
}

// Await registers w to be woken once, when the last settled block does not end at the change since or blocks that
// landed are undone. If it already does not end there, Await returns false and w is not registered.
func (f *Feed) Await(w *Waker, since uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled != since {
		return false
	}
	if w.at == 0 {
		f.wakers = append(f.wakers, w)
		w.at = len(f.wakers)
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
	n := len(f.wakers) - 1
	last := f.wakers[n]
	f.wakers[w.at-1], last.at = last, w.at
	f.wakers[n], w.at = nil, 0
	f.wakers = f.wakers[:n]
}

func (f *Feed) wakeAll() {
	for _, w := range f.wakers {
		w.at = 0
		w.Wake()
	}
	clear(f.wakers)
	f.wakers = f.wakers[:0]
}
