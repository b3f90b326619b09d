package engine

import (
	"encoding/hex"
	"strings"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

func historyOf(term uint64, lineage, own byte) history {
	h := history{Term: term}
	for i := range h.ID {
		h.ID[i] = lineage
		if i >= lineageSize {
			h.ID[i] = own
		}
	}
	return h
}

func TestStands(t *testing.T) {
	first, second, now := historyOf(1, 7, 1), historyOf(2, 7, 2), historyOf(3, 7, 3)
	db := &DB{seq: 20, left: []branch{{first, 10}, {second, 15}}, ours: true}
	db.setHistory(now)
	for name, tc := range map[string]struct {
		seq  uint64
		of   history
		want Relation
	}{
		"its own history":                       {20, now, Included},
		"its own history, further on":           {21, now, Ahead},
		"the history before, where it was left": {15, second, Included},
		"the history before, past that":         {16, second, Diverged},
		"the first history, where it was left":  {10, first, Included},
		"the first history, past that":          {11, first, Diverged},
		"another branch of an earlier term":     {5, historyOf(2, 7, 9), Diverged},
		"another branch of this term":           {5, historyOf(3, 7, 9), Diverged},
		"a branch of a later term":              {5, historyOf(4, 7, 9), Diverged},
		"another lineage":                       {5, historyOf(3, 8, 3), Diverged},
		"another lineage of a later term":       {5, historyOf(9, 8, 3), Diverged},
	} {
		if got, err := db.Relation(tc.seq, []byte(tc.of.String())); got != tc.want || err != nil {
			t.Errorf("%s, change %d: got %d, %v, want %d", name, tc.seq, got, err, tc.want)
		}
	}
	db.frozen = true
	if got, err := db.Relation(5, []byte(historyOf(4, 7, 9).String())); got != Ahead || err != nil {
		t.Errorf("a branch of a later term, which a copy that takes no writes may hear of: %d, %v", got, err)
	}
	db.frozen, db.ours = false, false
	if got, err := db.Relation(21, []byte(now.String())); got != Diverged || err != nil {
		t.Errorf("its own history, which an earlier open of the file wrote, further on: %d, %v", got, err)
	}
	if got, err := db.Relation(20, nil); got != Included || err != nil {
		t.Errorf("no history named: %d, %v", got, err)
	}
	if got, err := db.Relation(21, nil); got != Ahead || err != nil {
		t.Errorf("no history named, further on: %d, %v", got, err)
	}
	// The second history left the first at 10 and was itself left at 5: nothing of the first past that is here.
	db.left = []branch{{first, 10}, {second, 5}}
	if got, _ := db.Relation(8, []byte(first.String())); got != Diverged {
		t.Errorf("past where a later fork left: %d, want apart", got)
	}
	for _, text := range []string{"x", "-", "1-", "1-00", "-" + strings.Repeat("0", 32), "0-" + strings.Repeat("0", 32), "1-" + strings.Repeat("g", 32)} {
		_, err := db.Relation(1, []byte(text))
		wantKind(t, err, fail.Invalid)
	}
}

func TestTheFileStoresItsHistoriesAndForks(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, "create collection c (n int)")
	mustExec(t, db, "put c {n: 1}")
	_, before := db.Position()
	if err := db.fillRandom(db.own[:]); err != nil {
		t.Fatal(err)
	}
	db.enter(db.nextHistory(db.own), 1)
	_, now := db.Position()
	if err := db.Compact(t.Context()); err != nil { // which writes it down
		t.Fatal(err)
	}
	db.Close()
	db = reopen(t, Options{FS: fs})
	if _, got := db.Position(); got != now || before[2:18] != now[2:18] || before[18:] == now[18:] || now[:2] != "2-" {
		t.Errorf("opened again it is of the history %s; it was of %s, and of %s before", got, now, before)
	}
	for seq, want := range map[uint64]Relation{1: Included, 2: Diverged} {
		if got, err := db.Relation(seq, []byte(before)); got != want || err != nil {
			t.Errorf("change %d of the history that was left: %d, %v, want %d", seq, got, err, want)
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(historyOf(1, 2, 3).String()))
	f.Add([]byte("18446744073709551616-" + strings.Repeat("0", 32)))
	f.Add([]byte("01-" + strings.Repeat("A", 32)))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := parseHistory(text)
		if err != nil {
			wantKind(t, err, fail.Invalid)
			return
		}
		again, err := parseHistory([]byte(h.String()))
		if err != nil || again != h || !strings.HasSuffix(strings.ToLower(string(text)), hex.EncodeToString(h.ID[:])) {
			t.Errorf("%q is read as %s, and that as %s, %v", text, h, again, err)
		}
	})
}
