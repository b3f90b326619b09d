package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fenec/client"
)

// TestTheClientThroughMoves writes, reads and follows the changes of a tenant through the router while it is moved.
func TestTheClientThroughMoves(t *testing.T) {
	t.Parallel()
	const moves, each = 4, 10
	router := startRouter(t, filepath.Join(t.TempDir(), "shard.fenec"))
	record(t, router, "n1", startNode(t, t.TempDir(), "--sync", "always").addr)
	record(t, router, "n2", startNode(t, t.TempDir(), "--sync", "always").addr)
	must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", `{"node": "n1"}`)
	c := client.New(router.url()+"/t/acme", client.Options{Patience: patience}).WithKeys()
	defer c.Close()
	if _, err := c.Exec(t.Context(), "create collection writes (n int)"); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	followed := make(chan []int64, 1)
	go func() { followed <- follow(t, ctx, c, moves*each) }()
	for i := range moves {
		moved := make(chan string, 1)
		go func() {
			a, err := request("POST", router.url()+"/_shard/tenants/acme/move", fmt.Sprintf(`{"to": "n%d"}`, (i+1)%2+1))
			moved <- fmt.Sprint(a.status, a.body, err)
		}()
		for j := range each {
			n := i*each + j
			if _, err := c.Exec(t.Context(), "put writes {n: $1}", n); err != nil {
				t.Fatal(err)
			}
			rows, err := client.Query[struct{}](t.Context(), c.Read(), "get writes")
			if err != nil || len(rows) != n+1 {
				t.Fatalf("after write %d a read has %d rows, %v", n, len(rows), err)
			}
		}
		if a := receive(t, "the move ends", moved); a[:3] != "200" {
			t.Errorf("move %d: %s", i, a)
		}
	}
	select {
	case got := <-followed:
		want := make([]int64, moves*each)
		for i := range want {
			want[i] = int64(i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the changes are %v, want 0 to %d", got, len(want)-1)
		}
	case <-time.After(patience):
		t.Error("the changes did not come")
	}
}

// follow reads changes until it has seen as many puts, and answers what was put.
func follow(t *testing.T, ctx context.Context, c *client.Client, puts int) (ns []int64) {
	for change, err := range c.Changes(ctx, client.Position{}, client.ChangeOptions{Wait: 10 * time.Second}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return ns
		}
		if change.Op != "put" {
			continue
		}
		row, err := client.Decode[struct {
			N int64 `json:"n"`
		}](change.Doc)
		if err != nil {
			t.Error(err)
		}
		if ns = append(ns, row.N); len(ns) == puts {
			return ns
		}
	}
	return ns
}
