package importer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"fenec/internal/api"
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
	create, err := statement("create collection if not exists " + positions +
		" (import text required @unique, offset int, line int, sum int, imported int, bad int)")
	if err != nil {
		return err
	}
	row, err := statement("insert "+positions+" {import: $1, offset: 0, line: 0, sum: 0, imported: 0, bad: 0}", im.state.Import)
	if err != nil {
		return err
	}
	_, err = im.Client.Insist(ctx, http.MethodPost, "/batch", append(create, row...))
	var r *api.Refusal
	if errors.As(err, &r) && r.Status == http.StatusConflict {
		err = nil // an earlier try created it, and its response was lost
	}
	if err != nil {
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
	answer, err := im.query(ctx, "get "+positions+" select offset, line, sum, imported, bad where import = $1", im.state.Import)
	var r *api.Refusal
	if errors.As(err, &r) && r.Status == http.StatusNotFound {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	var rows []position
	if err := json.Unmarshal(answer, &rows); err != nil {
		return at, false, fmt.Errorf("invalid position of the import: %w", err)
	}
	if len(rows) == 0 {
		return at, false, nil
	}
	return rows[0], true, nil
}

// finish deletes the position, drops its collection if it was the last one, and
// removes the state file. It may be called again.
func (im *importer) finish(ctx context.Context) error {
	mine, err := statement("del "+positions+" where import = $1", im.state.Import)
	if err != nil {
		return err
	}
	// The collection is dropped only if no other import has a row. An import that
	// starts meanwhile creates the collection again in the block with its row.
	others, err := statement("del " + positions + " require 0")
	if err != nil {
		return err
	}
	drop, err := statement("drop collection " + positions)
	if err != nil {
		return err
	}
	_, err = im.Client.Insist(ctx, http.MethodPost, "/batch", append(append(mine, others...), drop...))
	var r *api.Refusal
	if errors.As(err, &r) && r.Status == http.StatusPreconditionFailed {
		_, err = im.query(ctx, "del "+positions+" where import = $1", im.state.Import)
	}
	if errors.As(err, &r) && r.Status == http.StatusNotFound {
		err = nil // gone already
	}
	if err != nil {
		return fmt.Errorf("every line is imported, but the position was not deleted: %w", err)
	}
	return im.state.remove(im.State)
}

// dropEmpty drops the collection if it has no documents, and reports whether it
// did.
func (im *importer) dropEmpty(ctx context.Context) (bool, error) {
	empty, err := statement("del " + im.Collection + " require 0")
	if err != nil {
		return false, err
	}
	drop, err := statement("drop collection " + im.Collection)
	if err != nil {
		return false, err
	}
	_, err = im.Client.Insist(ctx, http.MethodPost, "/batch", append(empty, drop...))
	var r *api.Refusal
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &r) && (r.Status == http.StatusPreconditionFailed || r.Status == http.StatusNotFound):
		return false, nil // it is in use, or gone already
	}
	return false, fmt.Errorf("nothing was imported, and the collection %s created for it was not dropped: %w", im.Collection, err)
}

// describe returns the collection's fields and their types.
func (im *importer) describe(ctx context.Context) (map[string]string, error) {
	answer, err := im.query(ctx, "describe "+im.Collection)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Field string `json:"field"`
		Type  string `json:"type"`
	}
	if err := json.Unmarshal(answer, &rows); err != nil {
		return nil, fmt.Errorf("invalid description of %s: %w", im.Collection, err)
	}
	types := make(map[string]string, len(rows))
	for _, r := range rows {
		types[r.Field] = r.Type
	}
	return types, nil
}

// query runs one statement.
func (im *importer) query(ctx context.Context, text string, params ...any) ([]byte, error) {
	body, err := statement(text, params...)
	if err != nil {
		return nil, err
	}
	return im.Client.Insist(ctx, http.MethodPost, "/query", body)
}

// statement returns a body of /query, which is also a line of /batch.
func statement(text string, params ...any) ([]byte, error) {
	body, err := json.Marshal(struct {
		Query  string `json:"query"`
		Params []any  `json:"params,omitempty"`
	}{text, params})
	return append(body, '\n'), err
}
