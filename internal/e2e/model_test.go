package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"fenec/client"
)

// document is one of the model's.
type document struct {
	ID    int64 `json:"id,omitzero"` // given by the tenant
	Owner int   `json:"owner"`
	K     int   `json:"k"`
	V     int   `json:"v"`
}

// holder is one writer of the model test: it owns documents nobody else touches,
// and knows exactly what they have to be.
type holder struct {
	owner  int
	random *rand.Rand
	tenant *client.Client // sends everything once
	want   map[int]int    // k -> v
	next   int
	ids    *ids
}

// ids are all ids ever handed out: none comes twice, whatever node hands it out.
type ids struct {
	mu   sync.Mutex
	seen map[int64]string
}

func (s *ids) take(id int64, document string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.seen[id]; ok && before != document {
		return fmt.Errorf("id %d is %s and was %s", id, document, before)
	}
	s.seen[id] = document
	return nil
}

// step does one thing and holds the answer against the model.
func (h *holder) step(ctx context.Context) error {
	if h.random.IntN(3) == 0 {
		return h.compare(ctx)
	}
	k, known := h.anyKey()
	v := h.random.IntN(1000)
	switch op := h.random.IntN(4); {
	case op <= 1 || !known:
		k = h.next
		h.next++
		return h.write(ctx, func() { h.want[k] = v }, "put docs $1", document{Owner: h.owner, K: k, V: v})
	case op == 2:
		return h.write(ctx, func() { h.want[k] = v }, "set docs {v: $1} where owner = $2 and k = $3", v, h.owner, k)
	default:
		return h.write(ctx, func() { delete(h.want, k) }, "del docs where owner = $1 and k = $2", h.owner, k)
	}
}

func (h *holder) anyKey() (int, bool) {
	for k := range h.want {
		return k, true
	}
	return 0, false
}

// write writes one document; a 503 means that it did not happen.
func (h *holder) write(ctx context.Context, happened func(), statement string, params ...any) error {
	n, err := h.tenant.Exec(ctx, statement, params...)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == 503:
		if refused.RetryAfter == 0 {
			return fmt.Errorf("%s %v answered 503 without Retry-After", statement, params)
		}
		return nil
	case err != nil || n != 1:
		return fmt.Errorf("%s %v wrote %d documents, %v, want 1", statement, params, n, err)
	}
	happened()
	return nil
}

// compare reads everything the holder owns: reads go on through every move, and
// tell what was answered before.
func (h *holder) compare(ctx context.Context) error {
	rows, err := client.Query[document](ctx, h.tenant, "get docs where owner = $1 order k", h.owner)
	if err != nil {
		return err
	}
	if len(rows) != len(h.want) {
		return fmt.Errorf("owner %d has %d documents, want %d", h.owner, len(rows), len(h.want))
	}
	for _, r := range rows {
		if v, ok := h.want[r.K]; !ok || v != r.V || r.Owner != h.owner {
			return fmt.Errorf("owner %d has %+v, want v %d (%v)", h.owner, r, v, ok)
		}
		if err := h.ids.take(r.ID, fmt.Sprintf("%d/%d", r.Owner, r.K)); err != nil {
			return err
		}
	}
	return nil
}

// TestAModelOfATenantHoldsThroughMoves runs holders that know what they wrote
// against a tenant that is moved all the while.
func TestAModelOfATenantHoldsThroughMoves(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := startCluster(t)
	query(t, c.tenant(), "create collection docs (owner int @hash, k int @sorted, v int)")
	tenant := client.New(c.tenant(), client.Options{Patience: -1})
	defer tenant.Close()
	shared := &ids{seen: make(map[int64]string)}
	stopping := make(chan struct{})
	var holders sync.WaitGroup
	var steps sync.Map
	for owner := range 4 {
		h := &holder{
			owner: owner, random: rand.New(rand.NewPCG(seed, uint64(owner))), tenant: tenant,
			want: make(map[int]int), ids: shared,
		}
		holders.Add(1)
		go func() {
			defer holders.Done()
			for n := 0; ; n++ {
				select {
				case <-stopping:
					if err := h.compare(t.Context()); err != nil {
						t.Errorf("at the end: %v", err)
					}
					return
				default:
				}
				if err := h.step(t.Context()); err != nil {
					t.Errorf("holder %d, step %d: %v", h.owner, n, err)
					return
				}
				steps.Store(h.owner, n)
			}
		}()
	}
	done := func() int {
		sum := 0
		steps.Range(func(_, n any) bool { sum += n.(int); return true })
		return sum
	}
	on := "n1"
	for range 6 {
		before := done()
		eventually(t, "the holders go on", func() bool { return done() > before+100 || t.Failed() })
		on = other(on)
		if a := c.move(on); a.status != 200 {
			t.Errorf("the move to %s answered %d %s", on, a.status, a.body)
		}
	}
	close(stopping)
	holders.Wait()
	c.settled(on)
}
