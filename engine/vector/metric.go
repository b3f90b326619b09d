package vector

// Metric is how near two vectors are. The numbers are part of the file format.
type Metric uint8

const (
	Cosine     Metric = iota + 1 // cosine similarity, higher is nearer
	L2                           // Euclidean distance, lower is nearer
	DotProduct                   // dot product, higher is nearer
)

var metricNames = [...]string{Cosine: "cosine", L2: "l2", DotProduct: "dot"}

// String is the metric as the language writes it.
func (m Metric) String() string { return name(metricNames[:], uint8(m)) }

// ParseMetric is the metric of that name; false where there is none.
func ParseMetric(s string) (Metric, bool) {
	m, ok := named(metricNames[:], s)
	return Metric(m), ok
}

// Quant is how the vectors of an index are made smaller, 0 for not at all. The numbers are part of the file format.
type Quant uint8

const (
	Int8 Quant = iota + 1 // a byte a component
	Bit                   // a bit a component, of what is left once a common direction is taken off
)

var quantNames = [...]string{Int8: "int8", Bit: "bit"}

// String is the quantisation as the language writes it, empty for none.
func (q Quant) String() string { return name(quantNames[:], uint8(q)) }

// ParseQuant is the quantisation of that name; false where there is none.
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
