package node

import (
	"os"
	"testing"
)

// TestAnIdleTenantKeepsItsGraph closes a tenant with a vector index as idle. The file grows by the graph on the first
// close, and not on later ones, as the graph is unchanged.
func TestAnIdleTenantKeepsItsGraph(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", `create collection c (v vector<2> @hnsw(l2))`)
	r.query("x", `put c [{v: [1, 2]}, {v: [3, 4]}, {v: [5, 6]}, {v: [7, 8]}]`)
	size := func() int64 {
		info, err := os.Stat(r.file("x.fenec"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var sizes []int64
	for range 3 {
		sizes = append(sizes, size())
		got := r.query("x", `get c near v [3, 3] limit 2 select id`)
		if want := `[{"id":2,"_score":1},{"id":1,"_score":2.236068}]`; got != want {
			t.Fatalf("near: got %s, want %s", got, want)
		}
		eventually(t, "the vectors are linked", func() bool { return r.tenants.Find([]byte("x")).DB.Stats().Waiting == 0 })
		r.closeIdle("x")
	}
	if sizes[1] <= sizes[0] || sizes[2] != sizes[1] {
		t.Errorf("got file sizes %v, want growth on the first close alone", sizes)
	}
}
