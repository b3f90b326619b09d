package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSilence is how long a stream without a byte is taken for alive; a server says something every 15 s.
const maxSilence = 45 * time.Second

// Row is a document and its id.
type Row[T any] struct {
	ID  int64
	Doc T
}

// Event is what a live query tells: first all rows of its shape, the seed, then what became of them, block by block. A seed
// comes again where the tenant no longer knows what happened in between, and after an alter of fields that the shape reads.
type Event[T any] struct {
	// Seed says that Puts are all rows there are, whatever was told before.
	Seed bool
	// Puts are the rows that are new or changed, as they are now; ids ascend.
	Puts []Row[T]
	// Dels are the ids of documents that are not, or no more, of the shape; it may never have had them.
	Dels []int64
	// Schema says that the collection's fields or indexes changed.
	Schema bool
	// Position is that of the event: in Shape.After, it goes on from behind it.
	Position Position
}

// Apply does to a view, rows by id, what the event tells. A view that all events went to in turn has the rows of the shape.
func (e *Event[T]) Apply(view map[int64]T) {
	if e.Seed {
		clear(view)
	}
	for _, row := range e.Puts {
		view[row.ID] = row.Doc
	}
	for _, id := range e.Dels {
		delete(view, id)
	}
}

// Subscribe opens a live query of a collection, and keeps it open: where the connection breaks, the server restarts or the
// tenant moves, it comes back to where it stood, so that events are in order, whole, and none is missing. It ends with the
// loop over it, or with an error, which comes last: that of the context, a refusal, or ErrUnavailable and the like after
// the client's patience without its server.
//
//	for event, err := range client.Subscribe[Job](ctx, c, "jobs", client.Shape{}) {
//		if err != nil {
//			return err
//		}
//		event.Apply(view)
//	}
func Subscribe[T any](ctx context.Context, c *Client, collection string, shape Shape) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		path, err := shape.path(collection)
		if err != nil {
			yield(Event[T]{}, err)
			return
		}
		s := subscription{client: c, path: path, again: c.again()}
		if shape.After != (Position{}) {
			s.cursor = shape.After.String()
		}
		s.event = func(e sse) error {
			event, err := decodeEvent[T](e)
			if err == nil && !yield(event, nil) {
				err = errEnough
			}
			return err
		}
		if err := s.run(ctx); !errors.Is(err, errEnough) {
			yield(Event[T]{}, err)
		}
	}
}

// errEnough is a loop that was left.
var errEnough = errors.New("no more events are wanted")

// subscription is a live query, over as many connections as it takes.
type subscription struct {
	client *Client
	path   string
	cursor string // the id of the last event, from which it goes on
	again  again
	event  func(sse) error // takes a seed or a change
}

// run follows the query until that ends for good, and says why.
func (s *subscription) run(ctx context.Context) error {
	for {
		err := s.connect(ctx)
		if errors.Is(err, errEnough) {
			return err
		}
		if err := s.again.wait(ctx, err); err != nil {
			return err
		}
	}
}

// connect follows the query over one connection.
func (s *subscription) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	r := request{method: http.MethodGet, path: s.path, reads: true, header: [][2]string{{"Accept", "text/event-stream"}}}
	if s.cursor != "" {
		r.header = append(r.header, [2]string{"Last-Event-ID", s.cursor})
	}
	response, err := s.client.open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	in := newSSEReader(heard{response.Body, func() { silence.Reset(maxSilence) }}, maxAnswer)
	for {
		e, err := in.next()
		switch {
		case errors.Is(err, errEventTooLong):
			return err
		case err != nil:
			return &broken{err}
		}
		if e.id != "" {
			s.cursor = e.id
		}
		if e.name == "error" && e.data != nil {
			return endOf(e)
		}
		s.again.well()
		if e.data == nil || e.name != "seed" && e.name != "change" {
			continue
		}
		silence.Stop() // the caller's time is not the server's
		if err := s.event(e); err != nil {
			return err
		}
		silence.Reset(maxSilence)
	}
}

// endOf is the event that ends a stream. Whether the query ended with it, another try is answered with: one whose
// collection is gone is refused, one whose node stops goes on elsewhere.
func endOf(e sse) error {
	var why struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(e.data, &why); err != nil || why.Error == "" {
		why.Error = "the live query ended"
	}
	return &broken{errors.New(why.Error)}
}

// heard calls f with every read that brings something.
type heard struct {
	in io.Reader
	f  func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	if n > 0 {
		h.f()
	}
	return n, err
}

func decodeEvent[T any](e sse) (Event[T], error) {
	var told struct {
		Rows   []jsontext.Value `json:"rows"`
		Puts   []jsontext.Value `json:"puts"`
		Dels   []int64          `json:"dels"`
		Schema bool             `json:"schema"`
	}
	if err := json.Unmarshal(e.data, &told); err != nil {
		return Event[T]{}, fmt.Errorf("a %s of the live query cannot be read: %w", e.name, err)
	}
	position, err := ParsePosition(e.id)
	if err != nil {
		return Event[T]{}, fmt.Errorf("a %s of the live query has no cursor: %w", e.name, err)
	}
	event := Event[T]{Seed: e.name == "seed", Dels: told.Dels, Schema: told.Schema, Position: position}
	rows := told.Puts
	if event.Seed {
		rows = told.Rows
	}
	event.Puts = make([]Row[T], len(rows))
	for i, text := range rows {
		var key struct {
			ID int64 `json:"id"`
		}
		if err = json.Unmarshal(text, &key); err == nil {
			event.Puts[i].ID = key.ID
			event.Puts[i].Doc, err = Decode[T](text)
		}
		if err != nil {
			return Event[T]{}, fmt.Errorf("a row is another than was thought: %w", err)
		}
	}
	return event, nil
}
