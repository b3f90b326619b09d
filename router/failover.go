package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fenec/internal/http1"
	"fenec/internal/random"
	"fenec/router/directory"
)

const (
	// freezeTimeout is how long a node that is failed over may take to freeze a tenant.
	freezeTimeout = time.Second
	// catchUpTimeout is how long a replica may take to hold the last change of a frozen primary.
	catchUpTimeout = time.Second
)

// fallen is a node that tenants are failed over from.
type fallen struct {
	away atomic.Bool // it does not answer, and is asked nothing more
}

// failedOver is the answer to a failover. Promoted is the names of the tenants if all of them went to the standby, and else each
// with its node.
type failedOver struct {
	Node         string         `json:"node"`
	To           string         `json:"to,omitzero"`
	Promoted     any            `json:"promoted"`
	Failed       []failedTenant `json:"failed"`
	Unreplicated []string       `json:"unreplicated"` // tenants of other nodes whose replica the node held
	Copies       []standing     `json:"copies,omitzero"`
	Error        string         `json:"error,omitzero"`
}

// promoted is a tenant that a failover has moved to another node.
type promoted struct {
	Tenant string `json:"tenant"`
	To     string `json:"to"`
}

// plan is what a failover of a node is about.
type plan struct {
	node     string
	standby  string // of the node, empty for none
	promote  []string
	orphans  []string // tenants of other nodes whose replica the node holds
	copyless []string // tenants of the node without a replica
}

func (rt *Router) planFailover(name string) *plan {
	p := &plan{node: name, standby: rt.dir.StandbyOf(name)}
	rt.dir.Each(func(t *directory.Tenant, _ *node) {
		switch {
		case !t.Routed():
		case t.Node == name && t.Replica != "":
			p.promote = append(p.promote, t.Name)
		case t.Node == name:
			p.copyless = append(p.copyless, t.Name)
		case t.Replica == name:
			p.orphans = append(p.orphans, t.Name)
		}
	})
	for _, list := range [][]string{p.promote, p.orphans, p.copyless} {
		slices.Sort(list)
	}
	return p
}

// failover moves the tenants of a node to the nodes of their replicas, which are promoted. Whoever asks for it knows that the
// node is gone: the router cannot tell that from a node that it does not reach.
//
//  1. the directory records for each tenant that it goes to the node of its replica
//  2. the node is asked to freeze it; if it does, the replica gets a moment to catch up, and nothing is lost
//  3. the replica is promoted
//  4. the directory points at it, and records the node's copy as one that has to follow
//
// A router that stops after 1 leaves the rest to the next one. See DESIGN.md.
func (rt *Router) failover(r *http1.Request, name string) http1.Answer {
	if err := readJSON(r, &struct{}{}); err != nil {
		return answerError(err)
	}
	dry, ok := dryRun(r)
	if !ok {
		return http1.ErrorAnswer(400, "a failover is asked for with ?dry_run or no query, got "+strconv.Quote(string(r.Query)))
	}
	if _, n := rt.dir.Node(name); n == nil {
		return noNode(name)
	}
	p := rt.planFailover(name)
	if len(p.promote)+len(p.orphans) == 0 {
		return http1.ErrorAnswer(409, "node "+name+" has no tenant with a replica and holds no replica")
	}
	if dry {
		return jsonAnswer(200, rt.foresee(p))
	}
	began := time.Now()
	said := rt.runFailover(p)
	rt.log.Warn().Bytes("request", r.ID).Str("node", name).Any("promoted", said.Promoted).Any("failed", said.Failed).
		Strs("unreplicated", said.Unreplicated).Int64("ms", time.Since(began).Milliseconds()).Msg("a node is failed over")
	if len(said.Failed) > 0 {
		said.Error = fmt.Sprintf("%d tenants of node %s are not failed over", len(said.Failed), name)
		return jsonAnswer(502, said)
	}
	return jsonAnswer(200, said)
}

// dryRun reports whether a request asks what a failover would do. ok is false for any other query: a mistyped one must not fail a node
// over.
func dryRun(r *http1.Request) (dry, ok bool) {
	switch string(r.Query) {
	case "", "dry_run=false", "dry_run=0":
		return false, true
	case "dry_run", "dry_run=", "dry_run=true", "dry_run=1":
		return true, true
	}
	return false, false
}

// answer returns the answer for what became of the tenants of a plan.
func (p *plan) answer(done []promoted, failed []failedTenant, unreplicated []string) failedOver {
	sortBy(done, func(d promoted) string { return d.Tenant })
	sortBy(failed, func(f failedTenant) string { return f.Tenant })
	said := failedOver{
		Node: p.node, Failed: append([]failedTenant{}, failed...), Unreplicated: append([]string{}, unreplicated...),
		Promoted: append([]promoted{}, done...),
	}
	if p.standby == "" || slices.ContainsFunc(done, func(d promoted) bool { return d.To != p.standby }) {
		return said
	}
	names := make([]string, len(done))
	for i, d := range done {
		names[i] = d.Tenant
	}
	said.To, said.Promoted = p.standby, names
	return said
}

func (rt *Router) runFailover(p *plan) failedOver {
	var mu sync.Mutex
	var done []promoted
	var failed []failedTenant
	fails := func(name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, failedTenant{name, err.Error()})
	}
	rows := map[string]*directory.Tenant{} // recorded as being failed over
	var ends []func()
	eachOf(p.promote, func(name string) {
		end, err := rt.begin(name, directory.Failover)
		if err != nil {
			fails(name, err)
			return
		}
		t, err := rt.recordFailover(rt.dir.Tenant(name), p.node)
		mu.Lock()
		ends = append(ends, end)
		if err == nil {
			rows[name] = t
		}
		mu.Unlock()
		if err != nil {
			fails(name, err)
		}
	})
	from := &fallen{}
	eachOf(p.promote, func(name string) {
		t := rows[name]
		if t == nil {
			return
		}
		now, err := rt.takeOver(rt.ctx, t, from)
		if err != nil {
			fails(name, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done = append(done, promoted{name, now.Node})
	})
	for _, end := range ends {
		end()
	}
	for _, name := range p.copyless {
		fails(name, &refusal{409, "tenant " + name + " has no replica"})
	}
	var unreplicated []string
	for _, name := range p.orphans {
		if err := rt.unlink(name, p.node); err != nil {
			fails(name, err)
			continue
		}
		unreplicated = append(unreplicated, name)
	}
	rt.metrics.failedOver(len(done), len(failed))
	if len(failed) == 0 {
		rt.endPair(p)
	}
	return p.answer(done, failed, unreplicated)
}

// recordFailover records that a tenant of a node goes to the node of its replica.
func (rt *Router) recordFailover(t *directory.Tenant, node string) (*directory.Tenant, error) {
	switch {
	case !t.Routed() || t.Node != node || t.Replica == "":
		return t, &refusal{409, "the tenant was moved or deleted meanwhile"}
	case t.State == directory.Settling:
		return t, &refusal{409, "tenant " + t.Name + " has just been moved to node " + node + ", which does not serve it yet"}
	case t.State == directory.Promoting && t.Target == t.Replica:
		return t, nil // by an earlier failover
	}
	next := active(t, t.Leftovers())
	next.State, next.Target, next.Token = directory.Promoting, t.Replica, t.Token
	if next.Token == "" {
		next.Token = random.Text(rt.config.Rand)
	}
	return rt.change(t, next)
}

// takeOver ends a recorded failover: the target is promoted and becomes the tenant's node. If the target must not be promoted,
// or the node that the tenant leaves answers and goes on accepting its writes, the tenant stays with that node. If it is not
// known whether the target was promoted, the row stays, and the repairer goes on.
func (rt *Router) takeOver(ctx context.Context, t *directory.Tenant, from *fallen) (*directory.Tenant, error) {
	to := rt.copyAt(t.Target, t.Name)
	seq, frozen, failed := rt.stopFormer(ctx, t, from)
	if failed == nil {
		if frozen {
			waiting, cancel := context.WithTimeout(ctx, catchUpTimeout)
			// A replica that does not get there is promoted all the same; what it lacks is kept with the former primary.
			to.await(waiting, func(p position) bool { return p.Seq >= seq })
			cancel()
		}
		if failed = to.promote(ctx, t.Lineage); failed == nil {
			return rt.flipFailover(t)
		}
		if !final(failed) {
			return t, failed
		}
	}
	// No promotion is under way any more once the target is fenced.
	if err := to.fence(ctx); err != nil {
		return t, both(failed, err)
	}
	s, err := to.withRole().state(ctx)
	switch {
	case err != nil:
		return t, both(failed, err)
	case s.exists && !s.unreadable && !s.replica() && s.place.Lineage == t.Lineage:
		return rt.flipFailover(t)
	}
	next := *t
	next.Target = ""
	now, err := rt.change(t, &next)
	if err == nil {
		now, err = rt.stay(ctx, now)
	}
	return now, both(failed, err)
}

// both returns an error for two of which the second may be nil.
func both(err, second error) error {
	if second == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, second)
}

// final reports whether a node has refused a request for good, so that it was not carried out.
func final(err error) bool {
	var node *nodeError
	var refused *refusal
	if errors.As(err, &node) {
		return node.status >= 400 && node.status < 500
	}
	return errors.As(err, &refused)
}

// stopTries is how often a node that is failed over is asked to freeze a tenant before it counts as one that does not answer.
const stopTries = 3

// stopFormer has the node that a tenant leaves freeze it, if the node answers. frozen reports whether it has, with seq as the
// last change. It fails if the node answers and the tenant goes on accepting writes there. A node that does not answer is not
// asked for other tenants either.
func (rt *Router) stopFormer(ctx context.Context, t *directory.Tenant, from *fallen) (seq uint64, frozen bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	for tries := 1; !from.away.Load(); tries++ {
		seq, frozen, takesWrites, err := rt.copyAt(t.Node, t.Name).stop(ctx, t.Token)
		var failed *nodeError
		busy := errors.As(err, &failed) && failed.status == 503
		switch {
		case takesWrites, busy && tries == stopTries:
			return 0, false, fmt.Errorf("node %s answers and may accept writes of tenant %s: %w", t.Node, t.Name, err)
		case !busy && !unanswered(err):
			return seq, frozen, nil // frozen, or without a copy that accepts writes, or not a node that knows the router
		case tries == stopTries:
			from.away.Store(true)
		}
	}
	return 0, false, nil
}

// flipFailover points the directory at a promoted replica, in one statement. It records the copy of the node before as one that
// has to follow.
func (rt *Router) flipFailover(t *directory.Tenant) (*directory.Tenant, error) {
	former := directory.Leftover{Node: t.Node, Token: t.Token, Kind: directory.Former}
	next := active(t, directory.With(directory.Without(t.Stale, t.Target), former))
	next.Node, next.Replica = t.Target, ""
	return rt.change(t, next)
}

// stay ends a failover that was given up: the tenant's node, which may have frozen it, serves it.
func (rt *Router) stay(ctx context.Context, t *directory.Tenant) (*directory.Tenant, error) {
	err := rt.copyAt(t.Node, t.Name).release(ctx, t.Token)
	var failed *nodeError
	if errors.As(err, &failed) && failed.status == 404 {
		rt.log.Error().Str("tenant", t.Name).Err(err).Msg("a tenant whose failover was given up is gone from its node")
		err = nil // no copy is left to thaw
	}
	if err != nil {
		return t, err
	}
	return rt.change(t, active(t, t.Stale))
}

// endFailover ends the failover that a tenant's row records, if it does. The row that it returns records none.
func (rt *Router) endFailover(ctx context.Context, t *directory.Tenant) (*directory.Tenant, error) {
	switch {
	case t.State != directory.Promoting:
		return t, nil
	case t.Target == "":
		return rt.stay(ctx, t)
	}
	now, err := rt.takeOver(ctx, t, &fallen{})
	if now.State == directory.Active {
		return now, nil // with the one node or the other
	}
	return now, err
}

// repairFailover is endFailover in a round of repair.
func (rt *Router) repairFailover(t *directory.Tenant, away map[string]bool) error {
	if t.Target == "" {
		_, err := rt.stay(rt.ctx, t)
		return err
	}
	from := &fallen{}
	from.away.Store(away[t.Node])
	now, err := rt.takeOver(rt.ctx, t, from)
	if from.away.Load() {
		away[t.Node] = true
	}
	if now.State == directory.Active {
		return rt.repairCopies(rt.ctx, now, away)
	}
	return err
}

// unlink records that a tenant has no replica on a node any more. The copy there follows again once the node answers, unless the
// tenant has another replica then.
func (rt *Router) unlink(name, node string) error {
	end, err := rt.begin(name, directory.Failover)
	if err != nil {
		return err
	}
	defer end()
	t := rt.dir.Tenant(name)
	if t == nil || t.Replica != node {
		return nil
	}
	next := *t
	next.Replica = ""
	next.Stale = directory.With(t.Stale, directory.Leftover{Node: node, Kind: directory.Follower})
	_, err = rt.change(t, &next)
	return err
}

// endPair ends the pair of a node of which every tenant was failed over.
func (rt *Router) endPair(p *plan) {
	row, _ := rt.dir.Node(p.standby)
	if row == nil || row.Standby != p.node {
		return
	}
	next := *row
	next.Standby = ""
	if err := rt.dir.ChangeNode(row, &next); err != nil {
		rt.log.Error().Str("node", p.standby).Err(err).Msg("a node is still recorded as a standby after a failover to it")
	}
}
