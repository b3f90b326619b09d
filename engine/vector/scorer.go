package vector

// Ascending reports whether a lower score is nearer.
func (m Metric) Ascending() bool { return m == L2 }

// Scorer scores vectors against one query. Scans and indexes share it. It is not safe for concurrent use, and ready
// after Reset.
type Scorer struct {
	metric Metric
	query  []float32
	buf    []float32
}

// Reset makes s score against query, of which it keeps a copy, by metric m.
func (s *Scorer) Reset(m Metric, query []float32) {
	s.metric = m
	if m == Cosine {
		s.query = Normalize(s.query[:0], query)
		return
	}
	s.query = append(s.query[:0], query...)
}

// Query returns the query, of length 1 if the metric is the cosine.
func (s *Scorer) Query() []float32 { return s.query }

// Score returns the cosine similarity, the dot product or the Euclidean distance of the query and v, which has the same
// number of dimensions.
func (s *Scorer) Score(v []float32) float32 {
	switch s.metric {
	case Cosine:
		s.buf = Normalize(s.buf[:0], v)
		return Dot(s.query, s.buf)
	case DotProduct:
		return s.FromRaw(-Dot(s.query, v), v)
	default:
		return s.FromRaw(L2Squared(s.query, v), v)
	}
}

// FromRaw returns the score of v, of length 1 if the metric is the cosine, whose raw distance is known: the square of
// the Euclidean distance, or the negated dot product. It is finite if query and v are.
func (s *Scorer) FromRaw(raw float32, v []float32) float32 {
	if s.metric == L2 {
		return distance(raw, s.query, v)
	}
	if raw-raw == 0 {
		return -raw
	}
	var sum float64
	for i, x := range s.query {
		sum += float64(x) * float64(v[i])
	}
	return finite(sum)
}
