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

// Change is one change of a tenant, on disk.
type Change struct {
	Position   Position  // whoever goes on from it misses nothing and sees nothing twice
	At         time.Time // when it landed, in milliseconds
	Collection string
	Op         string         // put, del, create, alter, drop
	ID         int64          // with put and del, the document's
	Doc        jsontext.Value // with put, all of it; see Decode
}

// ChangeOptions say how changes are read.
type ChangeOptions struct {
	// Limit is the most changes of a page, 1 to 10 000; 1 000 where zero.
	Limit int
	// Wait is how long a page waits for a change where there is none, 30 s at most. With a Wait, Changes goes on until its
	// context is over; without one it ends behind the last change there is.
	Wait time.Duration
}

// Page is a part of a tenant's changes, in order and without a gap.
type Page struct {
	Changes []Change
	Next    Position // where the next page begins; the server's own changes move it too
}

// End is the last change on disk.
func (c *Client) End(ctx context.Context) (Position, error) {
	page, err := c.page(ctx, url.Values{}, Position{}, ChangeOptions{Limit: 1})
	return page.Next, err
}

// Page reads the changes behind since, the zero Position for all there ever were. ErrGone says that they are no longer
// kept: the tenant is to be read anew. ErrCursor says that since is of another tenant, or past what a crash left of it.
func (c *Client) Page(ctx context.Context, since Position, o ChangeOptions) (Page, error) {
	return c.page(ctx, url.Values{"since": {strconv.FormatUint(since.Seq, 10)}}, since, o)
}

// Changes reads one page after another. Where the loop over it was left, or the process ended, it goes on from the
// Position of the last change dealt with. An error comes last.
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
		var e *Error
		if errors.As(err, &e) && e.Status == http.StatusConflict {
			e.kind = ErrCursor
		}
		return Page{}, err
	}
	next, err := strconv.ParseUint(a.header.Get("Fenec-Next"), 10, 63)
	if err != nil {
		return Page{}, errors.New("the answer names no cursor to go on from: is the client's URL that of a tenant?")
	}
	history := a.header.Get("Fenec-History")
	changes, err := readChanges(a.body, history)
	return Page{changes, Position{next, history}}, err
}

// readChanges reads lines of changes. Each ends in a line feed.
func readChanges(lines []byte, history string) ([]Change, error) {
	changes := make([]Change, 0, bytes.Count(lines, []byte("\n")))
	for len(lines) > 0 {
		line, rest, whole := bytes.Cut(lines, []byte("\n"))
		if !whole {
			return nil, errors.New("the last change is cut off")
		}
		var told struct {
			Seq        uint64         `json:"seq"`
			At         int64          `json:"at"`
			Collection string         `json:"collection"`
			Op         string         `json:"op"`
			ID         int64          `json:"id"`
			Doc        jsontext.Value `json:"doc"`
		}
		if err := json.Unmarshal(line, &told); err != nil {
			return nil, fmt.Errorf("a change cannot be read: %w", err)
		}
		changes = append(changes, Change{
			Position: Position{told.Seq, history}, At: time.UnixMilli(told.At),
			Collection: told.Collection, Op: told.Op, ID: told.ID, Doc: told.Doc,
		})
		lines = rest
	}
	return changes, nil
}
