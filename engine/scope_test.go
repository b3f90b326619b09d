package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"fenec/engine/fail"
)

// ownersMethods are the methods of a database that take no scope: they do not read or write content for a caller.
var ownersMethods = []string{
	"Close", "Compact", "CompactDue", "Due", "Expire", "Follow", "Fork", "Freeze", "Frozen", "GoOn", "Grows", "HistoryAt", "Refreeze",
	"OpenImage", "Position", "Query", "Relation", "Stats", "Sync", "SyncPolicy", "Thaw", "Watch", "Writable", "Writes",
	"Branches", "Common", "Demote", "Follows", "Forks", "Lineage", "Promote", "Sum",
}

func TestEveryMethodThatIsNotTheOwnersTakesAScope(t *testing.T) {
	scope := reflect.TypeFor[Scope]()
	db := reflect.TypeFor[*DB]()
	seen := 0
	for i := range db.NumMethod() {
		m := db.Method(i)
		takes := false
		for in := range m.Type.Ins() {
			takes = takes || in == scope
		}
		if owners := slices.Contains(ownersMethods, m.Name); owners == takes {
			t.Errorf("%s: takes a scope: %t, is the owner's: %t", m.Name, takes, owners)
		}
		seen++
	}
	if seen <= len(ownersMethods) {
		t.Errorf("got %d methods, want more than the owner's %d", seen, len(ownersMethods))
	}
}

// scoped calls every method of a database that takes a scope, and returns the errors by name.
func scoped(db *DB, scope Scope, text string) map[string]error {
	ctx, sts, once := context.Background(), []Statement{{Text: text}}, &Once{Key: "k"}
	once.Answer = func([]Result) (int, []byte) { return 200, nil }
	errs := map[string]error{}
	_, errs["Run"] = db.Run(ctx, scope, &Request{Statements: sts})
	_, errs["Run of a batch"] = db.Run(ctx, scope, &Request{Statements: sts, Batch: true})
	_, errs["Run of an empty batch"] = db.Run(ctx, scope, &Request{})
	_, errs["Exec"] = db.Exec(ctx, scope, sts[0], nil)
	_, _, errs["Batch"] = db.Batch(ctx, scope, sts)
	_, _, errs["Claim"] = db.Claim(scope, sts)
	errs["View"] = db.View(ctx, scope, func(*View) error { return nil })
	errs["SettledView"] = db.SettledView(ctx, scope, func(*View) error { return nil })
	_, errs["RanBefore"] = db.RanBefore(context.Background(), scope, once)
	_, errs["Collections"] = db.Collections(scope)
	_, errs["Consumers"] = db.Consumers(scope)
	_, errs["Consumer"] = db.Consumer(scope, "a")
	_, _, errs["SetConsumer"] = db.SetConsumer(scope, nil, Consumer{Name: "a"})
	_, _, errs["DeleteConsumer"] = db.DeleteConsumer(scope, nil, "a")
	_, errs["StatementStats"] = db.StatementStats(scope)
	errs["ResetStatementStats"] = db.ResetStatementStats(scope)
	return errs
}

func TestTheZeroScopePermitsNothing(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c {n: 1}`)
	before := dump(t, db)
	for _, text := range []string{`get c`, `set c {n: 2}`, `compact`, `drop collection c`} {
		for name, err := range scoped(db, Scope{}, text) {
			if !errors.Is(err, errNoScope) {
				t.Errorf("%s of %s: got the error %v, want that the scope permits nothing", name, text, err)
			}
		}
		for name, err := range scoped(db, Scope{}.ReadOnly("it is a read"), text) {
			if !errors.Is(err, errNoScope) {
				t.Errorf("%s of %s, read-only: got the error %v, want that the scope permits nothing", name, text, err)
			}
		}
	}
	if after := dump(t, db); after != before {
		t.Errorf("the database is now\n%s\nwant\n%s", after, before)
	}
}

func TestAReadOnlyScopeReadsAndRefusesEveryWrite(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	mustExec(t, db, `put c {n: 1}`)
	if _, _, err := db.SetConsumer(Everything(), nil, Consumer{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	before, seq := dump(t, db), db.Stats().Seq
	reads := Everything().ReadOnly("it is a read")
	for _, text := range []string{`get c`, `collections`, `describe c`, `explain get c`} {
		for name, err := range scoped(db, reads, text) {
			switch name {
			case "SetConsumer", "DeleteConsumer", "ResetStatementStats":
				wantRefusal(t, name, err)
			default:
				if err != nil {
					t.Errorf("%s of %s: %v", name, text, err)
				}
			}
		}
	}
	for _, text := range []string{
		`put c {n: 2}`, `insert into c {n: 2}`, `set c {n: 2}`, `del c`, `create collection d (n int)`, `create index on c (n) @hash`,
		`alter collection c drop field n`, `drop collection c`, `compact`,
	} {
		errs := scoped(db, reads, text)
		for _, name := range []string{"Run", "Run of a batch", "Exec", "Batch", "Claim"} {
			wantRefusal(t, name+" of "+text, errs[name])
		}
	}
	_, at, err := db.Batch(context.Background(), reads, statements1(`get c`, `put c {n: 2}`, `no statement`))
	wantRefusal(t, "a batch", err)
	if at != 1 {
		t.Errorf("the batch fails at %d, want 1", at)
	}
	if after := dump(t, db); after != before || db.Stats().Seq != seq {
		t.Errorf("the database is now at change %d\n%s\nwant %d\n%s", db.Stats().Seq, after, seq, before)
	}
}

func wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	if fail.KindOf(err) != fail.ReadOnly || err.Error() != "it is a read and would write" {
		t.Errorf("%s: got the error %v, want a refusal of the scope", what, err)
	}
}

func TestClaimsOfTwoScopesHaveTwoLines(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	line := func(scope Scope) Line {
		c, _, err := db.Claim(scope, statements1(`set c {n: 2} where n = 1 limit 1`))
		if err != nil {
			t.Fatal(err)
		}
		return c.Line
	}
	other := Everything()
	other.refusal = "another"
	first := line(Everything())
	if again := line(Everything()); first != again {
		t.Error("equal claims of one scope have two lines")
	}
	if first == line(other) {
		t.Error("equal claims of two scopes have one line")
	}
}
