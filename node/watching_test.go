package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// liveEvent is an event as a client reads it.
type liveEvent struct {
	name, id string
	Seq      uint64
	Rows     []json.RawMessage
	Puts     []json.RawMessage
	Dels     []int64
	Schema   bool
	Error    string
}

func (e *liveEvent) String() string {
	switch e.name {
	case "seed":
		return fmt.Sprintf("seed %d %s", e.Seq, e.Rows)
	case "change":
		return fmt.Sprintf("change %d %s %d %v", e.Seq, e.Puts, e.Dels, e.Schema)
	}
	return e.name + " " + e.Error
}

// watching is a client of one live query.
type watching struct {
	t      testing.TB
	header http.Header
	cancel context.CancelFunc
	body   io.ReadCloser
	in     *bufio.Reader
	id     string           // the last cursor, with an event or without one
	rows   map[int64]string // from the events
	beats  int              // comment lines
}

// watch opens a live query and checks that the status is 200.
func (r *running) watch(path string, headers ...string) *watching {
	r.t.Helper()
	w, status, err := r.tryWatch(path, headers...)
	if err != nil || status != 200 {
		r.t.Fatalf("%s: got %d, %v, expected 200", path, status, err)
	}
	return w
}

// tryWatch opens a live query and returns the status. Without a status of 200 there is no client.
func (r *running) tryWatch(path string, headers ...string) (*watching, int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+path, nil)
	if err != nil {
		cancel()
		return nil, 0, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		cancel()
		return nil, 0, err
	}
	w := &watching{t: r.t, header: resp.Header, cancel: cancel, body: resp.Body, in: bufio.NewReader(resp.Body), rows: map[int64]string{}}
	if resp.StatusCode != 200 {
		w.stop()
		return nil, resp.StatusCode, nil
	}
	r.t.Cleanup(w.stop)
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		r.t.Errorf("got Content-Type %q, expected text/event-stream", kind)
	}
	return w, 200, nil
}

// stop closes the stream.
func (w *watching) stop() {
	w.cancel()
	w.body.Close()
}

// read reads the next event and applies it to the rows. It returns an error at the end of the stream.
func (w *watching) read() (*liveEvent, error) {
	e := &liveEvent{}
	for {
		line, err := w.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), e); err != nil {
				return nil, fmt.Errorf("invalid data of an event: %q: %w", value, err)
			}
		case ":":
			w.beats++
		case "":
			if e.id != "" {
				w.id = e.id
			}
			if e.name == "" {
				return e, nil // a heartbeat
			}
			return e, w.apply(e)
		default:
			return nil, fmt.Errorf("unexpected line of the stream: %q", line)
		}
	}
}

// apply applies an event to the rows.
func (w *watching) apply(e *liveEvent) error {
	if e.name == "seed" {
		clear(w.rows)
	}
	for _, row := range append(e.Rows, e.Puts...) {
		var id struct{ ID int64 }
		if err := json.Unmarshal(row, &id); err != nil || id.ID == 0 {
			return fmt.Errorf("invalid row %s: %v", row, err)
		}
		w.rows[id.ID] = string(row)
	}
	for _, id := range e.Dels {
		delete(w.rows, id)
	}
	return nil
}

// next returns the next event, and fails the test if there is none within 20 s.
func (w *watching) next() *liveEvent {
	w.t.Helper()
	timer := time.AfterFunc(20*time.Second, w.stop)
	defer timer.Stop()
	e, err := w.read()
	if err != nil {
		w.t.Fatalf("expected an event, got %v", err)
	}
	return e
}

// expect checks the next events.
func (w *watching) expect(want ...string) {
	w.t.Helper()
	for _, one := range want {
		if got := w.next().String(); got != one {
			w.t.Fatalf("got the event\n%s\nexpected\n%s", got, one)
		}
	}
}

// expectEnd checks that the next event is an error with the message, and that the stream ends after it.
func (w *watching) expectEnd(message string) {
	w.t.Helper()
	if got := w.next(); got.name != "error" || !strings.Contains(got.Error, message) {
		w.t.Fatalf("got the last event %s, expected an error with %q", got, message)
	}
	if _, err := w.read(); err != io.EOF {
		w.t.Errorf("got %v after the error, expected io.EOF", err)
	}
}

// same compares the rows from the stream with those that a GET of the shape returns.
func (w *watching) same(r *running, path string) {
	w.t.Helper()
	var rows []json.RawMessage
	if err := json.Unmarshal([]byte(r.want(200, "GET", path, "").body), &rows); err != nil {
		w.t.Fatal(err)
	}
	there := &watching{rows: map[int64]string{}}
	if err := there.apply(&liveEvent{Rows: rows}); err != nil {
		w.t.Fatal(err)
	}
	if !maps.Equal(w.rows, there.rows) {
		w.t.Errorf("%s: got from its events\n%v\nexpected, from a GET\n%v", path, w.rows, there.rows)
	}
}

// descriptors returns how many descriptors the process has open.
func descriptors(t testing.TB) int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
