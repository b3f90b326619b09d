package hnsw

import (
	"testing"

	"fenec/engine/vector"
)

func TestRecallOfClusters(t *testing.T) {
	d, queries := clustered(1, 5000, 32, 50, 50)
	for _, m := range []vector.Metric{vector.Cosine, vector.L2, vector.DotProduct} {
		t.Run(m.String(), func(t *testing.T) {
			g := New(Options{Dim: 32, Metric: m, EFConstruction: 100}, d.own)
			g.Build(len(d), 2, d.eachVector)
			if got := recall(t, g, d, queries, 10, 100, nil); got < 0.95 {
				t.Errorf("recall %.3f, want at least 0.95", got)
			} else {
				t.Logf("recall %.3f", got)
			}
		})
	}
}
