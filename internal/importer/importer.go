// Package importer loads lines of JSON or CSV into a collection of a tenant,
// over HTTP, each line once.
//
// Lines are sent in batches. A batch is one block, so it is applied as a whole or
// not at all. The first statement of each batch moves the import's position, a
// row of the collection fenec_imports of the same tenant, from the start of the
// batch to its end, and requires that it was at the start. So the position always
// agrees with the documents, even if a process is killed. A batch whose response
// was lost is sent again, and is refused if it had been applied. An import that
// was interrupted reads its position from the tenant. The state file next to the
// input only identifies the import. When the import is done the row is deleted,
// and the collection is dropped with its last row.
//
// Everything runs on the caller's goroutine.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"fenec/client"
)

// Bounds of a batch.
const (
	MaxLines = 10_000  // maximum documents per batch
	maxBytes = 4 << 20 // bytes of documents per batch
	// The types of a collection are inferred from the first sampleRecords records,
	// or fewer if they exceed sampleBytes together.
	sampleRecords = 1_000
	sampleBytes   = 64 << 20
)

// Options set what is imported, and where to.
type Options struct {
	Client     *client.Client // of the tenant
	Target     string         // the tenant's URL, for the state file
	Collection string
	Key        string // the field whose value becomes the id; empty means id
	IDAs       string // the new name of the input's field id; empty keeps the name

	Input  io.Reader
	Name   string // name of the input in messages
	Format Format // Guess decides by the name and the first byte
	State  string // path of the state file; empty for none

	Create bool // create the collection from the data if it does not exist
	Strict bool // stop at the first bad line
	Lines  int  // documents per batch, 1 to MaxLines

	// Bad is called for each skipped line, in order.
	Bad func(line int, reason error)
	// Progress is called with the number of input bytes that are done.
	Progress func(offset int64)
}

// Summary is the result of an import, including the runs it resumed.
type Summary struct {
	Imported int64
	Bad      int64
	Resumed  int64  // the line this run continued after; 0 if it started from the beginning
	Created  string // the statement that created the collection, empty if it existed
	Already  bool   // an earlier run had imported every line
}

// BadLine is the error of a strict import at its first bad line.
type BadLine struct {
	Line   int64
	Reason error
}

func (e *BadLine) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// importer is one run.
type importer struct {
	Options
	writer  *client.Client // repeats writes: each that the importer sends does no harm if it runs twice
	in      *input
	ids     identity
	names   []string // CSV: the field name of each column in the collection
	state   *state
	at      position
	types   map[string]string // field name -> type in the collection
	lines   int               // documents in the next batch: fewer after a bad line
	summary Summary
}

// Run imports until the end of the input, an error, or the end of the context. What
// was imported by then stays. With a state file, the same call continues after it.
func Run(ctx context.Context, o Options) (Summary, error) {
	im := &importer{Options: o, writer: o.Client.WithRepeats(), ids: identity{o.Key, o.IDAs}, lines: o.Lines}
	err := im.run(ctx)
	im.summary.Imported, im.summary.Bad = im.at.Imported, im.at.Bad
	return im.summary, err
}

func (im *importer) run(ctx context.Context) error {
	if err := im.open(); err != nil {
		return err
	}
	if err := im.greet(ctx); err != nil {
		return err
	}
	if im.state.Done {
		im.summary.Already = true
		return im.finish(ctx)
	}
	if im.state.Begun {
		if err := im.resume(ctx); err != nil {
			return err
		}
	}
	sample, err := im.prepare(ctx)
	if err != nil {
		return err
	}
	if !im.state.Begun {
		if err := im.begin(ctx); err != nil {
			return err
		}
	}
	err = im.load(ctx, sample)
	var bad *BadLine
	switch {
	case errors.As(err, &bad) && im.at.Imported == 0:
		_, failed := im.undo(ctx) // there is nothing to resume
		return errors.Join(err, failed)
	case err != nil:
		return err
	}
	if im.at.Imported == 0 {
		return im.nothing(ctx)
	}
	im.state.Done = true
	if err := im.state.save(im.State); err != nil {
		return err
	}
	return im.finish(ctx)
}

// open reads the head of the input and loads the state of an earlier run.
func (im *importer) open() error {
	in, err := openInput(im.Input, im.Name, im.Format)
	if err != nil {
		return err
	}
	im.in = in
	if in.format == CSV {
		if im.names, err = im.ids.header(in.header); err != nil {
			return fmt.Errorf("%s %w", im.Name, err)
		}
	}
	im.state, err = loadState(im.State, im.Target, im.Collection)
	return err
}

// greet requests the root of the tenant once, so that a wrong URL or token fails at
// once and not after the patience for retries.
func (im *importer) greet(ctx context.Context) error {
	_, err := im.Client.WithPatience(-1).Do(ctx, http.MethodGet, "/", nil)
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrUnauthorized):
		return fmt.Errorf("%s requires a token: %w", im.Target, err)
	case !errors.As(err, &refused):
		return fmt.Errorf("%s does not respond: %s", im.Target, client.Reason(err))
	case refused.Status == http.StatusServiceUnavailable:
		return nil
	}
	return fmt.Errorf("%s: %w", im.Target, err)
}

// prepare reads the types of the collection, or creates it if it does not exist and
// Create is set. It refuses data without the key or with invalid ids. It returns
// the records it has read for this.
func (im *importer) prepare(ctx context.Context) ([]record, error) {
	types, err := im.describe(ctx)
	switch {
	case err == nil:
		im.types = types
		if im.state.Begun || im.ids.key == "" || im.in.format == CSV {
			return nil, nil
		}
		sample, err := im.sample(ctx, im.Lines, maxBytes)
		if err != nil {
			return nil, err
		}
		return sample, im.checkKey(sample)
	case !errors.Is(err, client.ErrNotFound):
		return nil, err
	case !im.Create:
		return nil, fmt.Errorf("no collection %s in %s; use --create to create it from the data", im.Collection, im.Target)
	}
	return im.create(ctx)
}

// create creates the collection for the first records and returns them.
func (im *importer) create(ctx context.Context) ([]record, error) {
	sample, err := im.sample(ctx, sampleRecords, sampleBytes)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(im.checkKey(sample), im.checkIDs(sample)); err != nil {
		return nil, err
	}
	statement, err := infer(im.Collection, im.ids, im.in.header, sample)
	if err != nil {
		return nil, err
	}
	// Saved first: an import that is killed here and resumed must know that it
	// created the collection.
	im.state.Created = true
	if err := im.state.save(im.State); err != nil {
		return nil, err
	}
	if err := im.exec(ctx, statement); err != nil {
		err = fmt.Errorf("cannot create the collection %s: %w", im.Collection, err)
		var refused *client.Error
		if errors.As(err, &refused) {
			err = errors.Join(err, im.state.remove(im.State))
		}
		return nil, err
	}
	im.summary.Created = statement
	im.types, err = im.describe(ctx)
	return sample, err
}

// sample reads the first records. It fails if the context ends.
func (im *importer) sample(ctx context.Context, records int, bytes int64) ([]record, error) {
	sample, err := im.in.sample(records, bytes)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return sample, err
}

// load sends every record, those of the sample first.
func (im *importer) load(ctx context.Context, sample []record) error {
	var pending []item
	var size int
	for {
		r, err := im.next(&sample)
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("read %s: %w", im.Name, err)
		}
		ended := err != nil
		if !ended {
			it := im.item(r)
			pending = append(pending, it)
			size += len(it.document)
		}
		for len(pending) > 0 && (ended || len(pending) >= im.lines || size >= maxBytes) {
			sent, err := im.send(ctx, pending)
			if err != nil {
				return err
			}
			for _, it := range pending[:sent] {
				size -= len(it.document)
			}
			pending = pending[sent:]
		}
		if ended {
			return nil
		}
	}
}

func (im *importer) next(sample *[]record) (record, error) {
	if len(*sample) > 0 {
		r := (*sample)[0]
		*sample = (*sample)[1:]
		return r, nil
	}
	return im.in.next()
}
