package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Change is one change of a tenant. It is on disk.
type Change struct {
	Position   Position  // of this change; reading from it misses no change and repeats none
	At         time.Time // time of the write, in milliseconds
	Collection string
	Op         string         // put, del, create, alter, drop
	ID         int64          // the document's, for put and del
	Doc        jsontext.Value // the whole document, for put; see Decode
}

// ChangeOptions set how changes are read.
type ChangeOptions struct {
	// Limit is the maximum number of changes per page, 1 to 10 000; zero means 1 000.
	Limit int
	// Wait is how long a page waits if there is no change yet, at most 30 s. With a Wait, Changes continues until its
	// context ends; without one it ends after the last change.
	Wait time.Duration
	// Raw makes a page its Lines alone, for a caller that only forwards them. Changes ignores it.
	Raw bool
}

// Page is a range of a tenant's changes, in order and without gaps.
type Page struct {
	Changes []Change
	Lines   []byte   // the changes as the server sent them, one line of JSON each
	Next    Position // start of the next page; the server's own changes advance it too
}

// End returns the position of the last change on disk.
func (c *Client) End(ctx context.Context) (Position, error) {
	page, err := c.page(ctx, url.Values{}, Position{}, ChangeOptions{Limit: 1})
	return page.Next, err
}

// Page reads the changes after since; the zero Position reads from the first change. It returns ErrGone if these
// changes are no longer retained, in which case the caller has to read the whole tenant again. It returns ErrCursor if
// since is of another history or past the last change.
func (c *Client) Page(ctx context.Context, since Position, o ChangeOptions) (Page, error) {
	return c.page(ctx, url.Values{"since": {strconv.FormatUint(since.Seq, 10)}}, since, o)
}

// Changes reads one page after another. To resume after leaving the loop or ending the process, pass the Position of
// the last processed change. The last value of the sequence may be an error.
//
//	for change, err := range c.Changes(ctx, since, client.ChangeOptions{Wait: 30 * time.Second}) {
//		if err != nil {
//			return err
//		}
//		index(change)
//		since = change.Position
//	}
func (c *Client) Changes(ctx context.Context, since Position, o ChangeOptions) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		o.Raw = false
		for {
			page, err := c.Page(ctx, since, o)
			if err != nil {
				yield(Change{}, err)
				return
			}
			for _, change := range page.Changes {
				if !yield(change, nil) {
					return
				}
			}
			if len(page.Changes) == 0 && o.Wait == 0 {
				return
			}
			since = page.Next
		}
	}
}

func (c *Client) page(ctx context.Context, query url.Values, since Position, o ChangeOptions) (Page, error) {
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Wait > 0 {
		query.Set("wait", strconv.FormatInt(max(1, o.Wait.Milliseconds()), 10))
	}
	r := request{
		method: http.MethodGet, path: "/_changes?" + query.Encode(), reads: true,
		wait: o.Wait, cursor: since, paged: true,
	}
	a, err := c.send(ctx, r)
	if err != nil {
		return Page{}, cursorError(err)
	}
	next, err := strconv.ParseUint(a.header.Get("Fenec-Next"), 10, 63)
	if err != nil {
		return Page{}, errors.New("response without a Fenec-Next header: check that the URL is that of a tenant")
	}
	history := a.header.Get("Fenec-History")
	page := Page{Lines: a.body, Next: Position{next, history}}
	if !o.Raw {
		page.Changes, err = readChanges(a.body, history)
	}
	return page, err
}

// cursorError makes a conflict an ErrCursor.
func cursorError(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict {
		e.kind = ErrCursor
	}
	return err
}

// readChanges parses lines of changes. Each line ends with a line feed.
func readChanges(lines []byte, history string) ([]Change, error) {
	changes := make([]Change, 0, bytes.Count(lines, []byte("\n")))
	for len(lines) > 0 {
		line, rest, whole := bytes.Cut(lines, []byte("\n"))
		if !whole {
			return nil, errors.New("changes: the last line is truncated")
		}
		var parsed struct {
			Seq        uint64         `json:"seq"`
			At         int64          `json:"at"`
			Collection string         `json:"collection"`
			Op         string         `json:"op"`
			ID         int64          `json:"id"`
			Doc        jsontext.Value `json:"doc"`
		}
		if err := json.Unmarshal(line, &parsed); err != nil {
			return nil, fmt.Errorf("invalid change: %w", err)
		}
		changes = append(changes, Change{
			Position: Position{parsed.Seq, history}, At: time.UnixMilli(parsed.At),
			Collection: parsed.Collection, Op: parsed.Op, ID: parsed.ID, Doc: parsed.Doc,
		})
		lines = rest
	}
	return changes, nil
}
