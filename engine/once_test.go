package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// keyed runs statements under a key, one as a single statement and more as a batch. The answer is the change and the affected
// rows.
func keyed(db *DB, key string, texts ...string) (answer string, kept *Kept, err error) {
	o := &Once{Key: key, Request: sha256.Sum256([]byte(strings.Join(texts, "\n")))}
	o.Answer = func(results []Result) (int, []byte) {
		for _, r := range results {
			answer += fmt.Sprintf("%d affected, at %d;", r.Affected, r.Seq)
		}
		return 200 + len(results), []byte(answer)
	}
	reply, err := db.Run(context.Background(), Everything(), &Request{Statements: statements1(texts...), Once: o})
	if err == nil && len(texts) == 1 && reply.Kept == nil && answer != "" && reply.Result.Seq != db.seq {
		err = fmt.Errorf("the result is of change %d, the database at %d", reply.Result.Seq, db.seq)
	}
	if reply.Kept != nil {
		answer = string(reply.Kept.Body)
	}
	return answer, reply.Kept, err
}

func sweep(db *DB) error {
	_, err := db.Expire()
	return err
}

func keysKept(db *DB) int {
	if t := db.tables[keysName]; t != nil {
		return t.Len()
	}
	return 0
}

func TestAWriteUnderAKeyRunsOnce(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	for _, texts := range [][]string{
		{`put c {n: 1}`},
		{`set c {n: n + 1}`},
		{`del c where n = 99`},
		{`put c {n: 5}`, `get c count`, `set c {n: n + 1} where n = 5`},
		{`create collection d (x text)`},
		{`create index on c (n) @sorted`},
		{`drop collection d`},
	} {
		name := strings.Join(texts, "; ")
		key := "key of " + name
		before := db.seq
		first, kept, err := keyed(db, key, texts...)
		if err != nil || kept != nil || first == "" {
			t.Fatalf("%s: answered %q, %v, %v", name, first, kept, err)
		}
		seq, history := db.Position()
		if seq == before {
			t.Errorf("%s: the key is no change", name)
		}
		mustExec(t, db, `set c {n: n}`) // advances the change number
		state := everything(t, db)
		again, kept, err := keyed(db, key, texts...)
		if err != nil || kept == nil {
			t.Fatalf("%s, sent again: %v, %v", name, kept, err)
		}
		if again != first || kept.Status != 200+len(texts) || kept.Seq != seq || kept.History != history {
			t.Errorf("%s, sent again: %q %+v, the first answer was %q at %d of %s", name, again, kept, first, seq, history)
		}
		if _, _, err = keyed(db, key, append(texts, `get c`)...); fail.KindOf(err) != fail.Reused {
			t.Errorf("%s: another request under the key: %v", name, err)
		}
		if got := everything(t, db); got != state {
			t.Errorf("%s: sending it again changed\n%s to\n%s", name, state, got)
		}
	}
}

func TestStatementsThatStoreNoKey(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int @unique)`)
	mustExec(t, db, `put c {n: 1}`)
	state := everything(t, db)
	for _, tc := range []struct {
		name  string
		texts []string
		want  fail.Kind
	}{
		{"a value that is taken", []string{`put c {n: 1}`}, fail.Conflict},
		{"a write that requires more", []string{`del c where n = 1 require 2`}, fail.Require},
		{"an unknown collection", []string{`put d {n: 1}`}, fail.NotFound},
		{"what is no statement", []string{`putt`}, fail.Invalid},
		{"a batch that fails at its end", []string{`put c {n: 2}`, `put c {n: 1}`}, fail.Conflict},
		{"a batch that writes and compacts", []string{`put c {n: 2}`, `compact`}, fail.Invalid},
		{"a read", []string{`get c`}, 0},
		{"reads", []string{`get c`, `describe c`}, 0},
		{"a compact", []string{`compact`}, 0},
	} {
		for range 2 {
			if _, kept, err := keyed(db, "k", tc.texts...); kept != nil || fail.KindOf(err) != tc.want {
				t.Errorf("%s: %v, %v", tc.name, kept, err)
			}
		}
		if got := everything(t, db); got != state {
			t.Fatalf("%s changed\n%s to\n%s", tc.name, state, got)
		}
	}
	if first, kept, err := keyed(db, "k", `put c {n: 2}`); first == "" || kept != nil || err != nil {
		t.Errorf("the key of failed writes and reads is not free: %v, %v", kept, err)
	}
}

func TestAKeyIsShortPrintableASCII(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	for key, want := range map[string]fail.Kind{
		"": fail.Invalid, "a\tb": fail.Invalid, "é": fail.Invalid, strings.Repeat("k", MaxKey+1): fail.Invalid,
		"k": 0, `"8e03978e-40d5"`: 0, "two words": 0, strings.Repeat("k", MaxKey): 0,
	} {
		if _, _, err := keyed(db, key, `put c {n: 1}`); fail.KindOf(err) != want || (err == nil) != (want == 0) {
			t.Errorf("%q: %v", key, err)
		}
		if _, _, err := keyed(db, key, `get c`); err != nil {
			t.Errorf("a read under %q: %v", key, err)
		}
	}
}

func TestNoStatementSeesTheKeys(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	if _, _, err := keyed(db, "k", `put c {n: 1}`); err != nil {
		t.Fatal(err)
	}
	wantRows(t, db, `collections`, `[{"name":"c","documents":1}]`)
	if got := collections(t, db); len(got) != 1 || db.Stats().Documents != 1 {
		t.Errorf("listed are %v, counted %d", got, db.Stats().Documents)
	}
	for _, text := range []string{
		`get _idempotency`, `get _idempotency count`, `explain get _idempotency`, `describe _idempotency`, `put _idempotency {key: "x"}`,
		`set _idempotency {key: "x"}`, `del _idempotency`, `drop collection _idempotency`, `create collection _idempotency (n int)`,
		`create index on _idempotency (at) @sorted`, `compact _idempotency`,
	} {
		if _, err := exec(db, text); fail.KindOf(err) != fail.NotFound && fail.KindOf(err) != fail.Invalid {
			t.Errorf("%s: %v", text, err)
		}
	}
	mustExec(t, db, `drop collection if exists _idempotency`)
	if keysKept(db) != 1 {
		t.Error("the key is gone")
	}
}

func TestKeysExpire(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	db := inMemory(t, Options{Clock: func() time.Time { return now }, KeyTTL: time.Hour})
	mustExec(t, db, `create collection c (n int)`)
	put := func(key string) (replayed bool) {
		t.Helper()
		_, kept, err := keyed(db, key, `put c {n: 1}`)
		if err != nil {
			t.Fatal(err)
		}
		return kept != nil
	}
	for i := range 10 {
		put(fmt.Sprint(i))
	}
	now = now.Add(time.Hour - time.Millisecond)
	if err := sweep(db); err != nil || keysKept(db) != 10 || !put("9") {
		t.Fatalf("keys went before their time: %v", err)
	}
	now = now.Add(time.Millisecond)
	if put("9") {
		t.Error("an answer was kept past its time")
	}
	if got, want := keysKept(db), 10-sweptBeside; got != want {
		t.Errorf("beside a new key %d are there, want %d", got, want)
	}
	before := db.seq
	if err := sweep(db); err != nil {
		t.Fatal(err)
	}
	if keysKept(db) != 1 || db.seq != before+5 || !put("9") {
		t.Errorf("%d keys are left, the sweep was %d changes", keysKept(db), db.seq-before)
	}
	if err := sweep(db); err != nil || db.seq != before+5 {
		t.Errorf("a sweep of nothing is a change: %v", err)
	}
	wantRows(t, db, `get c count`, `[{"count":11}]`)
}

// A database that refuses writes still returns stored answers.
func TestAFrozenAndAReadOnlyDatabaseReplay(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int)`)
	first, _, err := keyed(db, "k", `put c {n: 1}`)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if again, kept, err := keyed(db, "k", `put c {n: 1}`); again != first || kept == nil {
			t.Errorf("%q, %v", again, err)
		}
		if err := sweep(db); err != nil {
			t.Error(err)
		}
	}
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	check()
	_, _, err = keyed(db, "other", `put c {n: 1}`)
	wantKind(t, err, fail.Frozen)
	b, _ := image(t, db)
	db.Close()
	_, _, err = keyed(db, "k", `put c {n: 1}`)
	wantKind(t, err, fail.Closed)
	db = reopen(t, Options{FS: fs, ReadOnly: true})
	check()
	elsewhere := crashfs.New(2)
	if _, err := install(file, strings.NewReader(string(b)), Options{FS: elsewhere}); err != nil {
		t.Fatal(err)
	}
	db = reopen(t, Options{FS: elsewhere})
	check()
}

// keyedWork sends n writes, each under its own key, and returns the answers up to the first error.
func keyedWork(db *DB, n int) (answers []string) {
	for i := range n {
		texts := []string{fmt.Sprintf(`put c {n: %d}`, i)}
		switch i % 3 {
		case 1:
			texts = append(texts, `get c count`)
		case 2:
			if _, err := exec(db, `compact`); err != nil {
				return answers
			}
		}
		answer, _, err := keyed(db, fmt.Sprint("key ", i), texts...)
		if err != nil {
			return answers
		}
		answers = append(answers, answer)
	}
	return answers
}

// TestACrashKeepsAWriteAndItsKeyTogether loses power, or fails, at every operation in turn, and sends everything again
// after a reopening. The answers are the same as before, and every document exists once.
func TestACrashKeepsAWriteAndItsKeyTogether(t *testing.T) {
	const writes = 6
	want := `[`
	for i := range writes {
		want += fmt.Sprintf(`{"id":%d,"n":%d},`, i+1, i)
	}
	want = want[:len(want)-1] + `]`
	o := Options{Sync: always}
	begin := func(fs *crashfs.FS) *DB {
		o.FS = fs
		db, err := Create(file, o)
		if err == nil {
			_, err = exec(db, `create collection c (n int)`)
		}
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	whole := crashfs.New(1)
	db := begin(whole)
	from := whole.Ops()
	if n := len(keyedWork(db, writes)); n != writes {
		t.Fatalf("%d writes were answered without a fault", n)
	}
	db.Close()
	for k := from + 1; k <= whole.Ops(); k++ {
		for seed := range uint64(4) {
			for _, fault := range []error{nil, syscall.EIO} {
				fs := crashfs.New(seed)
				db := begin(fs)
				if fault == nil {
					fs.PowerOffAt(k)
				} else {
					fs.FailAt(k, fault)
				}
				answered := keyedWork(db, writes)
				db.Close()
				o.FS = fs.Crash()
				db, err := Open(file, o)
				if err != nil {
					t.Fatal(err)
				}
				got := keyedWork(db, writes)
				if len(got) != writes {
					t.Fatalf("operation %d, seed %d: only %d writes sent again were answered", k, seed, len(got))
				}
				for i, first := range answered {
					if got[i] != first {
						t.Errorf("operation %d, seed %d: write %d was answered %q and then %q", k, seed, i, first, got[i])
					}
				}
				wantRows(t, db, `get c`, want)
				if keysKept(db) != writes {
					t.Errorf("operation %d, seed %d: %d keys", k, seed, keysKept(db))
				}
				db.Close()
			}
		}
	}
}

// TestARepeatedKeyWaitsForTheFirstSync sends a key twice while the sync of the first write blocks: neither is answered before
// the sync ends, and both fail if it fails.
func TestARepeatedKeyWaitsForTheFirstSync(t *testing.T) {
	for name, fault := range map[string]error{"a sync that ends": nil, "a sync that fails": syscall.EIO} {
		synctest.Test(t, func(t *testing.T) {
			fs := crashfs.New(1)
			db, err := Create(file, Options{FS: fs, Sync: always})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			mustExec(t, db, `create collection c (n int)`)
			release := make(chan struct{})
			fs.Hook(func(op crashfs.Op, _ string) error {
				if op != crashfs.Sync {
					return nil
				}
				<-release
				return fault
			})
			type outcome struct {
				answer string
				kept   *Kept
				err    error
			}
			answered := make(chan outcome, 2)
			for range 2 {
				go func() {
					answer, kept, err := keyed(db, "k", `put c {n: 1}`)
					answered <- outcome{answer, kept, err}
				}()
				synctest.Wait()
				if len(answered) > 0 {
					t.Errorf("%s: a write was answered before it was on disk", name)
				}
			}
			close(release)
			first, second := <-answered, <-answered
			if fault != nil {
				wantKind(t, first.err, fail.Storage)
				wantKind(t, second.err, fail.Storage)
				return
			}
			if first.err != nil || second.err != nil || first.answer != second.answer || (first.kept == nil) == (second.kept == nil) {
				t.Errorf("%s: answered %+v and %+v", name, first, second)
			}
			wantRows(t, db, `get c count`, `[{"count":1}]`)
		})
	}
}
