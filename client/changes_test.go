package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"fenec/client"

	"github.com/google/go-cmp/cmp"
)

// landed returns the operation, collection and title of a change, and checks its time and id.
func landed(t *testing.T, c client.Change) string {
	t.Helper()
	if time.Since(c.At).Abs() > time.Hour {
		t.Errorf("got the time %[2]s of change %[1]s, expected about now", c.Position, c.At)
	}
	text := c.Op + " " + c.Collection
	if c.Doc != nil {
		b, err := client.Decode[book](c.Doc)
		if err != nil || b.ID != c.ID {
			t.Errorf("got the document %s of id %d, %v, expected the same id", c.Doc, c.ID, err)
		}
		text += " " + b.Title
	}
	return text
}

func TestChangesAreReturnedInOrder(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	exec(t, c, "put books {title: 'Emma'}")
	exec(t, c.WithKey("k"), "put books {title: 'Momo'}")
	exec(t, c, "del books where title = 'Emma'")
	want := []string{"create books", "put books Emma", "put books Momo", "del books"}
	for _, limit := range []int{0, 1, 3} {
		var got []string
		var since client.Position
		for change, err := range c.Changes(t.Context(), since, client.ChangeOptions{Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, landed(t, change))
			since = change.Position
			if len(got) == 2 {
				break
			}
		}
		for change, err := range c.Changes(t.Context(), since, client.ChangeOptions{Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, landed(t, change))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d: %s", limit, diff)
		}
	}
}

func TestRawPagesReturnTheLinesOfTheResponse(t *testing.T) {
	t.Parallel()
	const lines = `{"seq": 7, "op": "put"}` + "\n" + `{"seq": 8, "op": "del"}` + "\n"
	server, _ := scripted(t, says(200, lines, "Fenec-Next", "8"), says(200, lines, "Fenec-Next", "8"), says(200, "", "Fenec-Next", "8"))
	c := newClient(t, server, client.Options{})
	page, err := c.Page(t.Context(), client.Position{}, client.ChangeOptions{Raw: true})
	if string(page.Lines) != lines || page.Changes != nil || page.Next.Seq != 8 || err != nil {
		t.Errorf("got the raw page %q, %v, next %s, %v, expected the lines and next 8", page.Lines, page.Changes, page.Next, err)
	}
	n := 0
	for _, err := range c.Changes(t.Context(), client.Position{}, client.ChangeOptions{Raw: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("got %d raw changes, expected 2", n)
	}
}

func TestChangesWaitForNewChanges(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	end, err := c.End(t.Context())
	if err != nil || end.Seq != 1 || end.History != c.Position().History {
		t.Fatalf("got the end %s, %v, expected change 1 of the tenant's history", end, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exec(t, c, "put books {title: 'a'}")
	var got []string
	for change, err := range c.Changes(ctx, end, client.ChangeOptions{Wait: 10 * time.Second}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		got = append(got, landed(t, change))
		if len(got) == 5 {
			cancel()
			continue
		}
		go c.Exec(t.Context(), "put books {title: $1}", string(rune('a'+len(got))))
	}
	if want := []string{"put books a", "put books b", "put books c", "put books d", "put books e"}; !slices.Equal(got, want) {
		t.Errorf("got the changes %q, expected %q", got, want)
	}
}

func TestInvalidCursorsAreRefused(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	for name, since := range map[string]client.Position{
		"past the last change": {Seq: 99},
		"of another tenant":    {Seq: 1, History: "1-0123456789abcdef0123456789abcdef"},
	} {
		_, err := c.Page(t.Context(), since, client.ChangeOptions{})
		if !errors.Is(err, client.ErrCursor) || errors.Is(err, client.ErrConflict) {
			t.Errorf("a page of a cursor %s: got %v, expected only ErrCursor", name, err)
		}
		if err := c.Consumer("k").Commit(t.Context(), since); !errors.Is(err, client.ErrCursor) {
			t.Errorf("a commit of a cursor %s: got %v, expected ErrCursor", name, err)
		}
	}
	server, _ := scripted(t, says(410, `{"error":"no longer kept","since":4096}`, "Fenec-Seq", "5000", "Fenec-History", "1-aa"))
	pruned := newClient(t, server, client.Options{})
	for _, err := range pruned.Changes(t.Context(), client.Position{}, client.ChangeOptions{Wait: time.Second}) {
		var e *client.Error
		if !errors.Is(err, client.ErrGone) || !errors.As(err, &e) || e.First != 4096 || e.Position.Seq != 5000 {
			t.Errorf("got %#v for a cursor too old, expected ErrGone with the first change", err)
		}
	}
}

func TestInvalidResponsesOfChangesAreErrors(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]turn{
		"without a cursor": says(200, ""),
		"cut off":          says(200, `{"seq":1}`, "Fenec-Next", "1"),
		"no JSON":          says(200, "seq\n", "Fenec-Next", "1"),
	} {
		server, _ := scripted(t, answer)
		if page, err := newClient(t, server, client.Options{}).Page(t.Context(), client.Position{}, client.ChangeOptions{}); err == nil {
			t.Errorf("a response %s: got %+v, expected an error", name, page)
		}
	}
}

func TestAConsumerMovesOnlyByCommits(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	search := c.Consumer("search/")
	if since, err := search.Create(t.Context()); since != 1 || err != nil {
		t.Fatalf("got a consumer at %d, %v, expected 1", since, err)
	}
	for i := range 3 {
		exec(t, c, "put books {title: $1}", string(rune('a'+i)))
	}
	var got []string
	for range 3 {
		page, err := search.Next(t.Context(), client.ChangeOptions{Limit: 1, Wait: time.Second})
		if err != nil || len(page.Changes) != 1 {
			t.Fatalf("got %+v, %v, expected one change", page, err)
		}
		again, err := search.Next(t.Context(), client.ChangeOptions{Limit: 1})
		if diff := cmp.Diff(page.Changes, again.Changes); err != nil || diff != "" {
			t.Errorf("a second Next returned other changes: %v %s", err, diff)
		}
		got = append(got, landed(t, page.Changes[0]))
		if err := search.Commit(t.Context(), page.Next); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"put books a", "put books b", "put books c"}; !slices.Equal(got, want) {
		t.Errorf("got the changes %q, expected %q", got, want)
	}
	if err := search.Commit(t.Context(), client.Position{Seq: 2}); err != nil {
		t.Fatal(err)
	}
	all, err := c.Consumers(t.Context())
	if diff := cmp.Diff([]client.ConsumerState{{Name: "search/", Since: 2, Behind: 3}}, all); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := search.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := search.Next(t.Context(), client.ChangeOptions{}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v for a deleted consumer, expected ErrNotFound", err)
	}
}
