package vector

// Metric is a measure of how near two vectors are. The numbers are part of the file format.
type Metric uint8

const (
	Cosine     Metric = iota + 1 // cosine similarity, higher is nearer
	L2                           // Euclidean distance, lower is nearer
	DotProduct                   // dot product, higher is nearer
)

var metricNames = [...]string{Cosine: "cosine", L2: "l2", DotProduct: "dot"}

// String returns the metric as written in the language.
func (m Metric) String() string { return name(metricNames[:], uint8(m)) }

// ParseMetric returns the metric of that name; ok is false if there is none.
func ParseMetric(s string) (Metric, bool) {
	m, ok := named(metricNames[:], s)
	return Metric(m), ok
}

// Quant is how the vectors of an index are compressed, 0 for not at all. The numbers are part of the file format.
type Quant uint8

const (
	Int8 Quant = iota + 1 // a byte a component
	Bit                   // a bit a component, of the rest once a common direction is subtracted
)

var quantNames = [...]string{Int8: "int8", Bit: "bit"}

// String returns the quantisation as written in the language, empty for none.
func (q Quant) String() string { return name(quantNames[:], uint8(q)) }

// ParseQuant returns the quantisation of that name; ok is false if there is none.
func ParseQuant(s string) (Quant, bool) {
	q, ok := named(quantNames[:], s)
	return Quant(q), ok
}

func name(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return ""
}

func named(names []string, s string) (uint8, bool) {
	for n, is := range names {
		if n > 0 && is == s {
			return uint8(n), true
		}
	}
	return 0, false
}
