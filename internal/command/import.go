package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"fenec/client"
	"fenec/internal/importer"
)

const importHelp = `
Loads a file or stdin into a collection of a tenant over HTTP: one JSON object per
line, or CSV with the field names in the first row.

  fenec import notes.ndjson --url http://127.0.0.1:8090/t/acme --collection notes --create
  gzip -dc notes.csv.gz | fenec import --state notes.state --collection notes --url ...

Each line is imported once. The tenant stores the position of the import, moved in
the same block as the lines, so an import that was killed continues where it stopped
when the same command runs again. A small state file next to the input identifies
the import until it is done; for stdin, name one with --state.

A line that cannot be imported is reported on stderr by its number and skipped. If
every line is bad, the import fails.

--create infers a type for each field from the first 1000 lines: bool, int, float,
timestamp (ISO 8601 with a zone), text or a list of one of these if every value is
one, json if they differ, text if all are null. An empty CSV cell is no value.
`

// errInterrupted is the error of an import that was stopped by a signal.
var errInterrupted = errors.New("interrupted; run the same command again to continue")

func importCommand() *cli.Command {
	flags := []cli.Flag{
		value("url", "", "The tenant's `URL`, such as http://127.0.0.1:8090/t/acme. Required."),
		value("collection", "", "The `NAME` of the collection to import into. Required."),
		value("format", "", "`FORMAT` of the input: ndjson or csv. Default: decided by the file's name or first byte."),
		value("key", "", "The `FIELD` whose value, a positive int, becomes the id: a document with that id is replaced."),
		value("id-as", "", "The `FIELD` to import the input's field id into, instead of using it as the document's id."),
		boolean("create", "Create the collection from the data if it does not exist."),
		boolean("strict", "Stop at the first line that cannot be imported."),
		value("state", "", "The `FILE` that identifies the import until it is done, so that it can be resumed. Default: the input's name and .fenec-import; none for stdin."),
		value("batch", "500", "Maximum `NUMBER` of lines per block."),
		value("retry", "60", "Retry for this `TIME` while a node is unavailable or a move blocks writes."),
	}
	flags = append(flags, secret("token", "The data `TOKEN` of the tenant's node.")...)
	return &cli.Command{
		Name:        "import",
		Usage:       "Load JSON lines or CSV into a collection",
		ArgsUsage:   "[FILE]",
		Description: importHelp,
		Flags:       flags,
		Action:      runImport,
	}
}

func importOptions(c *cli.Context) (importer.Options, error) {
	s := settings{c: c}
	o := importer.Options{
		Collection: s.text("collection"),
		Key:        s.text("key"),
		IDAs:       s.text("id-as"),
		State:      s.text("state"),
		Create:     s.boolean("create"),
		Strict:     s.boolean("strict"),
		Lines:      s.count("batch", 1),
	}
	token, patience := s.secret("token"), s.duration("retry")
	format, ok := importer.ParseFormat(s.text("format"))
	switch {
	case s.err != nil:
		return o, s.err
	case s.text("url") == "":
		return o, usagef("fenec import: expected --url, the tenant's URL, such as http://127.0.0.1:8090/t/acme")
	case !importer.IsName(o.Collection):
		return o, usagef("fenec import: expected --collection, the name of a collection, got %q", o.Collection)
	case !ok:
		return o, usagef("--format: expected ndjson or csv, got %q", s.text("format"))
	case o.IDAs != "" && (!importer.IsName(o.IDAs) || o.IDAs == "id"):
		return o, usagef("--id-as: expected the name of a field other than id, got %q", o.IDAs)
	case o.IDAs != "" && o.Key == "id":
		return o, usagef("--key id uses the input's id as the document's id, and --id-as %s imports it into another field; give one of the two", o.IDAs)
	case o.Lines > importer.MaxLines:
		return o, usagef("--batch: expected at most %d lines, got %d", importer.MaxLines, o.Lines)
	case c.Args().Len() > 1:
		return o, usagef("fenec import takes one file, got a second one: %q", c.Args().Get(1))
	}
	if _, err := httpURL(s.text("url")); err != nil {
		return o, err
	}
	o.Format = format
	o.Target = strings.TrimRight(s.text("url"), "/")
	o.Client = newClient(o.Target, token, patience)
	return o, nil
}

// newClient returns a client of the tenant at a URL that retries for patience, but at least a second. One try takes as
// long at most.
func newClient(target, token string, patience time.Duration) *client.Client {
	patience = max(patience, time.Second)
	return client.New(target, client.Options{
		Token: token, Patience: patience, Timeout: min(patience, client.DefaultTimeout),
	})
}

func runImport(c *cli.Context) error {
	o, err := importOptions(c)
	if err != nil {
		return err
	}
	defer o.Client.Close()
	ignoreBrokenPipes() // the import continues without a reader of its output
	size := int64(-1)   // of stdin
	o.Input, o.Name = c.App.Reader, "stdin"
	if name := c.Args().First(); name != "" && name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return usagef("the input cannot be read: %s", plain(err))
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil || info.IsDir() {
			return usagef("the input is not a file: %s", name)
		}
		o.Input, o.Name = file, name
		if info.Mode().IsRegular() { // not a pipe, such as <(...) of a shell
			size = info.Size()
			if o.State == "" {
				o.State = name + ".fenec-import"
			}
		}
	}
	bar := newBar(c.App.ErrWriter, o.Name, size)
	o.Progress = bar.set
	o.Bad = func(line int, reason error) {
		bar.clear()
		fmt.Fprintf(c.App.ErrWriter, "line %d: %s\n", line, reason)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	release := onInterrupt(func() { stop(errInterrupted) })
	defer release()
	if size < 0 {
		o.Input = stoppable{ctx, o.Input}
	}
	started := time.Now()
	summary, err := importer.Run(ctx, o)
	bar.clear()
	return report(c.App.Writer, o, summary, time.Since(started), err)
}

// report prints the result, also after an error.
func report(w io.Writer, o importer.Options, s importer.Summary, took time.Duration, err error) error {
	if s.Created != "" {
		fmt.Fprintln(w, s.Created)
	}
	if s.Resumed > 0 {
		fmt.Fprintf(w, "resumed after line %d\n", s.Resumed)
	}
	switch {
	case s.Already && err == nil:
		fmt.Fprintf(w, "%s was already imported completely; removed what was left of that import\n", o.Name)
		return nil
	case s.Imported > 0 || err == nil:
		fmt.Fprintf(w, "imported %d documents into %s in %s", s.Imported, o.Collection, took.Round(time.Millisecond))
		if s.Bad > 0 {
			fmt.Fprintf(w, ", skipped %d bad lines", s.Bad)
		}
		fmt.Fprintln(w)
	}
	return err
}

// onInterrupt calls f at the first SIGINT or SIGTERM. A second one ends the process
// as by default. release stops catching signals.
func onInterrupt(f func()) (release func()) {
	caught := make(chan os.Signal, 1)
	done := make(chan struct{})
	ended := make(chan struct{})
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer close(ended)
		select {
		case <-caught:
			signal.Stop(caught)
			f()
		case <-done:
		}
	}()
	return func() {
		signal.Stop(caught)
		close(done)
		<-ended
	}
}

// stoppable is a pipe or a terminal, whose reads may block forever. Read returns
// when the context ends. The blocked read then continues until the process exits,
// which is soon.
type stoppable struct {
	ctx    context.Context
	source io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text := make([]byte, len(p)) // p belongs to the caller after Read has returned
		n, err := s.source.Read(text)
		done <- result{text[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.text), r.err
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

// bar is the progress bar of an import. It prints nothing if stderr is not a
// terminal.
type bar struct{ progress *progressbar.ProgressBar }

func newBar(w io.Writer, name string, size int64) bar {
	if !isTerminal(w) {
		return bar{}
	}
	return bar{progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(name),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(size > 0),
	)}
}

// Errors of the bar are ignored: they mean that the terminal is gone.
func (b bar) set(offset int64) {
	if b.progress != nil {
		_ = b.progress.Set64(offset)
	}
}

func (b bar) clear() {
	if b.progress != nil {
		_ = b.progress.Clear()
	}
}
