package text

import (
	"math"
	"sync"

	"fenec/engine/index"
)

// Ended defines which documents of an index a search leaves out of the statistics: those whose end is at Until or
// before. Their owner may delete them much later, and until then they are in the postings.
type Ended struct {
	Until int64
	// Between calls fn with the texts of the documents that end after one time and no later than another, both as in
	// Until; after math.MinInt64 is from the first end on. It returns false if it left some out.
	Between func(after, until int64, fn func(text []byte)) bool
}

// ended counts the documents that have ended, up to a time. It follows the time of each search, forward and back, by
// the documents that end in between, which are few: so the statistics of a search cost next to nothing, however many
// documents have ended before.
//
// Searches run concurrently, each with its own time. A search holds mu while it moves the counts to its time and reads
// what it needs of them.
type ended struct {
	mu    sync.Mutex
	until int64
	live  int // as in Index, of the documents that have ended
	words int64
	dict  dict // of their terms: df counts documents, and there are no postings
	arena arena
}

func newEnded() *ended { return &ended{until: math.MinInt64} }

// forget resets the counts to no document.
func (e *ended) forget() {
	e.until, e.live, e.words = math.MinInt64, 0, 0
	e.dict, e.arena = dict{}, arena{}
}

// move makes e count what has ended at a time. It returns false, and counts nothing, if not all of that is known.
func (e *ended) move(o Options, to Ended) (ok bool) {
	switch {
	case to.Until > e.until:
		ok = to.Between(e.until, to.Until, func(text []byte) { e.add(o, text) })
	case to.Until < e.until:
		ok = to.Between(to.Until, e.until, func(text []byte) { e.remove(o, text) })
	default:
		return true
	}
	if !ok {
		e.forget()
		return false
	}
	e.until = to.Until
	return true
}

// add counts a document. One without a word is not in the index.
func (e *ended) add(o Options, text []byte) {
	e.tally(o, text, func(length uint32, t *tally) {
		e.live++
		e.words += int64(length)
		t.byTerm(func(hash uint32, term []byte, _ []occurrence) {
			e.dict.terms[e.dict.enter(&e.arena, hash, term)].df++
		})
	})
}

// remove undoes an add.
func (e *ended) remove(o Options, text []byte) {
	e.tally(o, text, func(length uint32, t *tally) {
		e.live--
		e.words -= int64(length)
		if e.live == 0 {
			e.dict, e.arena = dict{}, arena{}
			return
		}
		t.byTerm(func(hash uint32, term []byte, _ []occurrence) {
			place, _ := e.dict.find(&e.arena, hash, term)
			if at := &e.dict.terms[place]; at.df > 1 {
				at.df--
			} else {
				e.dict.remove(&e.arena, hash, place)
			}
		})
	})
}

// tally calls fn with the words and terms of a text that has any.
func (e *ended) tally(o Options, text []byte, fn func(length uint32, t *tally)) {
	t := tallies.Get().(*tally)
	defer tallies.Put(t)
	t.reset(o)
	t.add(text)
	if length := t.lengths[0]; length > 0 {
		fn(length, t)
	}
}

// documents returns the number of ended documents that have a term.
func (e *ended) documents(hash uint32, term []byte) uint32 {
	if place, ok := e.dict.find(&e.arena, hash, term); ok {
		return e.dict.terms[place].df
	}
	return 0
}

func (e *ended) bytes() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dict.bytes() + e.arena.bytes()
}

// AddEnd records that a document of the index, with that text, has an end from now on, which searches then take into
// account. It is called with the Add of such a document, and RemoveEnd with its Remove; both are called if a document's
// end is moved.
func (x *Index) AddEnd(end int64, text []byte) {
	if end <= x.ended.until {
		x.ended.add(x.o, text)
	}
}

// RemoveEnd records that a document that had an end no longer has one.
func (x *Index) RemoveEnd(end int64, text []byte) {
	if end <= x.ended.until {
		x.ended.remove(x.o, text)
	}
}

// ForgetEnds records that no document has an end.
func (x *Index) ForgetEnds() { x.ended.forget() }

// SearchWithout is Search of an index without the documents that have ended: they count in no statistic, so that scores
// equal those of an index of the others to the last bit. accept must return false for them. ok is false if e does not
// cover all documents.
func (x *Index) SearchWithout(e Ended, query []byte, k int, accept func(id int64) bool, dst []index.Hit) (hits []index.Hit, ok bool) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.begin(x, query, k, accept)
	x.ended.mu.Lock()
	if ok = x.ended.move(x.o, e); ok {
		s.weigh(x.ended)
	}
	x.ended.mu.Unlock()
	if !ok {
		s.end()
		return dst, false
	}
	s.run()
	dst = s.top.Append(dst)
	s.end()
	return dst, true
}
