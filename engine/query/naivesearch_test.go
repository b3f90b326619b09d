package query

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// scored is a row with its score, computed in 64 bits.
type scored struct {
	id    int64
	score float64
}

// best puts rows in order: by score, of equal ones by id.
func best(rows []scored, ascending bool) []scored {
	slices.SortStableFunc(rows, func(a, b scored) int {
		c := cmp.Compare(b.score, a.score)
		if ascending {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.id, b.id))
	})
	return rows
}

// naiveNear scores the rows that have a vector in the field, by a metric.
func naiveNear(rows []map[string]any, field, metric string, q []float64) []scored {
	var out []scored
	for _, row := range rows {
		list, ok := row[field].([]any)
		if !ok {
			continue
		}
		dot, square, norms := 0.0, 0.0, [2]float64{}
		for i, x := range list {
			v, _ := rat(x).Float64()
			dot += v * q[i]
			square += (v - q[i]) * (v - q[i])
			norms[0] += v * v
			norms[1] += q[i] * q[i]
		}
		score := map[string]float64{"dot": dot, "l2": math.Sqrt(square), "cosine": 0}[metric]
		if n := norms[0] * norms[1]; metric == "cosine" && n > 0 {
			score = dot / math.Sqrt(n)
		}
		out = append(out, scored{row["id"].(int64), score})
	}
	return out
}

// naiveSparse scores the rows that share a dimension with q.
func naiveSparse(rows []map[string]any, weights map[int64]map[int]float64, q map[int]float64) []scored {
	var out []scored
	for _, row := range rows {
		id := row["id"].(int64)
		sum, shares := 0.0, false
		for at, w := range weights[id] {
			if x, ok := q[at]; ok {
				sum += w * x
				shares = true
			}
		}
		if shares {
			out = append(out, scored{id, sum})
		}
	}
	return out
}

// naiveMatch scores by BM25, word by word, the rows of some that hold a word of a query. All are the documents that make the
// statistics; words are parted by spaces.
func naiveMatch(all, rows []map[string]any, field, query string, k1, b float64) []scored {
	words := func(row map[string]any) []string {
		s, _ := row[field].(string)
		return strings.Fields(s)
	}
	n, length := 0.0, 0.0
	for _, row := range all {
		if w := words(row); len(w) > 0 {
			n++
			length += float64(len(w))
		}
	}
	var out []scored
	for _, row := range rows {
		has := words(row)
		score, found := 0.0, false
		for _, word := range strings.Fields(query) {
			tf, df := 0.0, 0.0
			for _, w := range has {
				if w == word {
					tf++
				}
			}
			if tf == 0 {
				continue
			}
			for _, other := range all {
				if slices.Contains(words(other), word) {
					df++
				}
			}
			found = true
			score += math.Log(1+(n-df+0.5)/(df+0.5)) * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(len(has))/(length/n)))
		}
		if found {
			out = append(out, scored{row["id"].(int64), score})
		}
	}
	return out
}

// naiveFuse adds up the ranks of two sides as fractions.
func naiveFuse(k int64, sides ...[]scored) []scored {
	sums := map[int64]*big.Rat{}
	for _, side := range sides {
		for rank, row := range side {
			if sums[row.id] == nil {
				sums[row.id] = new(big.Rat)
			}
			sums[row.id].Add(sums[row.id], big.NewRat(1, k+int64(rank)+1))
		}
	}
	out := []scored{}
	for _, id := range slices.SortedFunc(maps.Keys(sums), func(a, b int64) int {
		return cmp.Or(sums[b].Cmp(sums[a]), cmp.Compare(a, b))
	}) {
		score, _ := sums[id].Float32()
		out = append(out, scored{id, float64(score)})
	}
	return out
}
