package query

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

func TestAPlanKnowsWhatItDoes(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int)`)
	for _, tc := range []struct {
		statement               string
		writes, schema, compact bool
		collection              string
	}{
		{statement: `get c`},
		{statement: `explain get c`},
		{statement: `collections`},
		{statement: `describe c`},
		{statement: `put c {n: 1}`, writes: true},
		{statement: `insert c $1`, writes: true},
		{statement: `set c {n: 1}`, writes: true},
		{statement: `del c`, writes: true},
		{statement: `create collection d (n int)`, writes: true, schema: true},
		{statement: `drop collection c`, writes: true, schema: true},
		{statement: `create index on c (n) @hash`, writes: true, schema: true},
		{statement: `compact`, writes: true, compact: true},
		{statement: `compact c`, writes: true, compact: true, collection: "c"},
	} {
		p, err := db.prepare(tc.statement)
		if err != nil {
			t.Fatalf("%s: %v", tc.statement, err)
		}
		collection, compact := p.Compact()
		if p.Writes() != tc.writes || p.Schema() != tc.schema || compact != tc.compact || collection != tc.collection {
			t.Errorf("%s: writes %v, schema %v, compact %v of %q", tc.statement, p.Writes(), p.Schema(), compact, collection)
		}
	}
}

// reading hides what a memory can write.
type reading struct{ Reader }

func TestAWriteNeedsAWriter(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int)`)
	for _, statement := range []string{`put c {n: 1}`, `set c {n: 1}`, `del c`, `create collection d (n int)`, `drop collection c`, `create index on c (n) @hash`} {
		p, err := db.prepare(statement)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(&Env{Now: testNow}, reading{db}, nil); fail.KindOf(err) != fail.ReadOnly {
			t.Errorf("%s over a reader: %v", statement, err)
		}
	}
}

func TestEveryWriteIsEnded(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int)`)
	for _, statement := range []string{`put c {n: 1}`, `set c {n: 2}`, `set c {n: 2} returning *`, `del c`, `create index on c (n) @hash`} {
		before := db.ended
		db.must(t, statement)
		if db.ended != before+1 {
			t.Errorf("%s ended %d times", statement, db.ended-before)
		}
	}
	before := db.ended
	db.must(t, `get c`)
	if db.ended != before {
		t.Error("a get ended a write")
	}
}

func TestAnAnswerIsAppended(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (n int)`)
	db.must(t, `put c [{n: 1}, {n: 2}]`)
	for statement, want := range map[string]string{
		`get c`:                    `kept[{"id":1,"n":1},{"id":2,"n":2}]`,
		`get c count`:              `kept[{"count":2}]`,
		`collections`:              `kept[{"name":"c","documents":2}]`,
		`explain get c count`:      `kept[{"step":"scan","index":null,"tested":0,"rows":2,"note":"counted without a look at the documents"},{"step":"count","index":null,"tested":null,"rows":1,"note":null}]`,
		`set c {n: 3} returning n`: `kept[{"n":3},{"n":3}]`,
		`put c {n: 1}`:             `kept`,
	} {
		p, err := db.prepare(statement)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(&Env{Now: testNow}, db.snapshot(), []byte("kept"))
		if err != nil || string(r.Body) != want {
			t.Errorf("%s answers %s, %v; want %s", statement, r.Body, err, want)
		}
	}
}

// endAfter is a context that ends when it has been asked so many times.
type endAfter struct {
	context.Context
	asked, end int
	err        error
}

func (c *endAfter) Err() error {
	c.asked++
	if c.asked > c.end {
		return c.err
	}
	return nil
}

func TestAContextStopsAStatement(t *testing.T) {
	s := newSegment(t, 10_000)
	for _, statement := range []string{
		`get c`, `get c where n < 0 count`, `get c order n`, `get c order m`, `get c where m > 5 and n < 0`, `get c order id desc`, `set c {n: 1}`, `del c where n < 0`,
	} {
		for err, want := range map[error]fail.Kind{context.Canceled: fail.Canceled, context.DeadlineExceeded: fail.Timeout} {
			ctx := &endAfter{Context: context.Background(), end: 2, err: err}
			_, got := s.plan(t, statement).Run(&Env{Ctx: ctx, Now: testNow}, s, nil)
			if fail.KindOf(got) != want {
				t.Errorf("%s: %v, want %v", statement, got, want)
			}
			if ctx.asked > ctx.end+1 {
				t.Errorf("%s went on after its context had ended", statement)
			}
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.plan(t, `get c where id = 1`).Run(&Env{Ctx: gone}, s, nil); fail.KindOf(err) != fail.Canceled {
		t.Errorf("a run for a caller that is gone: %v", err)
	}
}

func TestOnePlanRunsManyTimesAtOnce(t *testing.T) {
	s := newSegment(t, 10_000)
	plans := []*Plan{
		s.plan(t, `get c select id, lower(s) as s where n >= $1 and n < $1 + 3 and s ~ $2 order n limit 2`),
		s.plan(t, `get c select id where id in [$1, $1 + 1] and $2 = $2`),
		s.plan(t, `get c where m < $1 and $2 = $2 count`),
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 15 {
				n := int64(worker*100 + i)
				env := &Env{Params: []doc.Value{doc.IntValue(n + 1), doc.TextValue([]byte("NUMBER"))}, Now: testNow}
				want := []string{"", fmt.Sprintf(`[{"id":%d},{"id":%d}]`, n+1, n+2), fmt.Sprintf(`[{"count":%d}]`, n+1)}
				for j, p := range plans {
					r, err := p.Run(env, s, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if want[j] != "" && string(r.Body) != want[j] || want[j] == "" && (r.Rows != 2 || !strings.Contains(string(r.Body), "document number")) {
						t.Errorf("with %d: %s, want %s", n, r.Body, want[j])
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestNowIsReadOnceARun(t *testing.T) {
	db := newMemory()
	db.must(t, `create collection c (a timestamp, b timestamp)`)
	db.must(t, `put c [{a: now(), b: now()}, {a: now()}]`)
	p, err := db.prepare(`get c where a = now() count`)
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[time.Time]string{testNow: `[{"count":2}]`, testNow.Add(time.Millisecond): `[{"count":0}]`} {
		if r, err := p.Run(&Env{Now: now}, db, nil); err != nil || string(r.Body) != want {
			t.Errorf("at %v: %s %v", now, r.Body, err)
		}
	}
}

// FuzzStatements prepares and runs whatever parses: nothing may panic, and results are JSON.
func FuzzStatements(f *testing.F) {
	for _, seed := range []string{
		`get c where n = 1 and j.v > 2 or s ~ "x" order j.v desc, id limit 3 offset 1`,
		`get c select n + 1, lower(s), [n, {a: t}] as l, case when b then 1 else "x" end as e`,
		`set c {n: n + 1, j.a.b: [s], l: [1, 2]} where id in [1, 2] order n limit 1 returning * require 1`,
		`put c [{n: 1, j: {a: 1}, j2: 3}, {id: 5, t: now(), y: "aGk="}]`,
		`insert into c {id: 9223372036854775807, n: -9223372036854775808}`,
		`del c where l has 1 and t + 1000 > now() - 5`,
		`explain get c where n in [1, 2] and s >= "a" order t desc`,
		`create collection d (a int @unique, b [text], c json)`,
		`create index if not exists on c (j.q.r) @sorted`,
		`get c where n < 1e400 and x > -0.0 and bucket(t, 60000) = "2024-01-01" count`,
		`alter collection c add field z [text]`, `alter collection c rename field j to k`, `alter collection c drop field j`,
		`create index on c (t) @ttl(30m)`, `alter collection e add field o timestamp @ttl(1s)`, `alter collection e drop field t`,
		`get e order t desc limit 2`, `set e {t: 0} where n > 1 returning *`, `insert e [{id: 1}, {id: 2, t: now()}]`,
		`drop collection if exists c`, `describe c`, `collections`, `compact`,
		`get f near v [1, 0] ef 3 limit 2 offset 1`, `get f where n > 1 near v "[0, 1]" exact`, `get f near w $1`, `get f near p "{1:2}/9" where n = 1`,
		`get f match t "fox" order n desc limit 1`, `get f match t $1 rerank v [1, 1] candidates 3`, `get f near v [1, 0] match t "fox bear" fuse k 1 candidates 2`,
		`explain get f near v [1, 0] match t "fox" fuse where n in (get f select n near p "{1:1}/9")`, `create collection g (v vector<3, f16> @hnsw(l2, m=2, quant=bit), t text @text(prefix=3, chars), p sparse<7>)`,
		`get v where cosine(v, [1, 0.5]) > 0.5 and l2(h, v) <= norm("[3,4]") or dot(p, "{1:2}/5") = 1 order id`,
		`put v {v: [1, 1e-3], h: "[2, 65504]", p: "{5:1,2:0.5}/5", j: {v: [1]}}`, `get v where v in ["[1,2]", [3, 4]] or p = "{}/5"`,
		`set v {v: normalize(h), h: v, j: {a: v, b: p}, t: null} returning *, norm(normalize(v)) as one`,
		`get v select v, count(*), max(t) group v having v != [0, 0]`, `get v select case when t = "x" then v else [id, 2] end as c, len(h)`,
		`alter collection v add field w vector<3, f16> @hnsw(l2, m=8)`, `create index on v (p) @inverted`, `create index on v (v) @hnsw(quant=bit)`,
		`create collection w (v vector<4> required @hnsw(dot), t text collate und @text(k1=1, prefix=4), s sparse<9>)`,
	} {
		f.Add(seed)
	}
	base := newMemory()
	for _, statement := range []string{
		`create collection c (n int @sorted, x float, s text @hash, b bool, t timestamp @sorted, l [int], j json, y bytes)`,
		`create collection v (v vector<2>, h vector<2, f16>, p sparse<5>, t text collate tr, j json)`,
		`put v [{v: [1, 2], h: [0.5, 3], p: "{1:2,3:0.5}/5", t: "x", j: [1, 2]}, {v: [0, 0]}, {}]`,
		`create index on c (j.v) @sorted`, `create collection e (n int @sorted, t timestamp @ttl(1m))`, `put e [{n: 1, t: 0}, {n: 2}]`,
		`put c [{n: 1, x: 1.5, s: "x", b: true, t: 5, l: [1, 2], j: {v: 1}, y: "aGk="}, {n: 2, j: {v: "x", a: {b: 1}}}, {}, {s: "ß", j: [1]}]`,
		`create collection f (n int @sorted, t text @text, v vector<2> @hnsw, w vector<2, f16>, p sparse<9> @inverted)`,
		`put f [{n: 1, t: "a fox", v: [1, 0], w: [1, 0], p: "{1:1}/9"}, {n: 2, t: "fox and bear", v: [0, 1], w: [0, 1], p: "{2:1}/9"}, {n: 3}, {n: 4, t: "bear", v: [1, 1], w: [1, 1], p: "{1:2,2:2}/9"}]`,
	} {
		base.must(f, statement)
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := syntax.Parse(text)
		if err != nil {
			return
		}
		db := base.snapshot()
		p, err := Prepare(st, db)
		if err != nil {
			if fail.KindOf(err) == 0 {
				t.Fatalf("%s: an error of no kind: %v", text, err)
			}
			return
		}
		params := make([]doc.Value, min(p.params, 100))
		for i := range params {
			params[i] = doc.Value{Kind: doc.Untyped, B: []byte([]string{"1", "[1,2]", "x"}[i%3])}
		}
		r, err := p.Run(&Env{Params: params, Now: testNow}, db, nil)
		if err != nil {
			if fail.KindOf(err) == 0 {
				t.Fatalf("%s: an error of no kind: %v", text, err)
			}
			return
		}
		if r.Kind == Rows {
			if _, err := doc.ParseJSON(nil, r.Body); err != nil && !strings.Contains(err.Error(), "deep") {
				t.Fatalf("%s answers no JSON: %v: %s", text, err, r.Body)
			}
		}
	})
}
