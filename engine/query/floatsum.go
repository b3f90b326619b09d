package query

import (
	"math"
	"math/big"

	"fenec/engine/doc"
)

// floatTally adds floats in the order of the rows, which is by id whatever the access path. Sums are compensated (Neumaier
// 1974): the rounding error of each addition is summed separately and added at the end. It is computed without a branch
// (TwoSum, Knuth, The Art of Computer Programming, 4.2.2), which is exact for sums up to half of the range.
type floatTally struct {
	column *column
	mean   bool
	sums   []floatSum
	past   map[int]*big.Float // of the groups whose sum came near the end of the range: the part removed from it
}

type floatSum struct {
	n    int64 // values that are not null
	sum  float64
	lost float64 // the sum of the rounding errors of the additions to sum
}

// exactBits is a precision that holds any sum of floats exactly: from the lowest bit of the least to 2^60 of the greatest.
const exactBits = 1074 + 1024 + 60

func (t *floatTally) bytes() int64 { return bytesOf(t.sums) }

func (t *floatTally) open() { t.sums = append(t.sums, floatSum{}) }

func (t *floatTally) add(group int, d doc.Document) {
	x, ok := d.Field(t.column.slot).Float()
	if !ok {
		return
	}
	s := &t.sums[group]
	s.n++
	sum := s.sum + x
	if math.Abs(sum) > math.MaxFloat64/2 {
		t.takeOut(group)
		sum = x
	}
	added := sum - s.sum
	s.lost += (s.sum - (sum - added)) + (x - added)
	s.sum = sum
}

// takeOut moves a group's sum to past, so that more can be added without an overflow.
func (t *floatTally) takeOut(group int) {
	past := t.past[group]
	if past == nil {
		if t.past == nil {
			t.past = map[int]*big.Float{}
		}
		past = new(big.Float).SetPrec(exactBits)
		t.past[group] = past
	}
	past.Add(past, big.NewFloat(t.sums[group].sum))
	t.sums[group].sum = 0
}

func (t *floatTally) value(group int) (doc.Value, bool) {
	s := &t.sums[group]
	if s.n == 0 {
		return doc.Value{}, true
	}
	sum := s.sum + s.lost
	if past := t.past[group]; past != nil {
		total := new(big.Float).SetPrec(exactBits).Add(past, big.NewFloat(s.sum))
		sum, _ = total.Add(total, big.NewFloat(s.lost)).Float64()
	}
	fits := math.Abs(sum) <= math.MaxFloat64
	if t.mean {
		sum /= float64(s.n)
	}
	return doc.FloatValue(sum), fits
}
