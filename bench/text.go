package main

import (
	"fmt"
	"strings"

	"fenec/engine/doc"
)

// textFigures compares words found by BM25, top 10, with bleve and SQLite's FTS5, all three in memory.
func textFigures(r *report) error {
	c := newCorpus(1)
	documents := make([]string, textDocuments)
	for i := range documents {
		documents[i] = c.document()
	}
	ours, err := newDatabase()
	if err != nil {
		return err
	}
	defer ours.close()
	texts := &texts{ours: ours}
	peer := &bleves{}
	defer peer.close()
	if err := r.figure(figure{
		name: "index of 100 000 documents of 60 words", unit: "ms", atLeast: 4,
		ours: side{"fenec, the first match", func() (float64, error) { return texts.build(documents) }},
		peer: side{"bleve, in batches of 1 000", func() (float64, error) { return peer.build(documents, 1000) }},
	}); err != nil {
		return err
	}
	asked := []searches{searchesFor(2, "two words"), searchesFor(3, "three words")}
	for _, s := range asked {
		if err := r.figure(figure{
			name: s.name, unit: "us", atLeast: 10,
			ours: side{"fenec", texts.match(s)}, peer: side{"bleve, 100 segments", peer.match(s)},
		}); err != nil {
			return err
		}
	}
	if _, err := peer.build(documents, textDocuments); err != nil {
		return err
	}
	if err := r.figure(figure{
		name: asked[0].name, unit: "us", atLeast: 10,
		ours: side{"fenec", texts.match(asked[0])}, peer: side{"bleve, all in one batch and segment", peer.match(asked[0])},
	}); err != nil {
		return err
	}
	peer.close()
	return ftsFigures(r, texts, documents, asked)
}

// searches are for so many words each.
type searches struct {
	name    string
	queries []string
}

func searchesFor(n int, words string) searches {
	c := newCorpus(uint64(10 + n))
	s := searches{name: "match of " + words + ", top 10, p50"}
	for range textQueries {
		s.queries = append(s.queries, strings.Join(c.terms(n), " "))
	}
	return s
}

// texts is a collection of documents, a new one each time it is built.
type texts struct {
	ours  *ours
	built int
}

// build answers the milliseconds of the first match, which builds the index.
func (t *texts) build(documents []string) (float64, error) {
	if t.built > 0 {
		if err := t.ours.exec(fmt.Sprintf(`drop collection docs%d`, t.built)); err != nil {
			return 0, err
		}
	}
	t.built++
	if err := t.ours.exec(fmt.Sprintf(`create collection docs%d (body text @text)`, t.built)); err != nil {
		return 0, err
	}
	put := fmt.Sprintf(`put docs%d {body: $1}`, t.built)
	for _, body := range documents {
		if err := t.ours.exec(put, text(body)); err != nil {
			return 0, err
		}
	}
	return millis(func() error { return t.ours.exec(t.statement(), text(wordOf(stopWords))) })
}

func (t *texts) statement() string {
	return fmt.Sprintf(`get docs%d select id match body $1 limit 10`, t.built)
}

func (t *texts) match(s searches) func() (float64, error) {
	return func() (float64, error) {
		statement := t.statement()
		params := []doc.Value{{}}
		return p50(len(s.queries), func(i int) error {
			params[0] = text(s.queries[i])
			return t.ours.exec(statement, params...)
		})
	}
}
