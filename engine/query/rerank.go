package query

import (
	"fenec/engine/index"
	"fenec/engine/query/syntax"
)

const usualRerank = 200

// rerankPlan is a compiled rerank.
type rerankPlan struct {
	scoring
	candidates option
}

// rerankRun is what an explain shows of a rerank.
type rerankRun struct{ scored int }

// rerank compiles a rerank.
func (c *compiler) rerank(st *syntax.Rerank) (*rerankPlan, error) {
	r := &rerankPlan{}
	var err error
	if r.scoring, err = c.scoring("rerank", st.Field, st.Vector); err != nil {
		return nil, err
	}
	r.candidates, err = c.option("candidates", st.Candidates, option{least: 1, most: MaxCandidates, usual: usualRerank})
	return r, err
}

// reranked finds the best candidates of the match and keeps the need of them that score best by their vectors. One without
// a vector has no score and is left out. There are at least as many candidates as the limit.
func (s *searchPlan) reranked(f *frame, t Table, need int) error {
	n, err := s.rerank.candidates.value(f)
	if err != nil {
		return err
	}
	if s.pick.limit != nil {
		n = max(n, need)
	}
	if err := s.match.find(f, t, n); err != nil {
		return err
	}
	r := &f.search
	s.rerank.begin(f, min(need, len(r.hits)))
	for _, h := range r.hits {
		f.doc = t.Get(h.ID)
		if score, ok := s.rerank.score(f); ok {
			r.top.Push(index.Hit{ID: h.ID, Score: score})
			r.rerank.scored++
		}
	}
	r.hits = r.top.Append(r.hits[:0])
	return nil
}
