package directory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"fenec/internal/vfs/crashfs"
)

func TestATenantHasOneWorkAtATime(t *testing.T) {
	f := opened(t, crashfs.New(1))
	ctx := context.Background()
	w, err := f.Begin(ctx, "acme", Move)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Begin(ctx, "acme", Delete)
	if busy := (*Busy)(nil); !errors.As(err, &busy) || busy.Error() != "tenant acme is being moved" {
		t.Errorf("a second operation: %v", err)
	}
	if _, err := f.TryBegin("acme", Repair); !errors.As(err, new(*Busy)) {
		t.Errorf("a repair: %v", err)
	}
	if other, err := f.Begin(ctx, "other", Delete); err != nil {
		t.Errorf("another tenant: %v", err)
	} else {
		other.End()
	}
	w.End()
	if w, err = f.TryBegin("acme", Repair); err != nil {
		t.Fatal(err)
	}
	w.End()
}

func TestAnOperationWaitsForARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o works
		repair, _ := o.try("acme", Repair)
		began := make(chan *Work)
		go func() {
			w, err := o.begin(context.Background(), "acme", Move)
			if err != nil {
				t.Error(err)
			}
			began <- w
		}()
		synctest.Wait()
		if w, other := o.try("acme", Delete); w != nil || other.operation != Repair {
			t.Error("the repair has ended")
		}
		repair.End()
		w := <-began
		w.End()

		// It waits for a repair that does not end only so long, and no longer than its context.
		repair, _ = o.try("acme", Repair)
		if _, err := o.begin(context.Background(), "acme", Move); !errors.As(err, new(*Busy)) {
			t.Errorf("a repair that does not end: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := o.begin(ctx, "acme", Move); !errors.As(err, new(*Busy)) {
			t.Errorf("a context that has ended: %v", err)
		}
		repair.End()
	})
}
