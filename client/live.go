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

// maxSilence is how long a stream may be without a byte before it counts as broken; a server sends something every 15
// s.
const maxSilence = 45 * time.Second

// Row is a document and its id.
type Row[T any] struct {
	ID  int64
	Doc T
}

// Event is an event of a live query: first a seed with all rows of its shape, then their changes, block by block.
// Another seed is sent if the tenant no longer has the changes in between, and after an alter of fields that the shape
// reads.
type Event[T any] struct {
	// Seed reports whether Puts are all rows of the shape, replacing those of earlier events.
	Seed bool
	// Puts are the new or changed rows after the event, sorted by id.
	Puts []Row[T]
	// Dels are the ids of changed documents that are not in the shape. They may never have been in it.
	Dels []int64
	// Schema reports whether the collection's fields or indexes changed.
	Schema bool
	// Position is the position of the event. In Shape.After it continues after this event.
	Position Position
}

// Apply applies the event to a view of rows by id. After each event has been applied in order, the view holds the rows
// of the shape.
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

// Subscribe opens a live query of a collection and keeps it open. If the connection breaks, the server restarts or the
// tenant moves, it reconnects and continues after the last event, so that events are in order, complete, and none is
// missing. It ends when the caller leaves the loop, or with an error as the last value: that of the context, a
// permanent error, or a temporary one such as ErrUnavailable after the client's patience.
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

// errEnough is the error after the caller has left the loop.
var errEnough = errors.New("the caller left the loop")

// subscription is a live query, over any number of connections.
type subscription struct {
	client *Client
	path   string
	cursor string // the id of the last event
	again  again
	event  func(sse) error // called with a seed or a change
}

// run follows the query until it ends for good, and returns the reason.
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
		silence.Stop() // the caller's time does not count as the server's silence
		if err := s.event(e); err != nil {
			return err
		}
		silence.Reset(maxSilence)
	}
}

// endOf returns the error of the event that ends a stream. It counts as transient, and the next try decides: if the
// collection was dropped, it is refused; if the node stopped, the stream continues elsewhere.
func endOf(e sse) error {
	var why struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(e.data, &why); err != nil || why.Error == "" {
		why.Error = "the live query ended"
	}
	return &broken{errors.New(why.Error)}
}

// heard calls f after each read that returns bytes.
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
	var data struct {
		Rows   []jsontext.Value `json:"rows"`
		Puts   []jsontext.Value `json:"puts"`
		Dels   []int64          `json:"dels"`
		Schema bool             `json:"schema"`
	}
	if err := json.Unmarshal(e.data, &data); err != nil {
		return Event[T]{}, fmt.Errorf("live query: invalid %s event: %w", e.name, err)
	}
	position, err := ParsePosition(e.id)
	if err != nil {
		return Event[T]{}, fmt.Errorf("live query: %s event without a valid cursor: %w", e.name, err)
	}
	event := Event[T]{Seed: e.name == "seed", Dels: data.Dels, Schema: data.Schema, Position: position}
	rows := data.Puts
	if event.Seed {
		rows = data.Rows
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
			return Event[T]{}, fmt.Errorf("live query: decode a row: %w", err)
		}
	}
	return event, nil
}
