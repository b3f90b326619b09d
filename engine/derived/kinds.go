package derived

import (
	"runtime"

	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/text"
)

// empty returns an empty index; get finds the documents it will hold.
func (x *Index) empty(get Lookup) builtIndex {
	switch x.declared.Kind {
	case doc.IndexSorted, doc.IndexTTL:
		return sortedIndex{index.NewSorted(x.collate, func(id int64) doc.Value { return x.value(get(id)) })}
	case doc.IndexText:
		return textIndex{text.New(text.Options(x.declared.Text))}
	case doc.IndexHNSW:
		return x.emptyGraph(get)
	case doc.IndexInverted:
		return new(invertedIndex)
	}
	return new(hashIndex)
}

// hashIndex leaves out nulls: no lookup is for one.
type hashIndex struct{ index.Hash }

func (s *hashIndex) fill(n int, each func(add func(v doc.Value, id int64))) {
	s.Build(n, func(add func(h uint64, id int64)) {
		each(func(v doc.Value, id int64) {
			if v.Kind != doc.Null {
				add(doc.Hash(v), id)
			}
		})
	})
}

func (s *hashIndex) add(v doc.Value, id int64) {
	if v.Kind != doc.Null {
		s.Add(doc.Hash(v), id)
	}
}

func (s *hashIndex) remove(v doc.Value, id int64) {
	if v.Kind != doc.Null {
		s.Remove(doc.Hash(v), id)
	}
}

func (s *hashIndex) bytes() int64 { return s.Bytes() }

// sortedIndex holds nulls too, since they have a place in the order.
type sortedIndex struct{ *index.Sorted }

func (s sortedIndex) fill(n int, each func(add func(v doc.Value, id int64))) { s.Build(n, each) }
func (s sortedIndex) add(v doc.Value, id int64)                              { s.Add(v, id) }
func (s sortedIndex) remove(v doc.Value, id int64)                           { s.Remove(v, id) }
func (s sortedIndex) bytes() int64                                           { return s.Bytes() }

// textIndex leaves out nulls.
type textIndex struct{ *text.Index }

func (s textIndex) fill(n int, each func(add func(v doc.Value, id int64))) {
	s.Build(n, runtime.GOMAXPROCS(0), func(add func(id int64, text []byte)) {
		each(func(v doc.Value, id int64) {
			if v.Kind == doc.Text {
				add(id, v.B)
			}
		})
	})
}

func (s textIndex) add(v doc.Value, id int64) {
	if v.Kind == doc.Text {
		s.Add(id, v.B)
	}
}

func (s textIndex) remove(v doc.Value, id int64) {
	if v.Kind == doc.Text {
		s.Remove(id, v.B)
	}
}

func (s textIndex) bytes() int64 { return s.Bytes() }

// invertedIndex leaves out nulls.
type invertedIndex struct{ index.Inverted }

func (s *invertedIndex) fill(_ int, each func(add func(v doc.Value, id int64))) {
	s.Build(func(add func(w doc.Weights, id int64)) {
		each(func(v doc.Value, id int64) {
			if v.Kind == doc.Sparse {
				add(v.Weights(), id)
			}
		})
	})
}

func (s *invertedIndex) add(v doc.Value, id int64) {
	if v.Kind == doc.Sparse {
		s.Add(v.Weights(), id)
	}
}

func (s *invertedIndex) remove(v doc.Value, id int64) {
	if v.Kind == doc.Sparse {
		s.Remove(v.Weights(), id)
	}
}

func (s *invertedIndex) bytes() int64 { return s.Bytes() }
