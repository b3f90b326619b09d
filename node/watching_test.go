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
	id     string           // the last one, of an event or without one
	rows   map[int64]string // from the events
	beats  int              // comment lines
}

// watch opens a live query, which has to be answered 200.
func (r *running) watch(path string, headers ...string) *watching {
	r.t.Helper()
	w, status, err := r.tryWatch(path, headers...)
	if err != nil || status != 200 {
		r.t.Fatalf("%s answered %d, %v", path, status, err)
	}
	return w
}

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
		r.t.Errorf("a stream is %q", kind)
	}
	return w, 200, nil
}

// stop leaves.
func (w *watching) stop() {
	w.cancel()
	w.body.Close()
}

// read reads the next event and applies it to the rows; its error is the end of the stream.
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
				return nil, fmt.Errorf("an event's data is %q: %w", value, err)
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
			return nil, fmt.Errorf("a line of the stream is %q", line)
		}
	}
}

func (w *watching) apply(e *liveEvent) error {
	if e.name == "seed" {
		clear(w.rows)
	}
	for _, row := range append(e.Rows, e.Puts...) {
		var id struct{ ID int64 }
		if err := json.Unmarshal(row, &id); err != nil || id.ID == 0 {
			return fmt.Errorf("a row is %s: %v", row, err)
		}
		w.rows[id.ID] = string(row)
	}
	for _, id := range e.Dels {
		delete(w.rows, id)
	}
	return nil
}

// next is the next event, which has to come.
func (w *watching) next() *liveEvent {
	w.t.Helper()
	timer := time.AfterFunc(20*time.Second, w.stop)
	defer timer.Stop()
	e, err := w.read()
	if err != nil {
		w.t.Fatalf("no event came: %v", err)
	}
	return e
}

// expect checks that the next events are these.
func (w *watching) expect(want ...string) {
	w.t.Helper()
	for _, one := range want {
		if got := w.next().String(); got != one {
			w.t.Fatalf("the event is\n%s\nwant\n%s", got, one)
		}
	}
}

// expectEnd checks that the stream ends in order after an error.
func (w *watching) expectEnd(message string) {
	w.t.Helper()
	if got := w.next(); got.name != "error" || !strings.Contains(got.Error, message) {
		w.t.Fatalf("the last event is %s, want an error with %q", got, message)
	}
	if _, err := w.read(); err != io.EOF {
		w.t.Errorf("behind the error the stream does not end: %v", err)
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
		w.t.Errorf("%s has by its events\n%v\nand by a GET\n%v", path, w.rows, there.rows)
	}
}

// descriptors is how many the process has open.
func descriptors(t testing.TB) int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
