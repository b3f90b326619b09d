//go:build !race

package engine

import (
	"context"
	"testing"

	"fenec/engine/doc"
)

// TestAPutAllocatesNothing does not count the memory that the documents stay in, which grows in large steps. It does not run
// under the race detector, which makes sync.Pool drop items.
func TestAPutAllocatesNothing(t *testing.T) {
	db := fiveFields(t, 100, "@sorted")
	mustExec(t, db, `get notes where year > 1 count`) // builds the index
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

// TestStatsAllocateNothing matters because a node asks thousands of databases every second.
func TestStatsAllocateNothing(t *testing.T) {
	db := fiveFields(t, 100, "@sorted")
	mustExec(t, db, "create collection other (a int @sorted, b text @hash)")
	if allocations := testing.AllocsPerRun(100, func() { db.Stats() }); allocations > 0 {
		t.Errorf("the stats of a database allocate %v times", allocations)
	}
}
