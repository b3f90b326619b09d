package engine

import (
	"fmt"
	"strings"
	"testing"

	"fenec/internal/vfs/crashfs"
)

// TestACollatedIndexMatchesTheScan compares a collection with a @sorted index on a field with a collation to one without
// the index, through writes, a rename, a compact and a reopening.
func TestACollatedIndexMatchesTheScan(t *testing.T) {
	o := Options{FS: crashfs.New(1)}
	db := inMemory(t, o)
	mustExec(t, db, "create collection scanned (s text collate tr, n int)")
	mustExec(t, db, "create collection indexed (s text collate tr @sorted, n int)")
	both := func(statement string) {
		t.Helper()
		a := mustExec(t, db, strings.ReplaceAll(statement, "@", "scanned"))
		b := mustExec(t, db, strings.ReplaceAll(statement, "@", "indexed"))
		if string(a.Body) != string(b.Body) || a.Affected != b.Affected {
			t.Errorf("%s\nwithout an index %s\nwith it          %s", statement, a.Body, b.Body)
		}
	}
	field := "s"
	ask := func() {
		t.Helper()
		for _, clauses := range []string{
			"order F", "order F desc", "order F limit 4", "order F desc limit 3 offset 2", "order F collate und limit 5",
			"where F > 'ç' order F", "where F >= 'i' and F < 'ş'", "where F = 'ı'", "where F in ['I', 'ö']", "where F < 'I' count",
			"select min(F), max(F)", "select F, count(*) group F",
		} {
			both("get @ " + strings.ReplaceAll(clauses, "F", field))
		}
	}
	words := strings.Fields("ız iz Iz İz ı i I İ ç c Ç cz çz ö o oz Ö ş s sz Ş ğ g gz ü u uz z y")
	for i := range 60 {
		both(fmt.Sprintf("put @ {s: %q, n: %d}", words[i*7%len(words)], i))
	}
	both("put @ {n: 1}")
	both(`put @ {s: "c\u0327"}`) // ç as two characters
	ask()
	both("set @ {s: 'ğz'} where n % 5 = 0 and s is not null")
	both("del @ where n % 7 = 3")
	ask()
	both("alter collection @ rename field s to t")
	field = "t"
	ask()
	mustExec(t, db, "compact")
	ask()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = reopen(t, o)
	before := db.tables["indexed"].bytes()
	ask()
	if grown := db.tables["indexed"].bytes() - before; grown < 40*16 {
		t.Errorf("the index is counted with %d bytes, want what its entries take", grown)
	}
	plan := string(mustExec(t, db, "explain get indexed order t limit 2").Body)
	if !strings.Contains(plan, `{"step":"walk","index":"t @sorted","tested":2`) {
		t.Errorf("the page is read by another way than the index: %s", plan)
	}
}
