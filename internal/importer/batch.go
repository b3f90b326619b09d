package importer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fenec/client"
)

// item is a record ready to send: its document, or the reason it has none.
type item struct {
	record
	document []byte
}

// item converts a record into a document.
func (im *importer) item(r record) item {
	it := item{record: r}
	if r.bad != nil {
		return it
	}
	switch im.in.format {
	case CSV:
		it.document, it.bad = fromCells(im.names, r.cells, im.ids.key, im.types)
	default:
		it.document, it.bad = im.ids.object(r.json)
	}
	return it
}

// send imports the first items, as many as fit a batch, and returns how many are
// done. A line that the tenant refuses is marked bad and the rest is sent again, in
// smaller batches for a while because bad lines tend to be adjacent.
func (im *importer) send(ctx context.Context, items []item) (int, error) {
	n, size := 0, 0
	for n < len(items) && n < im.lines && (n == 0 || size < maxBytes) {
		size += len(items[n].document)
		n++
	}
	chunk := items[:n]
	if im.Strict {
		for i := range chunk {
			if chunk[i].bad == nil {
				continue
			}
			if i == 0 {
				return 0, &BadLine{chunk[0].line, chunk[0].bad}
			}
			chunk = chunk[:i]
			break
		}
	}
	at, err := im.try(ctx, chunk)
	if err != nil && at < 0 {
		return 0, err
	}
	if at >= 0 {
		chunk[at].bad = err
		im.lines = max(1, im.lines/2)
		return 0, nil // send again, without the bad line
	}
	im.lines = min(2*im.lines, im.Lines)
	for _, it := range chunk {
		if it.bad != nil {
			im.Bad(int(it.line), it.bad)
		}
	}
	im.Progress(chunk[len(chunk)-1].end)
	return len(chunk), nil
}

// try sends one batch: the move of the position, then a put for each document. If a
// line is at fault it returns that item's index and the reason; any other error is
// returned with index -1.
func (im *importer) try(ctx context.Context, chunk []item) (int, error) {
	next := im.at
	last := chunk[len(chunk)-1]
	next.Offset, next.Line, next.Sum = last.end, last.line+last.lines-1, int64(last.sum)
	var sent []int
	for i, it := range chunk {
		if it.bad != nil {
			next.Bad++
			continue
		}
		next.Imported++
		sent = append(sent, i)
	}
	if len(sent) == 0 { // nothing to write: the next batch with a document moves the position
		im.at.Bad = next.Bad
		return -1, nil
	}
	var batch client.Batch
	im.addMove(&batch, next)
	put := "put " + im.Collection + " $1"
	for _, i := range sent {
		batch.Add(put, jsontext.Value(chunk[i].document))
	}
	err := im.apply(ctx, &batch)
	var refused *client.Error
	switch {
	case err == nil:
		im.at = next
		return -1, nil
	case context.Cause(ctx) != nil || !errors.As(err, &refused):
		return -1, fmt.Errorf("stopped after line %d: %w", im.at.Line, err)
	case refused.At == 0 && refused.Status == http.StatusPreconditionFailed:
		return -1, im.elsewhere(ctx, next)
	case refused.At > 0 && refused.At <= len(sent) && lineAtFault(refused.Status):
		return sent[refused.At-1], errors.New(strings.TrimSuffix(refused.Message, im.place()))
	}
	return -1, fmt.Errorf("stopped after line %d: %s responded with %d: %w", im.at.Line, im.Target, refused.Status, err)
}

// place returns the end of an error message that gives a position in the put
// statement. It is cut off, because that position does not exist in the file.
func (im *importer) place() string {
	return fmt.Sprintf(" line 1 column %d", utf8.RuneCountInString("put "+im.Collection+" $"))
}

// lineAtFault reports whether a status refuses one document, as opposed to every
// document.
func lineAtFault(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusNotImplemented:
		return true
	}
	return false
}

// elsewhere finds out why a batch did not find the position where it expected it.
// The usual reason is that the batch was applied and its response was lost.
func (im *importer) elsewhere(ctx context.Context, next position) error {
	at, found, err := im.position(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("stopped after line %d: %w", im.at.Line, err)
	case found && at == next:
		im.at = next
		return nil
	case found && at.Offset < im.at.Offset:
		return fmt.Errorf("stopped: the position in %s is back at line %d, after %d lines were acknowledged (its node lost what was not synced); run the same import again to continue from there", im.Target, at.Line, im.at.Line)
	case found:
		return fmt.Errorf("stopped at line %d: another import moved the same position to line %d", im.at.Line, at.Line)
	}
	return fmt.Errorf("stopped after line %d: %s has no position for this import any more", im.at.Line, im.Target)
}

// addMove adds the statement that moves the position from where it is to next.
func (im *importer) addMove(b *client.Batch, next position) {
	b.Add("set "+positions+" {offset: $2, line: $3, sum: $4, imported: $5, bad: $6} where import = $1 and offset = $7 require 1",
		im.state.Import, next.Offset, next.Line, next.Sum, next.Imported, next.Bad, im.at.Offset)
}
