package doc

import "fenec/engine/collation"

// CompareBy is Compare, except that two texts are ordered by a collation, under which different texts may be equal.
// Texts within lists and objects are ordered by bytes.
func CompareBy(c collation.Collation, a, b Value) int {
	if c != collation.None && a.Kind == Text && b.Kind == Text {
		return c.Compare(a.B, b.B)
	}
	return Compare(a, b)
}

// SortKeyBy returns the SortKey for the order of CompareBy.
func SortKeyBy(c collation.Collation, v Value) uint64 {
	if c == collation.None || v.Kind != Text {
		return SortKey(v)
	}
	var room [24]byte
	key, _ := c.AppendPrefix(room[:0], v.B, textKeyBytes+1)
	return contentKey(textKeys, key, textKeyBytes)
}
