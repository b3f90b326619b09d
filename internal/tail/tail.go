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
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fenec/internal/api"
)

// Wait is how long one request waits for a change. A router adds it to the timeout of the node.
const Wait = 25 * time.Second

// Options set what is followed and how it is printed.
type Options struct {
	Client *api.Client
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
	return t.next, t.known, err
}

type tailer struct {
	Options
	ctx     context.Context
	next    uint64
	known   bool
	history string // of next
	done    bool
	text    renderer
}

// begin finds the cursor.
func (t *tailer) begin() error {
	if t.Consumer == "" {
		t.next, t.known = t.Since, t.From
		return nil
	}
	var body []byte
	if t.From {
		body = cursor(t.Since)
	}
	_, err := t.send("POST", t.consumerPath(), body)
	return err
}

func (t *tailer) consumerPath() string { return "/_changes/consumers/" + url.PathEscape(t.Consumer) }

func cursor(since uint64) []byte {
	return append(strconv.AppendUint([]byte(`{"since":`), since, 10), '}')
}

// page prints the next changes and moves the cursor after them.
func (t *tailer) page() error {
	query := url.Values{}
	switch {
	case t.known:
		query.Set("since", strconv.FormatUint(t.next, 10))
	case t.Consumer != "":
		query.Set("consumer", t.Consumer)
	}
	if !t.Once && (t.known || t.Consumer != "") { // otherwise this request only reads the cursor
		query.Set("wait", strconv.FormatInt(Wait.Milliseconds(), 10))
	}
	a, err := t.send("GET", "/_changes?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	next, err := strconv.ParseUint(a.Header.Get("Fenec-Next"), 10, 64)
	if err != nil {
		return errors.New("response without a Fenec-Next header: check that the URL is that of a tenant")
	}
	if err := t.print(a.Body); err != nil {
		return fmt.Errorf("write the changes: %w", err)
	}
	moved := len(a.Body) > 0
	t.done = t.Once && !moved
	t.next, t.known, t.history = next, true, a.Header.Get("Fenec-History")
	if moved && t.Consumer != "" {
		_, err = t.send("POST", t.consumerPath(), cursor(next))
	}
	return err
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

// send sends a request and retries it for the client's patience. With the history, the server refuses a cursor of
// another history.
func (t *tailer) send(method, path string, body []byte) (api.Answer, error) {
	r := api.Request{Method: method, Path: path, Body: body}
	if t.history != "" {
		r.Header = map[string]string{"Fenec-History": t.history}
	}
	a, err := t.Client.InsistSend(t.ctx, r)
	var refused *api.Refusal
	if errors.As(err, &refused) && refused.Status == http.StatusGone && t.Consumer != "" {
		return a, fmt.Errorf("consumer %s is too far behind: %w", t.Consumer, err)
	}
	return a, err
}
