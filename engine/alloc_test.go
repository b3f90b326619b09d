//go:build !race

package engine

import (
	"context"
	"testing"

	"fenec/engine/doc"
)

// TestAPutAllocatesNothing is but for what it keeps, which grows by much at a time. The race detector has a sync.Pool
// forget things.
func TestAPutAllocatesNothing(t *testing.T) {
	db := fiveFields(t, 100, "@sorted")
	mustExec(t, db, `get notes where year > 1 count`) // the index is there from now on
	params := []doc.Value{textParam("the title"), intParam(7), doc.FloatValue(1.5), doc.BoolValue(true), textParam("tag")}
	allocations := testing.AllocsPerRun(2000, func() {
		if _, err := db.Exec(context.Background(), Everything(), Statement{put5Text, params}, nil); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 0 {
		t.Errorf("a put allocates %v times", allocations)
	}
}

// TestStatsAllocateNothing is what lets a node ask many thousand databases every second.
func TestStatsAllocateNothing(t *testing.T) {
	db := fiveFields(t, 100, "@sorted")
	mustExec(t, db, "create collection other (a int @sorted, b text @hash)")
	if allocations := testing.AllocsPerRun(100, func() { db.Stats() }); allocations > 0 {
		t.Errorf("the stats of a database allocate %v times", allocations)
	}
}
