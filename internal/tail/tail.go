// Package tail follows a tenant's changes over HTTP and prints them as they land. It implements `fenec tail` except for
// its flags.
//
// Run works on its caller's goroutine and starts none.
package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"fenec/client"
)

// Wait is how long one request waits for a change. A router adds it to the timeout of the node.
const Wait = 25 * time.Second

// Options set what is followed and how it is printed.
type Options struct {
	Client *client.Client
	Out    io.Writer
	// Since is the change to start after, if From is set. Otherwise tail starts after the last change now, or at the
	// consumer's cursor.
	Since uint64
	From  bool
	// Consumer is the name of a cursor that the tenant stores. It is created if it does not exist, and moves after the
	// changes before it have been printed.
	Consumer string
	// Once ends after the last change instead of waiting for more.
	Once bool
	// Text prints readable lines instead of the JSON lines.
	Text bool
}

// Run prints changes until ctx ends, which is not an error, or with Once until the last change. It returns the last
// change it has printed: a run that starts after it misses no change and repeats none. It is valid if known is true.
func Run(ctx context.Context, o Options) (next uint64, known bool, err error) {
	t := tailer{Options: o, ctx: ctx}
	err = t.begin()
	for err == nil && !t.done {
		err = t.page()
	}
	if err != nil && ctx.Err() != nil {
		err = nil
	}
	return t.next.Seq, t.known, err
}

type tailer struct {
	Options
	ctx   context.Context
	next  client.Position
	known bool
	done  bool
	text  renderer
}

// begin finds the cursor.
func (t *tailer) begin() (err error) {
	switch {
	case t.Consumer != "" && t.From:
		return t.consumer().Commit(t.ctx, client.Position{Seq: t.Since})
	case t.Consumer != "":
		_, err = t.consumer().Create(t.ctx)
		return err
	case t.From:
		t.next, t.known = client.Position{Seq: t.Since}, true
		return nil
	}
	t.next, err = t.Client.End(t.ctx)
	t.known = err == nil
	return err
}

func (t *tailer) consumer() *client.Consumer { return t.Client.Consumer(t.Consumer) }

// page prints the next changes and moves the cursor after them.
func (t *tailer) page() error {
	page, err := t.read()
	if errors.Is(err, client.ErrGone) && t.Consumer != "" {
		return fmt.Errorf("consumer %s is too far behind: %w", t.Consumer, err)
	}
	if err != nil {
		return err
	}
	if err := t.print(page.Lines); err != nil {
		return fmt.Errorf("write the changes: %w", err)
	}
	moved := len(page.Lines) > 0
	t.done = t.Once && !moved
	t.next, t.known = page.Next, true
	if moved && t.Consumer != "" {
		return t.consumer().Commit(t.ctx, page.Next)
	}
	return nil
}

// read reads the next changes: after the cursor if it is known, else after that of the consumer.
func (t *tailer) read() (client.Page, error) {
	o := client.ChangeOptions{Raw: true, Wait: Wait}
	if t.Once {
		o.Wait = 0
	}
	if !t.known {
		return t.consumer().Next(t.ctx, o)
	}
	return t.Client.Page(t.ctx, t.next, o)
}

func (t *tailer) print(lines []byte) error {
	if t.Text {
		var err error
		if lines, err = t.text.render(lines); err != nil {
			return err
		}
	}
	_, err := t.Out.Write(lines)
	return err
}
