package feed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
)

// putter is a database and the text of the documents of 200 bytes that are put into it.
type putter struct {
	db   *engine.DB
	text doc.Value
	n    int64
}

func newPutter(tb testing.TB, path string, feed engine.Feed) *putter {
	tb.Helper()
	db, err := engine.Create(path, engine.Options{Feed: feed})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	p := &putter{db: db, text: doc.TextValue([]byte(strings.Repeat("x", 180)))}
	p.exec(tb, engine.Statement{Text: "create collection c (n int, s text)"})
	return p
}

func (p *putter) exec(tb testing.TB, st engine.Statement) {
	if _, err := p.db.Exec(context.Background(), engine.Everything(), st, nil); err != nil {
		tb.Fatal(err)
	}
}

func (p *putter) put(tb testing.TB, n int) time.Duration {
	began := time.Now()
	for range n {
		p.n++
		p.exec(tb, engine.Statement{Text: "put c {n: $1, s: $2}", Params: []doc.Value{doc.IntValue(p.n), p.text}})
	}
	return time.Since(began)
}

// BenchmarkPut alternates puts without a feed and with one, and reports what the feed adds in percent.
func BenchmarkPut(b *testing.B) {
	const turn = 2000
	dir := b.TempDir()
	plain, fed := newPutter(b, dir+"/plain.fenec", nil), newPutter(b, dir+"/fed.fenec", New(DefaultKeep))
	var without, with time.Duration
	for n := 0; n < b.N; n += turn {
		without += plain.put(b, turn)
		with += fed.put(b, turn)
	}
	b.ReportMetric(100*(float64(with)/float64(without)-1), "%-added")
	b.ReportMetric(float64(with.Nanoseconds())/float64(fed.n), "ns/put")
}

// BenchmarkRead measures how fast puts of 200 bytes are read from the feed.
func BenchmarkRead(b *testing.B) {
	f := New(DefaultKeep)
	p := newPutter(b, b.TempDir()+"/fed.fenec", f)
	p.put(b, 100_000)
	if err := f.Cover(); err != nil {
		b.Fatal(err)
	}
	var blocks []Block
	n := 0
	for b.Loop() {
		since := uint64(0)
		for {
			var err error
			if blocks, err = f.Read(engine.Everything(), blocks[:0], since, Durable, 256<<10); err != nil {
				b.Fatal(err)
			}
			if len(blocks) == 0 {
				break
			}
			n += len(blocks)
			since = blocks[len(blocks)-1].After
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/block")
}

func TestAReadAllocatesLittle(t *testing.T) {
	f := fresh(t, DefaultKeep, engine.Options{Sync: always})
	f.exec("create collection c (n int)")
	for n := range 1000 {
		f.exec(fmt.Sprintf("put c {n: %d}", n))
	}
	blocks := make([]Block, 0, 2000)
	const most = 2 // for the spans
	if n := testing.AllocsPerRun(100, func() {
		if got, err := f.Read(engine.Everything(), blocks, 10, Durable, 1<<20); err != nil || len(got) != 991 {
			t.Fatalf("%d blocks, %v", len(got), err)
		}
	}); n > most {
		t.Errorf("a read allocates %.1f times, at most %d are meant to", n, most)
	}
}

// BenchmarkOpen alternates opening a file of 200 000 puts without a feed and with one, and reports what the feed adds
// in percent.
func BenchmarkOpen(b *testing.B) {
	path := b.TempDir() + "/t.fenec"
	p := newPutter(b, path, nil)
	p.put(b, 200_000)
	if err := p.db.Close(); err != nil {
		b.Fatal(err)
	}
	open := func(feed engine.Feed) time.Duration {
		began := time.Now()
		db, err := engine.Open(path, engine.Options{Feed: feed})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	var without, with time.Duration
	for b.Loop() {
		without += open(nil)
		with += open(New(DefaultKeep))
	}
	b.ReportMetric(100*(float64(with)/float64(without)-1), "%-added")
}
