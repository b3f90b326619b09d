package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// compareSums checks that copies at one change have one sum, and that it is that of their documents.
func compareSums(t rapid.TB, copies ...*DB) {
	t.Helper()
	var first uint64
	for i, db := range copies {
		_, _, kept, ok := db.Sum()
		for _, table := range db.tables {
			table.forgetSum()
		}
		_, _, computed, again := db.Sum()
		if !ok || !again || kept != computed {
			t.Fatalf("copy %d: the sum is %x, %v, and computed again %x, %v", i, kept, ok, computed, again)
		}
		if i == 0 {
			first = kept
		}
		if kept != first {
			t.Fatalf("copy %d: the sum is %x, of the first copy %x", i, kept, first)
		}
	}
}

func sumOf(t *testing.T, db *DB) uint64 {
	t.Helper()
	_, _, sum, ok := db.Sum()
	if !ok {
		t.Fatal("there is no sum")
	}
	return sum
}

func TestTheSumIsOverWhatDocumentsAndSchemasSay(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int, s text)`)
	seen := map[uint64]string{}
	differs := func(text string) {
		t.Helper()
		if text != "" {
			mustExec(t, db, text)
		}
		sum := sumOf(t, db)
		if before, ok := seen[sum]; ok {
			t.Errorf("the sum after %q is that after %q", text, before)
		}
		seen[sum] = text
	}
	equals := func(text string, want uint64) {
		t.Helper()
		mustExec(t, db, text)
		if got := sumOf(t, db); got != want {
			t.Errorf("the sum after %q is %x, want %x", text, got, want)
		}
	}
	differs("")
	differs(`put c {id: 1, n: 1, s: "one"}`)
	one := sumOf(t, db)
	differs(`put c {id: 2, n: 1, s: "one"}`)
	differs(`set c {n: 2} where id = 2`)
	equals(`del c where id = 2`, one)
	equals(`put c {id: 1, n: 1, s: "one"}`, one)
	equals(`compact`, one)
	differs(`create index on c (n) @sorted`)
	differs(`alter collection c add field m int`)
	differs(`alter collection c drop field s`)
	dropped := sumOf(t, db)
	equals(`compact`, dropped)
	differs(`create collection d (n int)`)
	differs(`put d {id: 1, n: 1}`)
	equals(`drop collection d`, dropped)
	if _, err := exec(db, `put c [{id: 9, n: 9}, {id: 1, n: 3}, {n: "x"}]`); err == nil {
		t.Error("a statement that cannot be run was accepted")
	}
	if got := sumOf(t, db); got != dropped {
		t.Errorf("the sum after a write that failed is %x, want %x", got, dropped)
	}
}

func TestAClosedDatabaseHasNoSum(t *testing.T) {
	db := inMemory(t, Options{})
	db.Close()
	if _, _, _, ok := db.Sum(); ok {
		t.Error("a closed database has a sum")
	}
}
