package importer

import (
	"context"
	"errors"
	"fmt"

	"fenec/client"
)

// positions is the collection of the tenant with the positions of its imports. It
// exists only while an import is running or can be resumed.
const positions = "fenec_imports"

// position is the progress of an import.
type position struct {
	Offset   int64 `json:"offset"` // of the first byte not imported
	Line     int64 `json:"line"`   // the last line that is done
	Sum      int64 `json:"sum"`    // hash of the bytes before Offset
	Imported int64 `json:"imported"`
	Bad      int64 `json:"bad"`
}

// begin creates the import's position.
func (im *importer) begin(ctx context.Context) error {
	if err := im.state.save(im.State); err != nil {
		return err
	}
	var begin client.Batch
	begin.Add("create collection if not exists " + positions +
		" (import text required @unique, offset int, line int, sum int, imported int, bad int)")
	begin.Add("insert "+positions+" {import: $1, offset: 0, line: 0, sum: 0, imported: 0, bad: 0}", im.state.Import)
	err := im.apply(ctx, &begin)
	if err != nil && !errors.Is(err, client.ErrConflict) { // a conflict: an earlier try created it, and its response was lost
		return fmt.Errorf("cannot start: %w", err)
	}
	im.state.Begun = true
	return im.state.save(im.State)
}

// resume continues where an earlier run of this import stopped.
func (im *importer) resume(ctx context.Context) error {
	at, found, err := im.position(ctx)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%s has no position for the import in state file %s; remove the file to start over", im.Target, im.State)
	case at.Offset == 0:
		return nil
	}
	im.at, im.summary.Resumed = at, at.Line
	return im.in.skip(at)
}

// position reads the import's position.
func (im *importer) position(ctx context.Context) (at position, found bool, err error) {
	rows, err := client.Query[position](ctx, im.Client, "get "+positions+" select offset, line, sum, imported, bad where import = $1", im.state.Import)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return at, false, ended(ctx, err)
	}
	if len(rows) == 0 {
		return at, false, nil
	}
	return rows[0], true, nil
}

// finish deletes the position, drops its collection if it was the last one, and
// removes the state file. It may be called again.
func (im *importer) finish(ctx context.Context) error {
	mine := "del " + positions + " where import = $1"
	// The collection is dropped only if no other import has a row. An import that
	// starts meanwhile creates the collection again in the block with its row.
	var all client.Batch
	all.Add(mine, im.state.Import)
	all.Add("del " + positions + " require 0")
	all.Add("drop collection " + positions)
	err := im.apply(ctx, &all)
	if errors.Is(err, client.ErrRequire) {
		err = im.exec(ctx, mine, im.state.Import)
	}
	if err != nil && !errors.Is(err, client.ErrNotFound) { // not found: gone already
		return fmt.Errorf("every line is imported, but the position was not deleted: %w", err)
	}
	return im.state.remove(im.State)
}

// dropEmpty drops the collection if it has no documents, and reports whether it
// did.
func (im *importer) dropEmpty(ctx context.Context) (bool, error) {
	var drop client.Batch
	drop.Add("del " + im.Collection + " require 0")
	drop.Add("drop collection " + im.Collection)
	err := im.apply(ctx, &drop)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, client.ErrRequire) || errors.Is(err, client.ErrNotFound):
		return false, nil // it is in use, or gone already
	}
	return false, fmt.Errorf("nothing was imported, and the collection %s created for it was not dropped: %w", im.Collection, err)
}

// describe returns the collection's fields and their types.
func (im *importer) describe(ctx context.Context) (map[string]string, error) {
	rows, err := client.Query[struct {
		Field string `json:"field"`
		Type  string `json:"type"`
	}](ctx, im.Client, "describe "+im.Collection)
	if err != nil {
		return nil, ended(ctx, err)
	}
	types := make(map[string]string, len(rows))
	for _, r := range rows {
		types[r.Field] = r.Type
	}
	return types, nil
}

// exec runs one statement that may be repeated.
func (im *importer) exec(ctx context.Context, statement string, params ...any) error {
	_, err := im.writer.Exec(ctx, statement, params...)
	return ended(ctx, err)
}

// apply runs a batch that may be repeated.
func (im *importer) apply(ctx context.Context, b *client.Batch) error {
	_, err := im.writer.Run(ctx, b)
	return ended(ctx, err)
}

// ended returns the reason why the context ended in place of the error that this caused, or err if it has not ended.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
