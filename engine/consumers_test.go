package engine

import (
	"fmt"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

func setConsumer(t *testing.T, db *DB, name string, since uint64) {
	t.Helper()
	if _, _, err := db.SetConsumer(Everything(), nil, Consumer{name, since}); err != nil {
		t.Fatal(err)
	}
}

func TestConsumersAreDurableRows(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs, Sync: always})
	if all, err := db.Consumers(Everything()); err != nil || len(all) != 0 {
		t.Errorf("at first there are %v, %v", all, err)
	}
	mustExec(t, db, "create collection c (n int)")
	setConsumer(t, db, "b", 1)
	setConsumer(t, db, "a", 0)
	setConsumer(t, db, "b", 2)
	if seq, _ := db.Position(); seq != 5 { // the collections, and three rows
		t.Errorf("the database is at %d", seq)
	}
	mustExec(t, db, "compact")
	after := fs.Crash()
	db.Close()
	db = reopen(t, Options{FS: after, Sync: always})
	if all, err := db.Consumers(Everything()); err != nil || fmt.Sprint(all) != "[{a 0} {b 2}]" {
		t.Errorf("after a crash there are %v, %v", all, err)
	}
	if _, _, err := db.DeleteConsumer(Everything(), nil, "a"); err != nil {
		t.Fatal(err)
	}
	_, _, err := db.DeleteConsumer(Everything(), nil, "a")
	wantKind(t, err, fail.NotFound)
	_, err = db.Consumer(Everything(), "a")
	wantKind(t, err, fail.NotFound)
	if one, err := db.Consumer(Everything(), "b"); one.Since != 2 || err != nil {
		t.Errorf("b is at %d, %v", one.Since, err)
	}
	_, err = exec(db, "get _consumers")
	wantKind(t, err, fail.NotFound)
	if _, err := db.Freeze(); err != nil {
		t.Fatal(err)
	}
	_, _, err = db.SetConsumer(Everything(), nil, Consumer{"b", 3})
	wantKind(t, err, fail.Frozen)
	db.Close()
	_, err = db.Consumers(Everything())
	wantKind(t, err, fail.Closed)
}
