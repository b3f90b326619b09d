package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

// history holds the rows of a shape after each block, by the last change of the block.
type history map[uint64]map[int64]string

// follower is a client of a shape. It resumes after its last event whenever its stream ends, and compares each event with the
// rows of its change.
type follower struct {
	r      *running
	path   string
	filter string
	stream *watching
	rows   map[int64]string // from the events
	seq    uint64           // the change they are of
	id     string
	seeds  int
}

// open opens a stream after the last event.
func (f *follower) open() error {
	path, headers := f.path+"/changes?"+f.filter, []string(nil)
	if f.id != "" {
		headers = []string{"Last-Event-ID", f.id}
	}
	w, status, err := f.r.tryWatch(path, headers...)
	if err == nil && status != 200 {
		err = fmt.Errorf("%s: got status %d, expected 200", path, status)
	}
	if err != nil {
		return err
	}
	w.rows, f.stream = maps.Clone(f.rows), w
	return nil
}

// one reads an event and compares it with the history.
func (f *follower) one(h history) error {
	timer := time.AfterFunc(20*time.Second, f.stream.stop)
	defer timer.Stop()
	e, err := f.stream.read()
	if err != nil {
		return err
	}
	if f.stream.id != "" {
		f.id = f.stream.id
	}
	switch e.name {
	case "", "error":
		return nil
	case "seed":
		f.seeds++
	case "change":
		if e.Seq <= f.seq {
			return fmt.Errorf("got change %d after %d", e.Seq, f.seq)
		}
	}
	want, whole := h[e.Seq]
	if !whole {
		return fmt.Errorf("got an event that ends at %d, within a block", e.Seq)
	}
	f.seq, f.rows = e.Seq, maps.Clone(f.stream.rows)
	if !maps.Equal(f.rows, want) {
		return fmt.Errorf("after %s: got the rows\n%v\nexpected\n%v", e, f.rows, want)
	}
	return nil
}

// TestEveryEventOfALiveQueryMatchesTheTable runs random steps on a tenant. Its followers read, pause, leave and resume after
// any earlier event, while the tenant is altered, closed and opened, compacted, and moved.
func TestEveryEventOfALiveQueryMatchesTheTable(t *testing.T) {
	r := start(t, Config{Changes: 12})
	tenant := 0
	rapid.Check(t, func(t *rapid.T) {
		tenant++
		s := &watchStory{t: t, r: r, name: fmt.Sprintf("w%d", tenant), histories: map[string]history{}, cursors: map[*follower][]follower{}}
		s.send(201, "PUT", "/_admin/tenants/"+s.name, "")
		s.statement("create collection c (n int, s text, m int)")
		s.statement("create collection other (n int)")
		for _, filter := range []string{"", "n=gt.0", "n=gt.0&select=s", "s=is.null", "m=not.is.null&select=n", "select=m"} {
			s.histories[filter] = history{}
			f := &follower{r: r, path: "/t/" + s.name + "/c", filter: filter, rows: map[int64]string{}}
			s.followers = append(s.followers, f)
		}
		s.note()
		defer s.leave()
		t.Repeat(s.steps())
		for _, f := range s.followers {
			s.catchUp(f)
		}
	})
}

// watchStory runs the random steps on a tenant, and has its followers.
type watchStory struct {
	t         *rapid.T
	r         *running
	name      string
	seq       uint64
	histories map[string]history // by filter
	followers []*follower
	cursors   map[*follower][]follower // their states after each event
	more      bool                     // whether the collection has the field more
}

func (s *watchStory) send(status int, method, path, body string) reply {
	s.t.Helper()
	got, err := s.r.send(method, path, body, "Authorization", "Bearer "+adminToken)
	if err != nil || got.status != status {
		s.t.Fatalf("%s %s %s: got %d %s, %v", method, path, body, got.status, got.body, err)
	}
	return got
}

func (s *watchStory) statement(text string) {
	s.send(200, "POST", "/t/"+s.name+"/query", fmt.Sprintf(`{"query": %q}`, text))
}

func (s *watchStory) block(statements []string) {
	var lines strings.Builder
	for _, text := range statements {
		fmt.Fprintf(&lines, "{\"query\": %q}\n", text)
	}
	s.send(200, "POST", "/t/"+s.name+"/batch", lines.String())
}

// watchAlters are blocks after which the collection of a watchStory has fields of the same names again.
var watchAlters = [][]string{
	{"alter collection c rename field n to x", "alter collection c rename field m to n", "alter collection c rename field x to m"},
	{"alter collection c drop field n", "alter collection c add field n int"},
	{"alter collection c drop field m", "alter collection c add field m int @sorted"},
	{"alter collection c drop field s", "alter collection c add field s json"},
	{"alter collection c drop field s", "alter collection c add field s text collate tr"},
	{"alter collection c add field x int", "alter collection c drop field x"},
	{"drop collection c", "create collection c (n int, s text, m int)"},
}

// note stores the current rows of each shape.
func (s *watchStory) note() {
	for filter, h := range s.histories {
		got, err := s.r.send("GET", "/t/"+s.name+"/c?"+strings.Replace(filter, "select=", "select=id,", 1), "", "Fenec-Read", "replica")
		var rows []json.RawMessage
		if err == nil {
			err = json.Unmarshal([]byte(got.body), &rows)
		}
		w := &watching{rows: map[int64]string{}}
		if err == nil {
			err = w.apply(&liveEvent{Rows: rows})
		}
		if err == nil {
			_, err = fmt.Sscan(got.header.Get("Fenec-Seq"), &s.seq)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		h[s.seq] = w.rows
	}
}

// catchUp reads events until a follower has the current rows, and stores the cursors it passes.
func (s *watchStory) catchUp(f *follower) {
	h := s.histories[f.filter]
	if f.stream == nil {
		if err := f.open(); err != nil {
			s.t.Fatal(err)
		}
	}
	// A change that does not concern the shape has no event: the rows are as they were then.
	for !maps.Equal(f.rows, h[s.seq]) || f.seeds == 0 {
		before := f.seq
		switch err := f.one(h); {
		case errors.Is(err, io.EOF):
			f.stream.stop()
			if err := f.open(); err != nil {
				s.t.Fatal(err)
			}
		case err != nil:
			s.t.Fatalf("%s: %v", f.filter, err)
		case f.seq != before:
			s.cursors[f] = append(s.cursors[f], follower{rows: f.rows, seq: f.seq, id: f.id})
		}
	}
}

// leave ends the streams of all followers.
func (s *watchStory) leave() {
	for _, f := range s.followers {
		if f.stream != nil {
			f.stream.stop()
			f.stream = nil
		}
	}
}

// alone ends the streams of all followers, and waits until the node has no stream.
func (s *watchStory) alone() {
	s.leave()
	for deadline := time.Now().Add(10 * time.Second); s.r.streaming.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("the node has streams, expected none")
		}
	}
}

// steps returns the random steps by name.
func (s *watchStory) steps() map[string]func(*rapid.T) {
	n, id := rapid.IntRange(-2, 4), rapid.IntRange(1, 12)
	write := func(text func(*rapid.T) string) func(*rapid.T) {
		return func(t *rapid.T) {
			s.statement(text(t))
			s.note()
		}
	}
	follower := func(t *rapid.T) *follower { return rapid.SampledFrom(s.followers).Draw(t, "follower") }
	return map[string]func(*rapid.T){
		"put": write(func(t *rapid.T) string {
			return fmt.Sprintf("put c {id: %d, n: %d, m: %d}", id.Draw(t, "id"), n.Draw(t, "n"), n.Draw(t, "m"))
		}),
		"insert": write(func(t *rapid.T) string {
			return fmt.Sprintf("put c [{n: %d, s: 'a'}, {n: 1}, {n: -1}]", n.Draw(t, "n"))
		}),
		"set":    write(func(t *rapid.T) string { return fmt.Sprintf("set c {n: n + 1, s: 'b'} where n = %d", n.Draw(t, "n")) }),
		"del":    write(func(t *rapid.T) string { return fmt.Sprintf("del c where id %% 3 = %d", id.Draw(t, "id")%3) }),
		"other":  write(func(t *rapid.T) string { return fmt.Sprintf("put other {n: %d}", n.Draw(t, "n")) }),
		"schema": write(func(*rapid.T) string { return "create index if not exists on c (n) @sorted" }),
		"add or drop": write(func(*rapid.T) string {
			if s.more = !s.more; s.more {
				return "alter collection c add field more int"
			}
			return "alter collection c drop field more"
		}),
		"alter": func(t *rapid.T) {
			statements := rapid.SampledFrom(watchAlters).Draw(t, "alter")
			s.more = s.more && !strings.HasPrefix(statements[0], "drop")
			if rapid.Bool().Draw(t, "and a write") {
				statements = append(slices.Clip(statements), "put c {n: 1, m: 2}")
			}
			s.block(statements)
			s.note()
		},
		"compact": func(*rapid.T) {
			s.statement("compact")
		},
		"read": func(t *rapid.T) { s.catchUp(follower(t)) },
		"leave": func(t *rapid.T) {
			if f := follower(t); f.stream != nil {
				f.stream.stop()
				f.stream = nil
			}
		},
		"resume after any cursor": func(t *rapid.T) {
			f := follower(t)
			if len(s.cursors[f]) == 0 {
				return
			}
			at := rapid.SampledFrom(s.cursors[f]).Draw(t, "cursor")
			again := at
			again.r, again.path, again.filter, again.seeds = f.r, f.path, f.filter, 1
			s.catchUp(&again)
			again.stream.stop()
		},
		"restart": func(*rapid.T) {
			s.alone()
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				if one := s.r.tenants.Find([]byte(s.name)); one == nil || s.r.tenants.CloseIfIdle(one) {
					return
				}
				if time.Now().After(deadline) {
					s.t.Fatal("the tenant is in use")
				}
			}
		},
		"move": func(*rapid.T) {
			file := "/_admin/tenants/" + s.name
			s.send(200, "POST", file+"/freeze", "")
			image := s.send(200, "GET", file+"/file", "").body
			s.send(204, "DELETE", file, "") // ends the streams
			s.send(201, "PUT", file+"/file", image)
			s.send(200, "POST", file+"/thaw", "")
		},
	}
}

func TestALiveQueryResumesAfterAMoveWithoutASeed(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 3)
	r.query("x", "create collection other (n int)")
	w := r.watch("/t/x/c/changes")
	w.next()
	r.query("x", "put other {n: 1}") // the stream sends only its cursor
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	image := r.wantAdmin(200, "GET", "tenants/x/file", "").body
	r.wantAdmin(204, "DELETE", "tenants/x", "")
	w.expectEnd("moved or deleted")
	if got := r.do("GET", "/t/x/c/changes", "", "Last-Event-ID", w.id); got.status != http.StatusNotFound {
		t.Errorf("got %d before the install, expected 404", got.status)
	}
	r.wantAdmin(201, "PUT", "tenants/x/file", image)
	again := r.watch("/t/x/c/changes", "Last-Event-ID", w.id)
	r.wantAdmin(200, "POST", "tenants/x/thaw", "")
	r.insert("x", 4, 1)
	again.expect(`change 7 [{"id":4,"n":4,"s":"s4"}] [] false`)
}

// TestAnEventIsNeverPartOfABlock moves amounts between rows in blocks of two statements, so that the sum stays the same, while
// live queries of two shapes read.
func TestAnEventIsNeverPartOfABlock(t *testing.T) {
	const rows, moves = 7, 400
	r := start(t, Config{})
	r.fill("x", rows)
	sum := rows * (rows + 1) / 2
	var group errgroup.Group
	for i := range 6 {
		w := r.watch("/t/x/c/changes?n=gt.-1000000&select=n,id" + []string{"", ",s"}[i%2])
		group.Go(func() error {
			for last := uint64(0); last < 1+rows+2*moves; {
				e, err := w.read()
				if err != nil {
					return err
				}
				if e.Seq <= last || (e.Seq-1-rows)%2 != 0 {
					return fmt.Errorf("got an event of change %d after %d", e.Seq, last)
				}
				last = e.Seq
				got := 0
				for _, row := range w.rows {
					var one struct{ N int }
					if err := json.Unmarshal([]byte(row), &one); err != nil {
						return err
					}
					got += one.N
				}
				if got != sum {
					return fmt.Errorf("got rows of change %d with the sum %d, expected %d: %v", e.Seq, got, sum, w.rows)
				}
			}
			return nil
		})
	}
	for i := range moves {
		r.want(200, "POST", "/t/x/batch", fmt.Sprintf(`{"query": "set c {n: n - 1} where id = %d"}`+"\n"+`{"query": "set c {n: n + 1} where id = %d"}`, i%rows+1, (i*3+1)%rows+1))
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
