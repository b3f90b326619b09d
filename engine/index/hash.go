package index

// Hash finds documents by the hash of a value. Different values may share a hash, so the caller compares what is found.
// The zero value is empty and ready to use.
type Hash struct{ pairs pairs }

// Add adds the document id under the hash h.
func (x *Hash) Add(h uint64, id int64) { x.pairs.add(&probe{key: h, id: id}) }

// Remove removes the document id from the hash h.
func (x *Hash) Remove(h uint64, id int64) { x.pairs.remove(&probe{key: h, id: id}) }

// Len returns the number of entries.
func (x *Hash) Len() int { return x.pairs.n }

// Count returns the number of documents under the hash h.
func (x *Hash) Count(h uint64) int {
	from, to := x.bounds(h)
	return x.pairs.count(from, to)
}

// Ascend calls fn for each document under the hash h, by ascending id, until fn returns false.
func (x *Hash) Ascend(h uint64, fn func(id int64) bool) {
	pages := x.pairs.pages
	if len(pages) == 0 {
		return
	}
	from := x.pairs.find(&probe{key: h})
	for i, at := from.page, from.at; i < len(pages); i, at = i+1, 0 {
		for _, e := range pages[i][at:] {
			if e.key != h || !fn(e.id) {
				return
			}
		}
	}
}

// AppendIDs appends the documents under the hash h to dst, by ascending id.
func (x *Hash) AppendIDs(dst []int64, h uint64) []int64 {
	from, to := x.bounds(h)
	return x.pairs.appendIDs(dst, from, to)
}

func (x *Hash) bounds(h uint64) (from, to place) {
	return x.pairs.find(&probe{key: h}), x.pairs.find(&probe{key: h, after: true})
}

// Bytes returns the memory held in bytes.
func (x *Hash) Bytes() int64 { return x.pairs.bytes() }

// Build replaces x by the index of about n documents. each calls add once for every one of them, in any order.
func (x *Hash) Build(n int, each func(add func(h uint64, id int64))) {
	all := make([]pair, 0, n)
	each(func(h uint64, id int64) { all = append(all, pair{h, id}) })
	x.pairs.load(all)
}
