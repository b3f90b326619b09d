package engine

import (
	"context"
	"strings"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

func TestAViewIsOfOneChange(t *testing.T) {
	db, err := Create(t.TempDir()+"/v.fenec", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(text string) {
		t.Helper()
		if _, err := db.Exec(context.Background(), Everything(), Statement{Text: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	exec("create collection c (n int)")
	exec("put c {n: 1}")
	one, err := db.Query("get c where id = $1")
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan struct{})
	err = db.View(context.Background(), Everything(), func(v *View) error {
		go func() {
			defer close(wrote)
			exec("set c {n: 2}")
		}()
		for range 100 {
			res, err := v.Run(one, []doc.Value{doc.IntValue(1)}, []byte("row: "))
			if err != nil {
				return err
			}
			if string(res.Body) != `row: [{"id":1,"n":1}]` || res.Seq != 2 || v.Seq != 2 || v.History == "" {
				t.Fatalf("read %s at change %d", res.Body, res.Seq)
			}
		}
		return nil
	})
	<-wrote
	if err != nil {
		t.Fatal(err)
	}
	exec("alter collection c rename field n to m") // the query stays valid
	err = db.View(context.Background(), Everything(), func(v *View) error {
		res, err := v.Run(one, []doc.Value{doc.IntValue(1)}, nil)
		if err == nil && (string(res.Body) != `[{"id":1,"m":2}]` || v.Seq != 4) {
			t.Errorf("read %s at change %d", res.Body, v.Seq)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := db.Query("del c"); fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), "writes") {
		t.Errorf("a query that writes: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	exec("put c [" + strings.Repeat("{}, ", 5000) + "{}]")
	all, err := db.Query("get c where m = 7")
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(ctx, Everything(), func(v *View) error {
		_, err := v.Run(all, nil, nil)
		return err
	})
	if fail.KindOf(err) != fail.Canceled {
		t.Errorf("a view nobody waits for: %v", err)
	}
	db.Close()
	if err := db.View(context.Background(), Everything(), func(*View) error { return nil }); fail.KindOf(err) != fail.Closed {
		t.Errorf("a view of a closed database: %v", err)
	}
}
