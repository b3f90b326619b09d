package text

// dict finds the record of a term by its text: open addressing over records without pointers, so that a million terms
// are a handful of objects for the garbage collector.
type dict struct {
	slots []slot // a power of two
	terms []term
	spare []uint32 // places in terms that are free
}

// slot is a place of the hash table, free where place is 0.
type slot struct{ hash, place uint32 } // one more than the term's place in terms

// term is the record of a term: where its text is, and its postings.
type term struct {
	text    uint32 // ref of its bytes
	length  uint32 // how many
	df      uint32 // number of documents it is in
	last    uint32 // the document of the last posting
	tail    uint32 // ref of the postings that are in no block yet; if there is only one posting, its term frequency
	list    uint32 // one more than the place of its blocks in lists, 0 if it has none
	tailMin uint32 // words of the shortest document of the tail
	tailLen uint16 // bytes of the tail
	tailN   uint8  // postings of the tail
}

func (d *dict) len() int { return len(d.terms) - len(d.spare) }

// find returns the place of a term in terms.
func (d *dict) find(a *arena, hash uint32, text []byte) (place uint32, ok bool) {
	if len(d.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(d.slots) - 1)
	for at := hash & mask; d.slots[at].place != 0; at = (at + 1) & mask {
		if s := d.slots[at]; s.hash == hash && string(d.text(a, s.place-1)) == string(text) {
			return s.place - 1, true
		}
	}
	return 0, false
}

// text returns the text of a term.
func (d *dict) text(a *arena, place uint32) []byte {
	t := &d.terms[place]
	return a.at(t.text, int(t.length))
}

// enter returns the place of a term, and adds a record for it if it has none.
func (d *dict) enter(a *arena, hash uint32, text []byte) uint32 {
	if place, ok := d.find(a, hash, text); ok {
		return place
	}
	if 4*(d.len()+1) > 3*len(d.slots) {
		d.grow()
	}
	t := term{text: a.alloc(len(text)), length: uint32(len(text))}
	copy(a.at(t.text, len(text)), text)
	var place uint32
	if n := len(d.spare); n > 0 {
		place = d.spare[n-1]
		d.spare = d.spare[:n-1]
		d.terms[place] = t
	} else {
		place = uint32(len(d.terms))
		d.terms = append(d.terms, t)
	}
	d.put(slot{hash, place + 1})
	return place
}

func (d *dict) put(s slot) {
	mask := uint32(len(d.slots) - 1)
	at := s.hash & mask
	for d.slots[at].place != 0 {
		at = (at + 1) & mask
	}
	d.slots[at] = s
}

func (d *dict) grow() {
	old := d.slots
	d.slots = make([]slot, max(2*len(old), smallestTable))
	for _, s := range old {
		if s.place != 0 {
			d.put(s)
		}
	}
}

// remove removes a term. What its record refers to, except the text, must have been freed.
func (d *dict) remove(a *arena, hash, place uint32) {
	mask := uint32(len(d.slots) - 1)
	at := hash & mask
	for d.slots[at].place != place+1 {
		at = (at + 1) & mask
	}
	// Entries that follow without a gap move up, unless that would move one before the slot of its hash.
	for next := (at + 1) & mask; d.slots[next].place != 0; next = (next + 1) & mask {
		if (next-d.slots[next].hash)&mask >= (next-at)&mask {
			d.slots[at] = d.slots[next]
			at = next
		}
	}
	d.slots[at] = slot{}
	a.release(d.terms[place].text, int(d.terms[place].length))
	d.spare = append(d.spare, place)
}

// bytes returns the memory held in bytes.
func (d *dict) bytes() int64 {
	const slotSize, termSize = 8, 32
	return int64(cap(d.slots))*slotSize + int64(cap(d.terms))*termSize + int64(cap(d.spare))*4
}
