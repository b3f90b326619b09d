package hnsw

import "math"

// key is a node and its distance in one number. The key of the nearer node is lower; at equal distances that of the lower
// node.
type key uint64

func keyOf(distance float32, node uint32) key {
	b := math.Float32bits(distance)
	if distance != distance {
		b = math.MaxInt32 // NaN: after all numbers
	}
	// Invert the sign bit of positive numbers and all bits of negative ones, so that they order as unsigned numbers.
	b ^= uint32(int32(b)>>31) | 1<<31
	return key(b)<<32 | key(node)
}

func (k key) node() uint32 { return uint32(k) }

func (k key) distance() float32 {
	b := uint32(k >> 32)
	b ^= uint32(int32(^b)>>31) | 1<<31
	return math.Float32frombits(b)
}

// heap is a binary heap with the lowest key on top. Keys are inserted inverted (^k) if the highest has to be on top.
type heap []key

func (h *heap) push(k key) {
	s := append(*h, k)
	*h = s
	at := len(s) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if s[parent] <= k {
			break
		}
		s[at] = s[parent]
		at = parent
	}
	s[at] = k
}

func (h *heap) pop() key {
	s := *h
	top := s[0]
	last := s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) > 0 {
		s.replace(last)
	}
	return top
}

// order makes a heap of keys in any order.
func (s heap) order() {
	for at := len(s)/2 - 1; at >= 0; at-- {
		s.siftDown(at, s[at])
	}
}

// replace replaces the top by k.
func (s heap) replace(k key) { s.siftDown(0, k) }

// siftDown replaces the key at at by k and moves it down to its place. Everything above at is in order.
func (s heap) siftDown(at int, k key) {
	for {
		child := 2*at + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if k <= s[child] {
			break
		}
		s[at] = s[child]
		at = child
	}
	s[at] = k
}
