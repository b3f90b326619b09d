package client_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/client"

	"github.com/google/go-cmp/cmp"
)

// streams sends a part of a stream, then cuts it off or keeps it open until the client leaves.
func streams(cut bool, lines string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, lines)
		w.(http.Flusher).Flush()
		if !cut {
			<-r.Context().Done()
		}
	}
}

const (
	seedOfTwo   = "event: seed\nid: 3@1-aa\ndata: {\"seq\":3,\"rows\":[{\"id\":1,\"title\":\"Emma\"},{\"id\":2,\"title\":\"Momo\"}]}\n\n"
	deleteFirst = "event: change\nid: 5@1-aa\ndata: {\"seq\":5,\"puts\":[{\"id\":3,\"title\":\"Ulysses\"}],\"dels\":[1],\"schema\":true}\n\n"
	addLast     = "event: change\nid: 9@1-aa\ndata: {\"seq\":9,\"puts\":[{\"id\":4,\"title\":\"Maus\"}],\"dels\":[],\"schema\":false}\n\n"
)

// TestASubscriptionResumesAfterItsLastEvent ends the stream in each of the ways that are retried.
func TestASubscriptionResumesAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var cursors []string
	noted := func(next turn) turn {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			cursors = append(cursors, r.Header.Get("Last-Event-ID"))
			mu.Unlock()
			next(w, r)
		}
	}
	turns := []turn{
		streams(true, ":\n\n"+seedOfTwo+deleteFirst[:len(deleteFirst)-1]), // the last event has no end
		cuts,
		streams(true, deleteFirst+":\nid: 7@1-aa\n\n"), // a heartbeat moves the cursor
		says(503, "{}", "Retry-After", "1"),
		streams(true, "event: error\nid: 8@1-aa\ndata: {\"error\":\"the node is stopping\"}\n\n"),
		streams(false, strings.ReplaceAll(addLast, "\n", "\r\n")),
	}
	for i := range turns {
		turns[i] = noted(turns[i])
	}
	server, _ := scripted(t, turns...)
	c := newClient(t, server, client.Options{})
	view := map[int64]string{}
	var events []string
	for event, err := range client.Subscribe[book](t.Context(), c, "books", client.Shape{}) {
		if err != nil {
			t.Fatal(err)
		}
		titles := map[int64]book{}
		for id, title := range view {
			titles[id] = book{Title: title}
		}
		event.Apply(titles)
		clear(view)
		for id, b := range titles {
			view[id] = b.Title
		}
		events = append(events, event.Position.String())
		if event.Seed != (len(events) == 1) || event.Schema != (len(events) == 2) {
			t.Errorf("got event %d: %+v, expected a seed first and a schema change second", len(events), event)
		}
		if len(events) == 3 {
			break
		}
	}
	if want := []string{"3@1-aa", "5@1-aa", "9@1-aa"}; !slices.Equal(events, want) {
		t.Errorf("got the events %q, expected %q", events, want)
	}
	if want := map[int64]string{2: "Momo", 3: "Ulysses", 4: "Maus"}; !maps.Equal(view, want) {
		t.Errorf("got the view %v, expected %v", view, want)
	}
	if want := []string{"", "3@1-aa", "3@1-aa", "7@1-aa", "7@1-aa", "8@1-aa"}; !slices.Equal(cursors, want) {
		t.Errorf("got the cursors %q, expected %q", cursors, want)
	}
}

func TestASubscriptionEndsWithAnError(t *testing.T) {
	t.Parallel()
	dropped := streams(true, "event: error\nid: 4@1-aa\ndata: {\"error\":\"collection books was dropped\"}\n\n")
	for name, x := range map[string]struct {
		turns []turn
		want  func(error) bool
	}{
		"a dropped collection": {
			[]turn{dropped, says(404, `{"error":"there is no collection books"}`)},
			func(err error) bool { return errors.Is(err, client.ErrNotFound) },
		},
		"a lost server":   {[]turn{cuts}, func(err error) bool { return strings.HasPrefix(err.Error(), "gave up after ") }},
		"a refused token": {[]turn{says(401, "{}")}, func(err error) bool { return errors.Is(err, client.ErrUnauthorized) }},
		"an invalid row":  {[]turn{streams(false, strings.ReplaceAll(seedOfTwo, `"Emma"`, `7`))}, func(err error) bool { return strings.HasPrefix(err.Error(), "live query: decode a row: ") }},
		"an invalid id":   {[]turn{streams(false, strings.ReplaceAll(seedOfTwo, `id: 3`, `id: x`))}, func(err error) bool { return strings.Contains(err.Error(), "without a valid cursor") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := scripted(t, x.turns...)
			c := newClient(t, server, client.Options{Patience: 300 * time.Millisecond})
			n := 0
			for event, err := range client.Subscribe[book](t.Context(), c, "books", client.Shape{}) {
				if n++; err == nil || !x.want(err) {
					t.Errorf("got the event %+v and the error %v, expected only the error", event, err)
				}
			}
			if n != 1 {
				t.Errorf("got %d events, expected only the error", n)
			}
		})
	}
}

func TestASubscriptionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server, _ := scripted(t, streams(false, seedOfTwo))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range client.Subscribe[book](ctx, newClient(t, server, client.Options{}), "books", client.Shape{}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v, expected context.Canceled", last)
	}
}

func TestAShapeIsSentAsAQueryString(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 5, 1, 10, 0, 0, 5e6, time.UTC)
	for name, x := range map[string]struct {
		shape client.Shape
		want  map[string][]string
	}{
		"everything": {client.Shape{}, map[string][]string{}},
		"every operator": {
			client.Shape{
				Filters: []client.Filter{
					{"year", client.Gte, 1800},
					{"year", client.Lt, uint8(200)},
					{"title", client.Neq, "not.me & you"},
					{"isbn", client.Eq, nil},
					{"sold", client.Neq, nil},
					{"ok", client.Eq, true},
					{"price", client.Lte, 0.1},
					{"at", client.Gt, at},
					{"tags", client.Has, "novel"},
					{"lang", client.In, []string{"de", `a,"b\`}},
					{"meta.lang", client.Eq, "2"},
					{"meta.rank", client.In, []int{2}},
					{"meta.name", client.Like, "E%"},
				},
				Where: "year % 2 = 0", Select: []string{"title", "meta.lang"},
			},
			map[string][]string{
				"year": {"gte.1800", "lt.200"}, "title": {"neq.not.me & you"}, "isbn": {"is.null"}, "sold": {"is.not_null"}, "ok": {"eq.true"},
				"price": {"lte.0.1"}, "at": {"gt.2024-05-01T10:00:00.005Z"}, "tags": {"has.novel"}, "lang": {`in.("de","a,\"b\\")`},
				"meta.lang": {`eq."2"`}, "meta.rank": {`in.("2")`}, "meta.name": {"like.E%"}, "where": {"year % 2 = 0"}, "select": {"title,meta.lang"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string][]string
			var path string
			server, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
				got, path = r.URL.Query(), r.URL.EscapedPath()
				says(400, "{}")(w, r)
			})
			for _, err := range client.Subscribe[book](t.Context(), newClient(t, server, client.Options{}), "a ü", x.shape) {
				if !errors.Is(err, client.ErrInvalid) {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(x.want, got); diff != "" || path != "/a%20%C3%BC/changes" {
				t.Errorf("got the path %s and another query string: %s", path, diff)
			}
		})
	}
	for _, f := range []client.Filter{{"a", "like", nil}, {"a", "between", 1}, {"a", client.In, 1}, {"a", client.Eq, []int{1}}, {"a", client.Eq, struct{}{}}} {
		for _, err := range client.Subscribe[book](t.Context(), client.New("http://127.0.0.1:1", client.Options{}), "a", client.Shape{Filters: []client.Filter{f}}) {
			if err == nil || !strings.HasPrefix(err.Error(), "filter on a: ") {
				t.Errorf("%+v: got %v, expected an error that names the field", f, err)
			}
		}
	}
}

func TestASeedReplacesTheView(t *testing.T) {
	t.Parallel()
	view := map[int64]string{1: "a", 2: "b"}
	change := client.Event[string]{Puts: []client.Row[string]{{ID: 3, Doc: "c"}}, Dels: []int64{1, 9}}
	change.Apply(view)
	if want := map[int64]string{2: "b", 3: "c"}; !maps.Equal(view, want) {
		t.Errorf("got the view %v after a change, expected %v", view, want)
	}
	seed := client.Event[string]{Seed: true, Puts: []client.Row[string]{{ID: 4, Doc: "d"}}}
	seed.Apply(view)
	if want := map[int64]string{4: "d"}; !maps.Equal(view, want) {
		t.Errorf("got the view %v after a seed, expected %v", view, want)
	}
}
