package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// collecting is a feed that records the blocks that land.
type collecting struct {
	recorder
	blocks [][]byte
}

func (c *collecting) Landed(b Landed) {
	if b.Ticket != 0 {
		c.blocks = append(c.blocks, bytes.Clone(RecordAt(b.Memory[b.Start:])))
	}
}

// copies are a database that accepts writes and one that follows it record by record.
type copies struct {
	fs, followerFS   *crashfs.FS
	leader, follower *DB
	feed             *collecting
	now              time.Time
}

func (c *copies) clock() time.Time { return c.now }

func (c *copies) leaderOptions() Options {
	c.feed = new(collecting)
	return Options{FS: c.fs, Sync: always, Feed: c.feed, Clock: c.clock, KeyTTL: time.Minute}
}

func (c *copies) followerOptions() Options {
	return Options{FS: c.followerFS, Sync: always, Follower: true, Clock: c.clock}
}

func newCopies(tb rapid.TB) *copies {
	tb.Helper()
	c := &copies{fs: crashfs.New(1), followerFS: crashfs.New(2), now: time.UnixMilli(1_700_000_000_000)}
	var err error
	if c.leader, err = Create(file, c.leaderOptions()); err != nil {
		tb.Fatal(err)
	}
	mustExec(tb, c.leader, `create collection c (n int @sorted, tag text @hash, u int @unique, j json, v vector<2> @hnsw(l2), s sparse<9> @inverted, t text @text, at timestamp @ttl(10s))`)
	if _, err := c.leader.Freeze(); err != nil {
		tb.Fatal(err)
	}
	b, _ := image(tb, c.leader)
	c.leader.Thaw()
	if c.follower, err = InstallImage(file, bytes.NewReader(b), c.followerOptions()); err != nil {
		tb.Fatal(err)
	}
	c.feed.blocks = nil
	return c
}

func (c *copies) close() {
	c.leader.Close()
	c.follower.Close()
}

// missing returns the records that the follower does not have, in order.
func (c *copies) missing() (records []wal.Record) {
	c.leader.mu.RLock()
	forks := c.leader.forksLocked(c.follower.history.Term)
	c.leader.mu.RUnlock()
	at := c.follower.seq
	forked := func() {
		for len(forks) > 0 && forks[0].at == at {
			records = append(records, wal.Record{Kind: wal.Fork, Data: forks[0].record()})
			forks = forks[1:]
		}
	}
	forked()
	for _, b := range c.feed.blocks {
		if after := Record(b).After(); after > at {
			records = append(records, wal.Record{Kind: wal.Block, Data: b})
			at = after
			forked()
		}
	}
	return records
}

// catchUp feeds the follower the records that it does not have.
func (c *copies) catchUp(tb rapid.TB) {
	if err := c.follower.Follow(context.Background(), c.missing()...); err != nil {
		tb.Fatal(err)
	}
}

// content returns all content of a database, byte for byte, including internal collections.
func content(db *DB) string {
	out := fmt.Sprintf("change %d of %s, %d tables handed out, left %v\n", db.seq, db.historyText, db.counted, db.left)
	for _, name := range slices.Sorted(maps.Keys(db.tables)) {
		t := db.tables[name]
		out += fmt.Sprintf("%s: number %d, next %d, live %d, %x\n", name, t.number, t.next, t.live, t.schema.AppendBinary(nil))
		t.Ascend(1, func(d doc.Document) bool {
			out += fmt.Sprintf("%x\n", []byte(d))
			return true
		})
		for _, x := range t.indexes.Indexes() {
			out += fmt.Sprintf("index on %s: %v\n", x.On(), x.Kind())
		}
	}
	return out
}

// questions use every index.
var questions = []string{
	`get c order n, id`, `get c where tag = "a"`, `get c where u = 1`, `get c near v [1, 1] exact limit 20`, `get c near s "{1:1}/9" limit 20`,
	`get c match t "one"`, `get c where at > now() order id`, `get c where n > 1 order n, id`,
}

func (c *copies) compare(t rapid.TB) {
	t.Helper()
	if one, two := content(c.leader), content(c.follower); one != two {
		t.Fatalf("the leader holds\n%s\nand the follower\n%s", one, two)
	}
	compareSums(t, c.leader, c.follower)
	for _, db := range []*DB{c.leader, c.follower} {
		for _, name := range db.names {
			checkIndexes(t, db, db.tables[name])
		}
	}
	for _, text := range questions {
		a, errA := exec(c.leader, text)
		b, errB := exec(c.follower, text)
		if string(a.Body) != string(b.Body) || fail.KindOf(errA) != fail.KindOf(errB) {
			t.Fatalf("%s is answered %s, %v by the leader and %s, %v by the follower", text, a.Body, errA, b.Body, errB)
		}
	}
}

func followed(t *rapid.T) string {
	return fmt.Sprintf(`{n: %d, tag: %s, u: %d, v: [%d, 1], s: "{1:%d}/9", t: "one two", at: %d}`, rapid.IntRange(0, 4).Draw(t, "n"),
		texts.Draw(t, "tag"), rapid.IntRange(0, 99).Draw(t, "u"), rapid.IntRange(0, 9).Draw(t, "v"), rapid.IntRange(1, 9).Draw(t, "s"),
		1_700_000_000_000+rapid.IntRange(0, 60_000).Draw(t, "at"))
}

// TestAFollowerEqualsItsLeader feeds a second database record by record. After random statements, alters, drops, and compacts and
// crashes of either, it holds the same bytes, and its indexes match its documents.
func TestAFollowerEqualsItsLeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCopies(t)
		defer func() { c.close() }()
		keys, fields := 0, 0
		try := func(text string) { _, _ = exec(c.leader, text) } // a refused statement leaves no record
		t.Repeat(map[string]func(*rapid.T){
			"put":      func(t *rapid.T) { try(`put c ` + followed(t)) },
			"put some": func(t *rapid.T) { try(`put c [` + followed(t) + `, ` + followed(t) + `, ` + followed(t) + `]`) },
			"set": func(t *rapid.T) {
				try(fmt.Sprintf(`set c {n: n + 1, v: [n, 2], t: "two three", j: {k: n}} where n = %d`, rapid.IntRange(0, 4).Draw(t, "where")))
			},
			"delete": func(t *rapid.T) {
				try(fmt.Sprintf(`del c where n = %d limit 2`, rapid.IntRange(0, 4).Draw(t, "where")))
			},
			"batch": func(t *rapid.T) {
				_, _, _ = c.leader.Batch(context.Background(), Everything(), statements1(`put c `+followed(t), `set c {tag: "b"} where tag = "a"`, `del c where n = 0`))
			},
			"under a key": func(t *rapid.T) {
				keys++
				o := &Once{Key: fmt.Sprint(keys), Answer: func([]Result) (int, []byte) { return 200, []byte("{}") }}
				_, _ = c.leader.Run(context.Background(), Everything(), &Request{Statements: statements1(`put c ` + followed(t)), Once: o})
			},
			"consume":    func(t *rapid.T) { _, _, _ = c.leader.SetConsumer(Everything(), nil, Consumer{"reader", c.leader.seq}) },
			"add field":  func(*rapid.T) { fields++; try(fmt.Sprintf(`alter collection c add field x%d int`, fields)) },
			"drop field": func(*rapid.T) { try(fmt.Sprintf(`alter collection c drop field x%d`, fields)) },
			"index":      func(*rapid.T) { try(`create index on c (j.k) @sorted`) },
			"no index":   func(*rapid.T) { try(`drop index on c (j.k)`) },
			"another":    func(*rapid.T) { try(`create collection d (x int @sorted)`); try(`put d [{x: 1}, {x: 2}]`) },
			"drop":       func(*rapid.T) { try(`drop collection d`) },
			"time": func(t *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
				if _, err := c.leader.Expire(); err != nil {
					t.Fatal(err)
				}
			},
			"compact": func(t *rapid.T) { mustExec(t, c.leader, `compact`) },
			"compact the follower": func(t *rapid.T) {
				if err := c.follower.Compact(context.Background()); err != nil {
					t.Fatal(err)
				}
			},
			"reopen":    func(t *rapid.T) { c.restart(t, false) },
			"crash":     func(t *rapid.T) { c.restart(t, true) },
			"reopen it": func(t *rapid.T) { c.restartFollower(t, false) },
			"crash it":  func(t *rapid.T) { c.restartFollower(t, true) },
			"its disk":  func(t *rapid.T) { try(`put c ` + followed(t)); c.failingDisk(t) },
			"":          func(t *rapid.T) { c.catchUp(t); c.compare(t) },
		})
	})
}

// restart closes or crashes the leader once the follower has caught up.
func (c *copies) restart(t *rapid.T, crash bool) {
	c.catchUp(t)
	if crash {
		fs := c.fs.Crash()
		c.leader.Close()
		c.fs = fs
	} else if err := c.leader.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.leader, err = Open(file, c.leaderOptions()); err != nil {
		t.Fatal(err)
	}
}

func (c *copies) restartFollower(t *rapid.T, crash bool) {
	if crash {
		fs := c.followerFS.Crash()
		c.follower.Close()
		c.followerFS = fs
	} else {
		c.follower.Close() // it may have failed
	}
	var err error
	if c.follower, err = Open(file, c.followerOptions()); err != nil {
		t.Fatal(err)
	}
}

// failingDisk fails the disk of the follower while it catches up. Its content is then unchanged, and it continues once it is
// reopened.
func (c *copies) failingDisk(t *rapid.T) {
	for _, r := range c.missing() {
		before := content(c.follower)
		c.followerFS.FailFrom(rapid.IntRange(1, 3).Draw(t, "operation"), fmt.Errorf("input/output error"))
		err := c.follower.Follow(context.Background(), r)
		c.followerFS.Heal()
		if err == nil {
			continue
		}
		if after := content(c.follower); after != before {
			t.Fatalf("after %v the follower holds\n%s\nand before\n%s", err, after, before)
		}
		if err := c.follower.Follow(context.Background(), r); err == nil {
			t.Fatal("a failed copy takes more")
		}
		c.restartFollower(t, false)
		return
	}
}

func TestAFollowerRefusesRecordsThatDoNotContinueIt(t *testing.T) {
	c := newCopies(t)
	defer c.close()
	mustExec(t, c.leader, `put c {n: 1, tag: "a"}`)
	mustExec(t, c.leader, `put c {n: 2, tag: "b"}`)
	one, two := c.feed.blocks[0], c.feed.blocks[1]
	before := content(c.follower)
	follow := func(kind wal.Kind, data []byte) error {
		return c.follower.Follow(t.Context(), wal.Record{Kind: kind, Data: data})
	}
	damaged := bytes.Clone(one)
	damaged[recordHead] = 99
	head := appendHead(bytes.Clone(one[:recordHead]), head{Seq: 1})
	half := appendNumbers(bytes.Clone(one), opDelete, 99, 1)
	binary.LittleEndian.PutUint64(half[wal.HeaderSize:], Record(one).After()+1)
	for name, tc := range map[string]struct {
		kind wal.Kind
		data []byte
		want fail.Kind
	}{
		"a block too early":               {wal.Block, two, fail.Conflict},
		"a block cut short":               {wal.Block, one[:len(one)-1], fail.Damaged},
		"a block of no operation":         {wal.Block, damaged, fail.Damaged},
		"a block of which half fits":      {wal.Block, half, fail.Damaged},
		"a block without changes":         {wal.Block, one[:recordHead], fail.Damaged},
		"a block that holds a head":       {wal.Block, head, fail.Damaged},
		"half a head":                     {wal.Block, one[:wal.HeaderSize+3], fail.Damaged},
		"an image":                        {wal.Image, one, fail.Damaged},
		"a fork at another change":        {wal.Fork, fork{c.follower.nextHistory(c.leader.own), 7}.record(), fail.Conflict},
		"a fork of another database":      {wal.Fork, fork{historyOf(9, 1, 1), c.follower.seq}.record(), fail.Conflict},
		"a fork that is back in its time": {wal.Fork, fork{c.follower.history, c.follower.seq}.record(), fail.Conflict},
		"a fork cut short":                {wal.Fork, make([]byte, wal.HeaderSize+5), fail.Damaged},
		"nothing":                         {wal.Fork, nil, fail.Damaged},
	} {
		if err := follow(tc.kind, tc.data); fail.KindOf(err) != tc.want {
			t.Errorf("%s: error %v, want kind %d", name, err, tc.want)
		}
		if after := content(c.follower); after != before {
			t.Fatalf("%s left\n%s\nof\n%s", name, after, before)
		}
	}
	for _, text := range []string{`put c {n: 9}`, `del c`, `create collection e (x int)`} {
		_, err := exec(c.follower, text)
		wantKind(t, err, fail.Follows)
	}
	wantKind(t, c.leader.Follow(t.Context(), wal.Record{Kind: wal.Block, Data: one}), fail.Invalid)
	c.catchUp(t)
	wantKind(t, follow(wal.Block, one), fail.Conflict)
	c.compare(t)
}
