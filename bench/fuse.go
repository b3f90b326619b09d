package main

import "fenec/engine/doc"

const (
	fuseCount = 20_000
	fuseMatch = `get notes select id match body $1 limit 20` // as many as fuse takes of each side
	fuseNear  = `get notes select id near v $1 limit 20`
	fuseBoth  = `get notes select id match body $1 near v $2 fuse limit 10`
)

// fuseFigures compares a fuse with its two sides, one after the other.
func fuseFigures(r *report) error {
	ours, err := newDatabase(`create collection notes (body text @text, v vector<128>)`)
	if err != nil {
		return err
	}
	defer ours.close()
	c, set := newCorpus(1), newVectorSet(fuseCount)
	for _, v := range set.base {
		if err := ours.exec(`put notes {body: $1, v: $2}`, text(c.document()), vectorOf(v)); err != nil {
			return err
		}
	}
	if err := ours.exec(`create index on notes (v) @hnsw(cosine)`); err != nil {
		return err
	}
	var words, vectors []doc.Value
	for i, asked := range searchesFor(2, "two words").queries {
		words, vectors = append(words, text(asked)), append(vectors, vectorOf(set.queries[i]))
	}
	fused := func() (float64, error) {
		return p50(len(words), func(i int) error { return ours.exec(fuseBoth, words[i], vectors[i]) })
	}
	apart := func() (float64, error) {
		return p50(len(words), func(i int) error {
			if err := ours.exec(fuseMatch, words[i]); err != nil {
				return err
			}
			return ours.exec(fuseNear, vectors[i])
		})
	}
	return r.figure(figure{
		name: "fuse of two words and a vector over 20 000 documents, top 10, p50", unit: "us", atMost: 1.2,
		ours: side{"fenec", fused}, peer: side{"match, then near", apart},
	})
}
