package replication

import (
	"io"

	"fenec/engine"
	"fenec/engine/feed"
)

// WriteLines writes the changes of a feed after a change, one line each as change data capture sends them, and returns how many there
// are. The server's own collections are left out.
func WriteLines(w io.Writer, changes *feed.Feed, since uint64) (lines uint64, err error) {
	names := changes.Names()
	var blocks []feed.Block
	var text []byte
	for {
		if blocks, err = changes.Read(engine.Everything(), blocks[:0], since, feed.Landed, readBudget); err != nil || len(blocks) == 0 {
			return lines, err
		}
		text = text[:0]
		for _, b := range blocks {
			seq := b.Before
			err := b.Record.Changes(func(one *engine.Change) error {
				seq++
				schema := names.Schema(one, seq)
				if seq > since && schema != nil && !engine.IsServers(schema.Name) {
					text = feed.AppendLine(text, one, schema, seq, b.Record.At())
					lines++
				}
				return nil
			})
			if err != nil {
				return lines, err
			}
		}
		since = blocks[len(blocks)-1].After
		if _, err := w.Write(text); err != nil {
			return lines, err
		}
	}
}
