package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// run runs one statement within an account, over a copy of the database.
func (m *memory) within(t testing.TB, a *Account, text string, params ...doc.Value) (Result, error) {
	t.Helper()
	over := m.snapshot()
	st, err := syntax.ParseCounted(text, func(tokens int) error { return a.Hold(int64(tokens)*TokenBytes, "being read") })
	if err != nil {
		return Result{}, err
	}
	p, err := Prepare(st, over)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p.Run(&Env{Ctx: context.Background(), Params: params, Now: testNow, Account: a}, over, nil)
}

// crowded is a database of statements that take much memory, of which tests run theirs over copies.
var crowded = sync.OnceValue(func() *memory {
	db := newMemory()
	for _, text := range []string{
		"create collection c (n int @sorted, k int, s text, t text collate und, j json, w text @text)",
		"create collection d (c int @hash, s text, n int @sorted)",
		"create collection e (v vector<2> @hnsw(cosine, m=2, ef_construction=4))",
		"put d [" + strings.Repeat(`{c: 1, s: "a text of a child", n: 1},`, 20_000) + "{c: 2}]",
		"put c [" + numbered(6_000, `{n: %[1]d, k: %[1]d, s: "s%[1]d", t: "t%[1]d", j: {a: 1}, w: "w"}`) + "]",
		"put e [" + numbered(6000, `{v: [1, %d]}`) + "]",
	} {
		if _, err := db.exec(text); err != nil {
			panic(err)
		}
	}
	return db
})

// numbered is items made of a format and the numbers below n.
func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

// many is n values as a list.
func many(n int) doc.Value {
	list, at := doc.OpenList(nil)
	for i := range n {
		list = doc.Append(list, doc.IntValue(int64(i)))
	}
	list, err := doc.Close(list, at)
	if err != nil {
		panic(err)
	}
	return doc.Raw(list).Value()
}

func TestWhatAStatementHoldsIsBounded(t *testing.T) {
	db := crowded()
	for name, c := range map[string]struct {
		statement string
		params    []doc.Value
		doing     string
	}{
		"an answer":                       {statement: "get c", doing: "scanning c"},
		"an answer with computed values":  {statement: "get c select [s, s, s, s, s, s, s, s, s, s] as l", doing: "scanning c"},
		"a sort":                          {statement: "get c select 1 as one order k limit 1 offset 5900", doing: "scanning c"},
		"a sort of what a set is to pick": {statement: "set c {k: 1} order s limit 5900", doing: "scanning c"},
		"texts of a sort":                 {statement: "get c order s, t, j, j.a, j.b, j.c, j.d, j.e, j.f limit 3000", doing: "scanning c"},
		"groups":                          {statement: "get c select k, count(*) group k having k < 0", doing: "grouping c"},
		"groups of a text":                {statement: "get c select s, min(t), max(t) group s having s = 'x'", doing: "grouping c"},
		"distinct values":                 {statement: "get c select count(distinct s)", doing: "grouping c"},
		"the keys of sorted groups":       {statement: "get c select t, count(*) group t order t collate tr limit 1", doing: "grouping c"},
		"an answer of groups":             {statement: "get c select s, min(t), max(t) group s", doing: "grouping c"},
		"a list of parameters":            {statement: "get c where k in $1 count", params: []doc.Value{many(100_000)}, doing: "about to begin"},
		"a list written out":              {statement: "get c where k in [0" + strings.Repeat(",1", 20_000) + "] count", doing: "being read"},
		"terms":                           {statement: "get c where k = 1" + strings.Repeat(" or k=1", 1_100) + " count", doing: "being read"},
		"rows written out":                {statement: "put d [{}" + strings.Repeat(",{c:1}", 1_000) + "]", doing: "being read"},
		"an inner get":                    {statement: "get c where s in (get c select s) count", doing: "about to begin"},
		"a sorted inner get":              {statement: "get c where k in (get c select k order s) count", doing: "scanning c"},
		"a lookup":                        {statement: "get c where id = 1 lookup d on c", doing: "looking up d for the rows of c"},
		"a sorted lookup":                 {statement: "get c where id = 1 lookup d on c order s limit 1 offset 19000", doing: "looking up d for the rows of c"},
		"rows that are returned":          {statement: "set c {k: 1} returning *", doing: "writing c"},
		"rows that an insert returns": {
			statement: "insert into d $1 if absent returning *", doing: "writing d",
			params: []doc.Value{{Kind: doc.Untyped, B: []byte("[" + numbered(6_000, `{"n": %d}`) + "]")}},
		},
		"ids that are to be written": {statement: "del d where c >= 0", doing: "writing d"},
		"ids from an index":          {statement: "set d {s: 'x'} where n >= 0", doing: "writing d"},
		"a match in an order":        {statement: "get c match w 'w' order k limit 1 offset 5900", doing: "searching c"},
		"the words of a match":       {statement: "get c match w $1 limit 1", params: []doc.Value{doc.TextValue([]byte(strings.Repeat("a ", 30_000)))}, doing: "searching c"},
		"a near far and wide":        {statement: "get e near v [1, 2] ef 10000 limit 1", doing: "searching e"},
		"an explain":                 {statement: "explain get c order s limit 5900", doing: "scanning c"},
	} {
		t.Run(name, func(t *testing.T) {
			small := &Account{Most: 160 << 10}
			_, err := db.within(t, small, c.statement, c.params...)
			if fail.KindOf(err) != fail.TooLarge || !strings.HasPrefix(err.Error(), "the statement needs more than the 0 MiB of memory that one may hold: it was "+c.doing) {
				t.Fatalf("within 160 KiB: %v", err)
			}
			if _, err := db.within(t, &Account{}, c.statement, c.params...); err != nil {
				t.Errorf("within the usual: %v", err)
			}
		})
	}
}

func TestWhatAStatementHeldIsCountedOffButForItsAnswer(t *testing.T) {
	db := crowded()
	for _, statement := range []string{
		"get c order s limit 1 offset 5900", "get c where s in (get c select s) order t limit 3", "get c select s, count(*) group s limit 1",
		"get c where id = 1 lookup d on c order s limit 1", "set c {k: 1} where k >= 0",
	} {
		a := &Account{}
		if _, err := db.within(t, a, statement); err != nil || a.Held() > 1<<10 {
			t.Errorf("%s: %v, %d bytes stay counted", statement, err, a.Held())
		}
	}
	a := &Account{}
	r, err := db.within(t, a, "get c")
	if err != nil || a.Held() != int64(cap(r.Body)) {
		t.Errorf("an answer of %d bytes: %v, %d are counted", cap(r.Body), err, a.Held())
	}
	if _, err := db.within(t, a, "get c order s, k select [s, s] as l, k / 0 as n"); err == nil || a.Held() != int64(cap(r.Body)) {
		t.Errorf("a run that failed: %v, %d bytes are counted beside the %d of before", err, a.Held(), cap(r.Body))
	}
}

// shared is a Budget.
type shared struct{ room, least int64 }

func (s *shared) Take(n int64) bool {
	if n > s.room {
		return false
	}
	s.room -= n
	s.least = min(s.least, s.room)
	return true
}

func (s *shared) Give(n int64) { s.room += n }

func TestStatementsShareABudget(t *testing.T) {
	db := crowded()
	s := &shared{room: 8 << 20, least: 8 << 20}
	first := &Account{Budget: s}
	r, err := db.within(t, first, "get c order s")
	if err != nil {
		t.Fatal(err)
	}
	kept := first.Settle(int64(cap(r.Body)))
	if kept != int64(cap(r.Body)) || s.room != 8<<20-kept || s.least >= s.room {
		t.Errorf("of 8 MiB %d are left and were %d at least, an answer of %d keeps %d", s.room, s.least, cap(r.Body), kept)
	}
	s.room = 256 << 10
	second := &Account{Budget: s}
	if _, err := db.within(t, second, "get c order s"); fail.KindOf(err) != fail.Busy || !strings.Contains(err.Error(), "the statement was scanning c, ") {
		t.Errorf("without room: %v", err)
	}
	if second.Settle(0); s.room != 256<<10 {
		t.Errorf("a statement that was refused keeps %d bytes", 256<<10-s.room)
	}
	least := s.least
	if _, err := db.within(t, &Account{Budget: s}, "get c where k < 100 order s"); err != nil || s.least != least {
		t.Errorf("a small statement asked for room: %v", err)
	}
}

func TestAnAnswerThatIsTooLongIsNone(t *testing.T) {
	db := crowded()
	for _, most := range []int{1, 100, 200 << 10} {
		if _, err := db.within(t, &Account{MostAnswer: most}, "get c"); !errors.Is(err, ErrLongAnswer) {
			t.Errorf("past %d bytes: %v", most, err)
		}
	}
	if r, err := db.within(t, &Account{MostAnswer: len("[]")}, "get c where k < 0"); err != nil || len(r.Body) != 2 {
		t.Errorf("an answer that fits: %v", err)
	}
}

// looks counts the looks at a context.
type looks struct {
	context.Context
	n int
}

func (l *looks) Err() error {
	l.n++
	return nil
}

func TestASortChecksItsContextByTheNumberOfKeys(t *testing.T) {
	db := newMemory()
	db.must(t, "create collection c (j json, s text)")
	rows := strings.Repeat(`{s: "the same"},`, 2000)
	db.must(t, "put c ["+rows+"{}]")
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("j.k%d", i)
	}
	for name, c := range map[string]struct {
		statement string
		keys      int
	}{
		"a sort of all":           {"get c select id order " + strings.Join(keys, ", "), len(keys)},
		"a sort of the first few": {"get c select id order " + strings.Join(keys, ", ") + " limit 50", len(keys)},
		"one of groups":           {"get c select s, count(*) group s order s", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := db.prepare(c.statement)
			if err != nil {
				t.Fatal(err)
			}
			ctx := &looks{Context: context.Background()}
			if _, err := p.Run(&Env{Ctx: ctx, Now: testNow}, db, nil); err != nil {
				t.Fatal(err)
			}
			// Each row is compared with another at least, key by key.
			if least := 2000 * c.keys / comparesPerCheck; ctx.n < least {
				t.Errorf("%d looks, want %d at least", ctx.n, least)
			}
			stops := &limited{endAfter{Context: context.Background(), end: max(1, ctx.n/2), err: context.Canceled}}
			if _, err := p.Run(&Env{Ctx: stops, Now: testNow}, db, nil); ctx.n > 1 && fail.KindOf(err) != fail.Canceled {
				t.Errorf("given up half-way: %v", err)
			}
		})
	}
}

func TestARowWithManyConditionsChecksTheContextOften(t *testing.T) {
	db := newMemory()
	db.must(t, "create collection c (n int)")
	db.must(t, "create collection few (n int)")
	db.must(t, "put c ["+strings.Repeat("{n: 1},", 4000)+"{}]")
	db.must(t, "put few ["+strings.Repeat("{n: 1},", 400)+"{}]")
	for terms, least := range map[int]int{1: 1, 100: 3, 10_000: 50} {
		collection := "c"
		if terms == 10_000 {
			collection = "few" // a look for each eight rows
		}
		p, err := db.prepare("get " + collection + " where n < 0" + strings.Repeat(" or n = 2", terms) + " count")
		if err != nil {
			t.Fatal(err)
		}
		ctx := &looks{Context: context.Background()}
		if _, err := p.Run(&Env{Ctx: ctx, Now: testNow}, db, nil); err != nil || ctx.n < least {
			t.Errorf("%d terms: %v, %d looks at the context, want %d at least", terms, err, ctx.n, least)
		}
	}
}

func TestTheAnswerOfADescribeIsCounted(t *testing.T) {
	db := newMemory()
	fields := make([]string, 2000)
	for i := range fields {
		fields[i] = fmt.Sprintf("field_%d_of_many int", i)
	}
	db.must(t, "create collection c ("+strings.Join(fields, ", ")+")")
	a := &Account{Budget: &shared{room: 1 << 20}}
	r, err := db.within(t, a, "describe c")
	if err != nil {
		t.Fatal(err)
	}
	if kept := a.Settle(int64(cap(r.Body))); cap(r.Body) <= Uncounted || kept != int64(cap(r.Body)) {
		t.Errorf("of an answer that takes %d bytes %d are counted", cap(r.Body), kept)
	}
}
