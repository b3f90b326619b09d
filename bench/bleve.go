package main

import (
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
)

// bleves is bleve's index, scorch in memory, made anew each time it is built. In memory scorch merges nothing: it stays
// in as many segments as it was given batches.
type bleves struct{ index bleve.Index }

// bleveMapping indexes one field for BM25 and nothing else: no stored text, no positions, no column.
func bleveMapping() mapping.IndexMapping {
	body := bleve.NewTextFieldMapping()
	body.Store, body.DocValues, body.IncludeInAll, body.IncludeTermVectors = false, false, false, false
	document := bleve.NewDocumentStaticMapping()
	document.AddFieldMappingsAt("body", body)
	m := bleve.NewIndexMapping()
	m.DefaultMapping, m.ScoringModel = document, "bm25"
	return m
}

// build answers the milliseconds it took.
func (b *bleves) build(documents []string, batch int) (float64, error) {
	b.close()
	return millis(func() (err error) {
		if b.index, err = bleve.NewUsing("", bleveMapping(), scorch.Name, scorch.Name, nil); err != nil {
			return err
		}
		pending := b.index.NewBatch()
		for i, body := range documents {
			if err := pending.Index(strconv.Itoa(i+1), map[string]any{"body": body}); err != nil {
				return err
			}
			if pending.Size() < batch && i < len(documents)-1 {
				continue
			}
			if err := b.index.Batch(pending); err != nil {
				return err
			}
			pending.Reset()
		}
		return nil
	})
}

func (b *bleves) match(s searches) func() (float64, error) {
	return func() (float64, error) {
		return p50(len(s.queries), func(i int) error {
			match := bleve.NewMatchQuery(s.queries[i])
			match.SetField("body")
			_, err := b.index.Search(bleve.NewSearchRequestOptions(match, 10, 0, false))
			return err
		})
	}
}

func (b *bleves) close() {
	if b.index != nil {
		b.index.Close()
		b.index = nil
	}
}
