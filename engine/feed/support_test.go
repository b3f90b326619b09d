package feed

import (
	"context"
	"fmt"
	"testing"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/internal/vfs/crashfs"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = "/t.fenec"

// followed is a database and its feed.
type followed struct {
	*engine.DB
	*Feed
	tb fataler
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fresh returns a new database with a feed, closed at the end of the test.
func fresh(tb testing.TB, keep int64, o engine.Options) *followed {
	tb.Helper()
	return open(tb, engine.Create, keep, o)
}

func reopen(tb testing.TB, keep int64, o engine.Options) *followed {
	tb.Helper()
	return open(tb, engine.Open, keep, o)
}

func open(tb testing.TB, how func(string, engine.Options) (*engine.DB, error), keep int64, o engine.Options) *followed {
	tb.Helper()
	if o.FS == nil {
		o.FS = crashfs.New(1)
	}
	f := follow(tb, how, keep, o)
	tb.Cleanup(func() { f.Close() })
	return f
}

func follow(tb fataler, how func(string, engine.Options) (*engine.DB, error), keep int64, o engine.Options) *followed {
	tb.Helper()
	f := New(keep)
	o.Feed = f
	db, err := how(file, o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return &followed{db, f, tb}
}

func (f *followed) exec(text string, params ...doc.Value) engine.Result {
	f.tb.Helper()
	res, err := f.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text, Params: params}, nil)
	if err != nil {
		f.tb.Fatalf("%s: %v", text, err)
	}
	return res
}

func (f *followed) batch(texts ...string) {
	f.tb.Helper()
	statements := make([]engine.Statement, len(texts))
	for i, text := range texts {
		statements[i].Text = text
	}
	if _, _, err := f.Batch(context.Background(), engine.Everything(), statements); err != nil {
		f.tb.Fatalf("%q: %v", texts, err)
	}
}

// lines returns everything in reach after a cursor, a line for each change, read in pages of that many bytes. It fails
// if there is a gap.
func (f *followed) lines(since uint64, r Reach, budget int) []string {
	f.tb.Helper()
	lines, err := f.tryLines(since, r, budget)
	if err != nil {
		f.tb.Fatalf("reading behind change %d: %v", since, err)
	}
	return lines
}

func (f *followed) tryLines(since uint64, r Reach, budget int) (lines []string, err error) {
	names := f.Names()
	first := true
	for {
		blocks, err := f.Read(engine.Everything(), nil, since, r, budget)
		if err != nil || len(blocks) == 0 {
			return lines, err
		}
		for _, b := range blocks {
			if b.Before != since && !(first && b.Before < since) || b.After <= since {
				f.tb.Fatalf("a block of the changes %d to %d comes behind change %d", b.Before+1, b.After, since)
			}
			seq := b.Before
			err := b.Record.Changes(func(c *engine.Change) error {
				if seq++; seq > since {
					lines = append(lines, f.line(names, c, seq))
				}
				return nil
			})
			if err != nil || seq != b.After {
				f.tb.Fatalf("a block ends at change %d and says %d (%v)", seq, b.After, err)
			}
			since, first = b.After, false
		}
	}
}

func (f *followed) line(names *Names, c *engine.Change, seq uint64) string {
	s := names.Schema(c, seq)
	if s == nil {
		f.tb.Fatalf("the collection of change %d has no name", seq)
	}
	line := fmt.Sprintf("%d %d %s", seq, c.Op, s.Name)
	switch c.Op {
	case engine.Put:
		line += fmt.Sprintf(" %d", c.ID)
		for _, field := range s.Fields {
			line += " " + field.Name + "=" + string(doc.AppendJSON(nil, c.Doc.Field(field.Slot)))
		}
	case engine.Deleted:
		line += fmt.Sprintf(" %d", c.ID)
	case engine.Created, engine.Altered:
		line += fmt.Sprint(len(s.Fields))
	}
	return line
}
