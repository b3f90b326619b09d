package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

var always = wal.Policy{Always: true}

func TestTheFeedHoldsWhatTheFileHolds(t *testing.T) {
	fs := crashfs.New(1)
	f := fresh(t, DefaultKeep, engine.Options{FS: fs, Sync: always})
	f.exec("create collection c (n int)")
	f.exec("put c {n: 1}")
	f.batch("put c {n: 2}", "set c {n: 3} where id = 1", "del c where id = 2")
	f.exec("create collection d (t text)")
	f.exec("alter collection c add field m int")
	f.exec("put c {n: 4, m: 5}")
	f.exec("drop collection d")
	want := []string{
		"1 2 c1", "2 5 c 1 n=1", "3 5 c 2 n=2", "4 5 c 1 n=3", "5 6 c 2", "6 2 d1", "7 4 c2", "8 5 c 3 n=4 m=5", "9 3 d",
	}
	check := func(f *followed, where string) {
		t.Helper()
		for _, budget := range []int{1, 200, 1 << 20} {
			for since := range want {
				if got := f.lines(uint64(since), Durable, budget); !slices.Equal(got, want[since:]) {
					t.Errorf("%s, behind %d in pages of %d bytes:\n got %q\nwant %q", where, since, budget, got, want[since:])
				}
			}
		}
	}
	check(f, "as written")
	f.exec("compact")
	check(f, "after a compact, from copies")
	f.exec("put c {n: 6}")
	want = append(want, "10 5 c 4 n=6 m=null")
	check(f, "with more behind copies")
	f.Close()
	f = reopen(t, DefaultKeep, engine.Options{FS: fs, Sync: always})
	if f.First() != 9 {
		t.Errorf("opened again, the feed begins after %d, want 9, as the file does", f.First())
	}
	if err := f.Cover(); err != nil {
		t.Fatal(err)
	}
	if got := f.lines(9, Durable, 1); !slices.Equal(got, want[9:]) {
		t.Errorf("opened again: got %q, want %q", got, want[9:])
	}
	var gone *Gone
	if _, err := f.tryLines(8, Durable, 1); !errors.As(err, &gone) || gone.First != 9 {
		t.Errorf("a cursor from before the file begins: got %v, want one gone, with 9 the first", err)
	}
	var ahead *Ahead
	if _, err := f.tryLines(11, Durable, 1); !errors.As(err, &ahead) || ahead.Last != 10 {
		t.Errorf("a cursor from the future: got %v, want one ahead of 10", err)
	}
}

func TestUnsyncedBlocksAreNotDurable(t *testing.T) {
	for name, policy := range map[string]wal.Policy{"an interval": {Every: time.Hour}, "off": {}} {
		t.Run(name, func(t *testing.T) {
			f := fresh(t, DefaultKeep, engine.Options{Sync: policy})
			f.exec("create collection c (n int)")
			for n := range 5 {
				f.exec(fmt.Sprintf("put c {n: %d}", n))
			}
			if got := f.lines(0, Durable, 1<<20); len(got) != 0 || f.End(Durable) != 0 {
				t.Errorf("before a sync: got %q up to %d, want nothing", got, f.End(Durable))
			}
			if got := f.lines(0, Landed, 1<<20); len(got) != 6 {
				t.Errorf("what has landed is %q, want 6 lines", got)
			}
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			f.exec("put c {n: 7}")
			if got := f.lines(0, Durable, 1<<20); len(got) != 6 || f.End(Durable) != 6 {
				t.Errorf("after a sync: got %q up to %d, want 6 lines", got, f.End(Durable))
			}
			if err := f.Cover(); err != nil {
				t.Fatal(err)
			}
			want := uint64(6)
			if policy.Every == 0 {
				want = 7 // nothing else syncs, so Cover does
			}
			if f.End(Durable) != want {
				t.Errorf("a reader's wish left the end at %d, want %d", f.End(Durable), want)
			}
		})
	}
}

func TestAReaderWaitsForTheEndToMove(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{Sync: always})
	for _, r := range []Reach{Landed, Durable} {
		moved := f.Moved(r)
		select {
		case <-moved:
			t.Fatal("the end moved without a write")
		default:
		}
		before := f.End(r)
		f.exec(fmt.Sprintf("create collection c%d (n int)", r))
		select {
		case <-moved:
		case <-time.After(10 * time.Second):
			t.Fatal("no reader was woken")
		}
		if f.End(r) != before+1 {
			t.Errorf("the end is at %d, want %d", f.End(r), before+1)
		}
	}
}

func TestCopiesAreBounded(t *testing.T) {
	const keep = 300 << 10
	f := fresh(t, keep, engine.Options{})
	f.exec("create collection c (n int, s text)")
	text := `"` + fmt.Sprintf("%01000d", 7) + `"`
	put := func(n int) {
		for i := range n {
			f.exec(fmt.Sprintf("put c {id: %d, s: %s}", i%10+1, text))
		}
	}
	for range 3 {
		put(1000)
		first, last := f.First(), f.End(Landed)
		f.exec("compact")
		if f.First() <= first {
			t.Errorf("the feed begins behind %d, as before a compact that left out more than it may keep", f.First())
		}
		if f.Bytes() > keep+100<<10 {
			t.Errorf("the feed holds %d bytes, %d are meant to be kept", f.Bytes(), keep)
		}
		kept := f.lines(f.First(), Durable, 100<<10)
		if len(kept) < 200 || uint64(len(kept)) != last-f.First() {
			t.Errorf("%d changes are kept, behind %d up to %d", len(kept), f.First(), last)
		}
	}
}

// Blocks land while a new file is written, so the change of its image may be within a span.
func TestARewriteDuringWrites(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{Sync: wal.Policy{Every: time.Hour}})
	f.exec("create collection c (n int)")
	for n := range 8 {
		f.exec(fmt.Sprintf("put c {n: %d}", n))
		if n == 4 {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := f.lines(0, Landed, 1)
	check := func(where string, durable uint64) {
		t.Helper()
		for since := range want {
			if got := f.lines(uint64(since), Landed, 100); !slices.Equal(got, want[since:]) {
				t.Errorf("%s, behind %d:\n got %q\nwant %q", where, since, got, want[since:])
			}
		}
		if f.End(Durable) != durable {
			t.Errorf("%s the feed is on disk to %d, want %d", where, f.End(Durable), durable)
		}
	}
	check("before", 6)
	var behind []byte
	blocks, err := f.Read(engine.Everything(), nil, 4, Landed, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		behind = append(behind, b.Record...)
	}
	f.Rewriting(4)
	check("with the image copied", 6)
	if n := len(f.rewrite.kept); n != 1 || !f.rewrite.kept[0].own || f.rewrite.kept[0].after != 4 || f.Bytes() < f.rewrite.copied {
		t.Errorf("copied is more or less than up to the image: %+v", f.rewrite)
	}
	f.Abandoned()
	check("with the rewrite abandoned", 6)
	if f.rewrite.kept != nil {
		t.Errorf("an abandoned rewrite leaves copies: %+v", f.rewrite)
	}
	f.Rewriting(4)
	f.Rewritten([][]byte{behind[:len(blocks[0].Record)], behind[len(blocks[0].Record):]})
	check("rewritten", 9)
	f.keep = 0
	f.Rewriting(9)
	f.Rewritten(nil)
	if f.First() != 9 || f.Bytes() > 1000 {
		t.Errorf("with nothing kept the feed begins after %d and holds %d bytes", f.First(), f.Bytes())
	}
}

// The log has other records than blocks, which take tickets too: the number of blocks that a sync covers does not
// follow from the ticket alone.
func TestTicketsOfRecordsThatAreNoBlocks(t *testing.T) {
	from := fresh(t, DefaultKeep, engine.Options{})
	from.exec("create collection c (n int)")
	for range 5 {
		from.exec("put c {n: 1}")
	}
	memory, f := from.spans[0].data, New(DefaultKeep)
	f.Begin(from.DB, 0, nil)
	at, tickets := 0, []wal.Ticket{1, 2, 5, 6, 8, 9}
	for i, ticket := range tickets {
		r := engine.RecordAt(memory[at:])
		f.Landed(engine.Landed{Before: uint64(i), After: r.After(), Ticket: ticket, Memory: memory[:at+len(r)], Start: at})
		at += len(r)
	}
	for ticket, want := range []uint64{0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6} {
		f.Synced(wal.Ticket(ticket))
		blocks, err := f.Read(engine.Everything(), nil, 0, Durable, 1<<20)
		if f.End(Durable) != want || len(blocks) != int(want) || err != nil {
			t.Errorf("synced up to record %d, the feed has %d blocks up to %d, %v; want %d", ticket, len(blocks), f.End(Durable), err, want)
		}
	}
	f.Undone(6)
	if f.End(Landed) != 3 {
		t.Errorf("with what came from record 6 on undone, the feed ends at %d, want 3", f.End(Landed))
	}
}

// A segment that grows moves, and pointers to the old memory would keep it alive.
func TestSpansPointToOneMemory(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{})
	f.exec("create collection c (s text)")
	for range 3000 {
		f.exec(`put c {s: "` + strings.Repeat("x", 100) + `"}`)
	}
	if len(f.spans) < 5 {
		t.Fatalf("%d spans", len(f.spans))
	}
	last := &f.spans[len(f.spans)-1]
	for i := range f.spans {
		s := &f.spans[i]
		away := uintptr(unsafe.Pointer(&last.data[0])) - uintptr(unsafe.Pointer(&s.data[0]))
		if s.segment == last.segment && away != uintptr(last.start-s.start) {
			t.Errorf("span %d of %d lies elsewhere", i, len(f.spans))
		}
	}
	moved := make([]byte, last.start+len(last.data))
	f.Relocated(last.segment, moved)
	for i := range f.spans {
		if s := &f.spans[i]; s.segment == last.segment && (&s.data[0] != &moved[s.start] || len(s.data) == 0) {
			t.Errorf("span %d does not point to the new segment", i)
		}
	}
}

func TestTheZeroScopeReadsNoChanges(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{})
	f.exec("create collection c (n int)")
	f.exec("put c {n: 1}")
	refused := engine.Scope{}.MayRead()
	if blocks, err := f.Read(engine.Scope{}, nil, 0, Landed, 1<<20); err == nil || !errors.Is(err, refused) || len(blocks) != 0 {
		t.Errorf("Read = %v, %v, want %v", blocks, err, refused)
	}
	if changed, err := f.Changed(engine.Scope{}, nil, 1, 0, 10); err == nil || !errors.Is(err, refused) || changed.Seq != 0 {
		t.Errorf("Changed = %v, %v, want %v", changed, err, refused)
	}
	if _, err := f.Changed(engine.Scope{}, nil, 1, 99, 10); !errors.Is(err, refused) {
		t.Errorf("Changed past the end: %v, want %v", err, refused)
	}
	if n, err := f.Behind(engine.Scope{}, 0); err == nil || !errors.Is(err, refused) || n != 0 {
		t.Errorf("Behind = %d, %v, want %v", n, err, refused)
	}
	if n := f.Collection(engine.Scope{}, "c", 2); n != 0 || f.Collection(engine.Everything(), "c", 2) == 0 {
		t.Errorf("Collection = %d, want 0, as of a collection that does not exist", n)
	}
}

func TestChangedNamesTheDocumentsOfOneCollection(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{Sync: wal.Policy{Every: time.Hour}}) // reported before they are on disk
	f.exec("create collection c (n int)")
	f.exec("create collection d (n int)")
	number := f.Collection(engine.Everything(), "c", 2)
	if number == 0 || f.Collection(engine.Everything(), "c", 0) != 0 || f.Collection(engine.Everything(), "nosuch", 2) != 0 {
		t.Fatalf("c is collection %d, before it began %d, and another %d", number, f.Collection(engine.Everything(), "c", 0), f.Collection(engine.Everything(), "nosuch", 2))
	}
	f.batch("put c {id: 5, n: 1}", "put d {id: 9, n: 1}", "put c {id: 2, n: 1}", "set c {n: 2}")
	f.exec("del c where id = 5")
	f.exec("put d {n: 3}")
	want := func(since, most uint64, want string) {
		t.Helper()
		got, err := f.Changed(engine.Everything(), nil, number, since, most)
		if s := fmt.Sprint(got, err); s != want {
			t.Errorf("behind %d: got %s, want %s", since, s, want)
		}
	}
	want(2, 100, "{9 [2 5] false false} <nil>")
	want(4, 100, "{9 [2 5] false false} <nil>")
	want(7, 100, "{9 [5] false false} <nil>")
	want(8, 100, "{9 [] false false} <nil>")
	want(9, 0, "{9 [] false false} <nil>")
	f.exec("create index on c (n) @hash")
	want(9, 100, "{10 [] true false} <nil>")
	want(2, 8, "{10 [2 5] true false} <nil>")
	want(2, 7, "{2 [] false false} the changes asked for are no longer kept: those after change 3 are")
	want(11, 7, "{11 [] false false} change 11 has not happened here: the last one is 10")
	f.exec("drop collection c")
	f.exec("create collection c (n int)")
	want(9, 100, "{12 [] true true} <nil>")
}
