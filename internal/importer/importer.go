// Package importer loads lines of JSON or CSV into a collection of a tenant,
// over HTTP, each line once.
//
// Lines go in batches, and a batch is one block: it lands whole or not at all.
// The first statement of each batch moves the import's position, a row of the
// collection fenec_imports of the same tenant, from where the batch begins to
// where it ends, and requires that it was there. So the position cannot be
// ahead of the documents or behind them, whoever is killed when; a batch whose
// answer was lost is sent again without a thought, and refused where it had
// landed; and an import that was interrupted asks the tenant where it stands.
// The state file beside the input keeps only which import this is. The row, and
// the collection with the last of them, go when the import is done.
//
// Everything runs on the caller's goroutine.
package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"fenec/internal/api"
)

// Bounds of a batch.
const (
	MaxLines = 10_000  // documents a batch, at most
	maxBytes = 4 << 20 // bytes of documents a batch
	// sampleRecords are looked at to infer the types of a collection, or fewer of
	// sampleBytes together.
	sampleRecords = 1_000
	sampleBytes   = 64 << 20
)

// Options say what is imported into what.
type Options struct {
	Client     *api.Client // of the tenant
	Target     string      // the tenant's URL, for the state file
	Collection string
	Key        string // the field whose value becomes the id; none if empty
	IDAs       string // the field that the input's id goes into; none if empty

	Input  io.Reader
	Name   string // what messages call the input
	Format Format // Guess looks at the name and the first byte
	State  string // the state file; none where empty

	Create bool // make the collection from the data's shape where it is absent
	Strict bool // stop at the first bad line
	Lines  int  // documents a batch, 1 to MaxLines

	// Bad is told of each line that was left out, in order.
	Bad func(line int, reason error)
	// Progress is told how many bytes of the input are done with.
	Progress func(offset int64)
}

// Summary is what an import did, runs before a resumption included.
type Summary struct {
	Imported int64
	Bad      int64
	Resumed  int64  // the line this run went on after; 0 where it began anew
	Created  string // the statement that made the collection, empty where it was there
	Already  bool   // an earlier run had finished: nothing was left to do
}

// BadLine is the error of a strict import that met one.
type BadLine struct {
	Line   int64
	Reason error
}

func (e *BadLine) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// importer is one run.
type importer struct {
	Options
	in      *input
	ids     identity
	names   []string // CSV: the names in the collection of the columns
	state   *state
	at      position
	types   map[string]string // field name -> type, as the collection has them
	lines   int               // documents the next batch takes: fewer after a bad line
	summary Summary
}

// Run imports until the end of the input, an error, or the context's end. What
// it had imported by then stays; the same call goes on after it where there is
// a state file.
func Run(ctx context.Context, o Options) (Summary, error) {
	im := &importer{Options: o, ids: identity{o.Key, o.IDAs}, lines: o.Lines}
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
		_, failed := im.undo(ctx) // there is nothing to go on with
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

// open reads the input's head and finds the state an earlier run left.
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

// greet asks the tenant for its root once, so that a wrong URL or token is said
// at once and not after the patience a retry has.
func (im *importer) greet(ctx context.Context) error {
	_, err := im.Client.Ask(ctx, http.MethodGet, "/", nil)
	var r *api.Refusal
	switch {
	case err == nil || errors.As(err, &r) && r.Status == http.StatusServiceUnavailable:
		return nil
	case errors.As(err, &r) && r.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s wants a token: %s", im.Target, r.Message)
	case errors.As(err, &r):
		return fmt.Errorf("%s: %s", im.Target, r.Message)
	default:
		return fmt.Errorf("%s does not answer: %s", im.Target, api.Reason(err))
	}
}

// prepare reads the collection's types, and creates the collection if it is
// absent and that is wanted. It refuses data that cannot be meant for it. It
// returns the records it read to do so.
func (im *importer) prepare(ctx context.Context) ([]record, error) {
	types, err := im.describe(ctx)
	var r *api.Refusal
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
	case !errors.As(err, &r) || r.Status != http.StatusNotFound:
		return nil, err
	case !im.Create:
		return nil, fmt.Errorf("there is no collection %s in %s; --create makes it from the data", im.Collection, im.Target)
	}
	return im.create(ctx)
}

// create makes the collection for the first records, and returns them.
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
	// Recorded first: an import that is killed here must know, when it goes on,
	// that the collection is its own.
	im.state.Created = true
	if err := im.state.save(im.State); err != nil {
		return nil, err
	}
	if _, err := im.query(ctx, statement); err != nil {
		err = fmt.Errorf("cannot create the collection %s: %w", im.Collection, err)
		var r *api.Refusal
		if errors.As(err, &r) {
			err = errors.Join(err, im.state.remove(im.State))
		}
		return nil, err
	}
	im.summary.Created = statement
	im.types, err = im.describe(ctx)
	return sample, err
}

// sample reads the first records, unless the context ends first.
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
			return fmt.Errorf("%s cannot be read: %w", im.Name, err)
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
