package engine

import (
	"fenec/engine/doc"
	"fenec/engine/index"
)

// empty is the index of no document yet; get finds those it will hold.
func (x *derived) empty(get lookup) builtIndex {
	if x.index.Kind.Ordered() {
		return sortedIndex{index.NewSorted(func(id int64) doc.Value { return x.value(get(id)) })}
	}
	return new(hashIndex)
}

// Hash, Sorted, Vectors, Text and Inverted are query.Table.

func (t *table) Hash(on string) *index.Hash {
	if x := t.index(on); x != nil {
		if s, ok := x.built().(*hashIndex); ok {
			return &s.Hash
		}
	}
	return nil
}

func (t *table) Sorted(on string) *index.Sorted {
	if x := t.index(on); x != nil {
		if s, ok := x.built().(sortedIndex); ok {
			return s.Sorted
		}
	}
	return nil
}

// hashIndex leaves out nulls: no lookup asks for one.
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

// sortedIndex holds nulls too: they have a place in the order.
type sortedIndex struct{ *index.Sorted }

func (s sortedIndex) fill(n int, each func(add func(v doc.Value, id int64))) { s.Build(n, each) }
func (s sortedIndex) add(v doc.Value, id int64)                              { s.Add(v, id) }
func (s sortedIndex) remove(v doc.Value, id int64)                           { s.Remove(v, id) }
func (s sortedIndex) bytes() int64                                           { return s.Bytes() }
