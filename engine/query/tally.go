package query

import (
	"math/big"
	"math/bits"

	"fenec/engine/doc"
)

// tally computes one aggregate of every group.
type tally interface {
	open() // adds a group
	add(group int, d doc.Document)
	value(group int) (v doc.Value, fits bool)
	bytes() int64 // bytes
}

// tally returns an empty tally for the aggregate. The tally sets grown when it takes much more memory though no group was
// added.
func (a *aggregate) tally(grown *bool) tally {
	switch {
	case a.column == nil:
		return &rowTally{}
	case a.distinct && !a.column.id: // ids are unique
		return newDistinctTally(a.column, grown)
	case a.name == "count":
		return &countTally{column: a.column}
	case a.extreme():
		return a.extremeTally()
	case a.column.typ.Kind == doc.TypeFloat:
		return &floatTally{column: a.column, mean: a.name == "avg"}
	}
	return &intTally{column: a.column, mean: a.name == "avg"}
}

// rowTally counts rows.
type rowTally struct{ counts []int64 }

func (t *rowTally) bytes() int64                  { return bytesOf(t.counts) }
func (t *rowTally) open()                         { t.counts = append(t.counts, 0) }
func (t *rowTally) add(group int, _ doc.Document) { t.counts[group]++ }
func (t *rowTally) value(group int) (doc.Value, bool) {
	return doc.IntValue(t.counts[group]), true
}

// countTally counts the rows where a column is not null.
type countTally struct {
	column *column
	counts []int64
}

func (t *countTally) bytes() int64 { return bytesOf(t.counts) }

func (t *countTally) open() { t.counts = append(t.counts, 0) }

func (t *countTally) add(group int, d doc.Document) {
	if t.column.id || !t.column.raw(d).IsNull() {
		t.counts[group]++
	}
}

func (t *countTally) value(group int) (doc.Value, bool) {
	return doc.IntValue(t.counts[group]), true
}

// intTally adds ints in 128 bits, so that only the result has to fit an int, not each partial sum.
type intTally struct {
	column *column
	mean   bool
	sums   []intSum
}

type intSum struct {
	n  int64 // values that are not null
	hi int64
	lo uint64
}

func (t *intTally) bytes() int64 { return bytesOf(t.sums) }

func (t *intTally) open() { t.sums = append(t.sums, intSum{}) }

func (t *intTally) add(group int, d doc.Document) {
	var n int64
	if t.column.id {
		n = d.ID()
	} else {
		var ok bool
		if n, ok = d.Field(t.column.slot).Int(); !ok {
			return
		}
	}
	s := &t.sums[group]
	lo, carry := bits.Add64(s.lo, uint64(n), 0)
	s.n++
	s.lo, s.hi = lo, s.hi+n>>63+int64(carry)
}

func (t *intTally) value(group int) (doc.Value, bool) {
	s := &t.sums[group]
	switch {
	case s.n == 0:
		return doc.Value{}, true
	case t.mean:
		return doc.FloatValue(s.mean()), true
	}
	return doc.IntValue(int64(s.lo)), s.small()
}

// small reports whether the sum fits an int of 64 bits.
func (s *intSum) small() bool { return s.hi == int64(s.lo)>>63 }

// mean returns the float nearest to the sum divided by the number of values.
func (s *intSum) mean() float64 {
	const exact = 1 << 53
	if n := int64(s.lo); s.small() && n > -exact && n < exact && s.n < exact {
		return float64(n) / float64(s.n)
	}
	sum := new(big.Int).Lsh(big.NewInt(s.hi), 64)
	sum.Add(sum, new(big.Int).SetUint64(s.lo))
	mean, _ := new(big.Rat).SetFrac(sum, big.NewInt(s.n)).Float64()
	return mean
}
