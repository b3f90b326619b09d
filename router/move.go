package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fenec/internal/http1"
	"fenec/internal/random"
	"fenec/router/directory"
)

// moved is the answer to a move.
type moved struct {
	Tenant        string `json:"tenant"`
	From          string `json:"from"`
	To            string `json:"to"`
	Bytes         int64  `json:"bytes"` // of the image
	MS            int64  `json:"ms"`
	SourceRemoved bool   `json:"source_removed"` // if false the router keeps trying
	Replica       string `json:"replica,omitzero"`
}

// move is one attempt to move a tenant from one node to another, in the steps record, freeze, transfer, flip, finish.
// Requests go to the source until the flip and to the target after it. The source accepts no write after the freeze, and
// the target none before finish. So no two copies accept writes, whichever step is the last.
type move struct {
	rt     *Router
	tenant *directory.Tenant // the directory's current row
	from   *node
	to     *node
	token  string // the source is frozen and the image is held under it
	id     []byte // of the request that asked for it
	seq    uint64 // the last change before the freeze of the source
	bytes  int64
}

// undoTimeout bounds the rollback of an operation that failed.
const undoTimeout = 10 * time.Second

func (rt *Router) postMove(r *http1.Request, name string) http1.Answer {
	var wanted struct {
		To string `json:"to"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return answerError(err)
	}
	if wanted.To == "" {
		return http1.ErrorAnswer(400, `a move requires the node to move to: {"to": "n2"}`)
	}
	end, err := rt.begin(name, directory.Move)
	if err != nil {
		return answerError(err)
	}
	defer end()
	t := rt.dir.Tenant(name)
	_, to := rt.dir.Node(wanted.To)
	switch {
	case !t.Routed():
		return noTenant(name)
	case to == nil:
		return noNode(wanted.To)
	}
	done, err := rt.move(t, to, r.ID)
	if err != nil {
		return answerError(err)
	}
	return jsonAnswer(200, done)
}

// move moves a tenant whose operation the caller holds, for the request of the id. A move to the node that the tenant is on
// cancels an interrupted move.
func (rt *Router) move(t *directory.Tenant, to *node, id []byte) (done moved, err error) {
	began := time.Now()
	defer func() {
		done.MS = time.Since(began).Milliseconds()
		event, what := rt.log.Info(), "a tenant is moved"
		if err != nil {
			event, what = rt.log.Error().Err(err), "a move failed"
		}
		event.Bytes("request", id).Str("tenant", t.Name).Str("from", done.From).Str("to", to.name).Int64("bytes", done.Bytes).
			Int64("ms", done.MS).Bool("source_removed", done.SourceRemoved).Msg(what)
	}()
	done = moved{Tenant: t.Name, From: t.Node, To: to.name}
	if row, _ := rt.dir.Node(to.name); row != nil && row.Standby != "" {
		return done, &directory.Paired{Why: fmt.Sprintf("node %s is the standby of node %s: no tenant is moved to it", to.name, row.Standby)}
	}
	switch t.State {
	case directory.Promoting:
		if t, err = rt.endFailover(rt.ctx, t); err != nil {
			return done, err
		}
		done.From = t.Node
	case directory.Deleting:
		if t, err = rt.takeBack(rt.ctx, t); err != nil || t == nil {
			return done, orGone(err, done.Tenant)
		}
	case directory.Settling: // an earlier move only has to be finished
		if t, done.SourceRemoved, err = rt.finish(rt.ctx, t); err != nil || t.Node == to.name {
			return done, err
		}
		done.SourceRemoved = false
	}
	if t.Node == to.name {
		if t.State == directory.Active {
			return done, &refusal{409, fmt.Sprintf("tenant %s is on node %s already", t.Name, to.name)}
		}
		return done, rt.cancelMove(rt.ctx, t)
	}
	replicas := t.Replica != ""
	if t, err = rt.makeRoom(rt.ctx, t, to); err != nil {
		return done, err
	}
	_, from := rt.dir.Node(t.Node)
	m := &move{rt: rt, tenant: t, from: from, to: to, token: random.Text(rt.config.Rand), id: id}
	if err = m.run(); err != nil {
		rt.metrics.moveFails.Inc()
		rt.restoreReplica(m.tenant, replicas)
		return done, err
	}
	done.Bytes = m.bytes
	rt.metrics.moved(m.bytes, time.Since(began))
	t, done.SourceRemoved, err = rt.finish(rt.ctx, m.tenant)
	if err == nil {
		done.Replica = rt.restoreReplica(t, replicas).Replica
	}
	return done, err
}

// orGone returns err, or that there is no such tenant if err is nil.
func orGone(err error, tenant string) error {
	if err == nil {
		err = &refusal{404, "no tenant " + tenant}
	}
	return err
}

func (m *move) source() copyOn { return m.from.copyOf(m.tenant.Name) }
func (m *move) target() copyOn { return m.to.copyOf(m.tenant.Name) }

// run takes the steps up to the flip, or rolls them back.
func (m *move) run() error {
	found, err := m.target().state(m.rt.ctx)
	if err == nil {
		err = m.mayReplace(found)
	}
	if err != nil {
		return err
	}
	if m.tenant.State == directory.Moving {
		// The source may be frozen under the token of the interrupted attempt, which is stored only in the row.
		if err := m.source().release(m.rt.ctx, m.tenant.Token); err != nil {
			return err
		}
	}
	if err := m.record(); err != nil {
		return err
	}
	if err = m.transfer(); err == nil {
		err = m.flip()
		if doubt := (*directory.InDoubt)(nil); errors.As(err, &doubt) {
			// Only the file says which node has the tenant, so neither accepts a write before it has been read again.
			return fmt.Errorf("the tenant accepts no writes until the directory can be read again: %w", err)
		}
	}
	if err != nil {
		m.undo()
	}
	return err
}

// mayReplace returns an error if the move must not replace what is on the target. It may replace an image that is not in
// service, a copy that was never written to, and a leftover of an earlier move.
func (m *move) mayReplace(found copyState) error {
	switch {
	case !found.exists || found.Held || found.empty():
		return nil
	case found.Frozen && found.Token == m.token:
		return &refusal{409, fmt.Sprintf("nodes %s and %s are the same node", m.from.name, m.to.name)}
	}
	for _, l := range m.tenant.Leftovers() {
		if l.Node == m.to.name && isLeftover(l, found) {
			return nil
		}
	}
	return &refusal{409, fmt.Sprintf("node %s holds a file for tenant %s that the directory does not know", m.to.name, m.tenant.Name)}
}

// record records in the directory that the tenant is being moved.
func (m *move) record() error {
	next := active(m.tenant, m.tenant.Leftovers())
	next.State, next.Target, next.Token = directory.Moving, m.to.name, m.token
	return m.change(next)
}

func (m *move) change(next *directory.Tenant) error {
	now, err := m.rt.dir.Change(m.tenant, next)
	if err == nil {
		m.tenant = now
	}
	return err
}

// transfer freezes the source and copies its image to the target, which holds it: it accepts no writes.
func (m *move) transfer() error {
	var err error
	if m.seq, err = m.source().freeze(m.rt.ctx, m.token); err == nil {
		if err = m.install(); err == nil {
			err = m.verify()
		}
	}
	return err
}

// install deletes what an earlier attempt has left on the target, and copies the image. It starts over if an image of an
// earlier attempt arrives in between.
func (m *move) install() error {
	ctx, target := m.rt.ctx, m.target()
	_, err := target.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case s.Held && s.Token == m.token:
			return nil, nil
		case s.exists:
			return target.remove(ctx, s), m.mayReplace(s)
		}
		return func() (err error) {
			m.bytes, err = target.install(ctx, s, m.source(), m.token)
			return err
		}, nil
	})
	return err
}

// verify checks, as late as possible, that nothing was written to the source since it was frozen: an operator may have
// thawed it.
func (m *move) verify() error {
	was, err := m.source().state(m.rt.ctx)
	switch {
	case err != nil:
		return err
	case !was.Frozen || was.Held || was.Token != m.token || was.Seq != m.seq:
		return &refusal{409, fmt.Sprintf("tenant %s did not stay frozen on node %s while its image was copied", m.tenant.Name, m.from.name)}
	}
	now, err := m.target().state(m.rt.ctx)
	switch {
	case err != nil:
		return err
	case !now.Held || now.Token != m.token || now.Seq != m.seq:
		return &refusal{502, fmt.Sprintf("node %s does not hold the image of tenant %s as it was sent", m.to.name, m.tenant.Name)}
	}
	return nil
}

// flip points the directory at the target, in one statement. It records the copy on the source as superseded by this move.
func (m *move) flip() error {
	source := directory.Leftover{Node: m.from.name, Token: m.token}
	next := active(m.tenant, directory.With(directory.Without(m.tenant.Stale, m.to.name), source))
	next.Node, next.State, next.Token = m.to.name, directory.Settling, m.token
	return m.change(next)
}

// undo rolls back a move that failed before the flip: the source accepts writes again, the directory's row is restored, and
// the copy on the target is deleted. What fails now is left to the repairer.
func (m *move) undo() {
	ctx, cancel := m.rt.undoing()
	defer cancel()
	if err := m.rt.cancelMove(ctx, m.tenant); err != nil {
		m.rt.log.Error().Bytes("request", m.id).Str("tenant", m.tenant.Name).Err(err).Msg("a failed move could not be rolled back yet")
	}
}

// undoing returns the context of a rollback. It outlives rt.ctx, whose end may be why the operation failed.
func (rt *Router) undoing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(rt.last, undoTimeout)
}

// cancelMove cancels an interrupted move: the source accepts writes again, and the copy on the target is deleted, now or
// later.
func (rt *Router) cancelMove(ctx context.Context, t *directory.Tenant) error {
	if err := rt.copyAt(t.Node, t.Name).release(ctx, t.Token); err != nil {
		return err
	}
	back, err := rt.dir.Change(t, active(t, t.Leftovers()))
	if err != nil {
		return err
	}
	if err := rt.repairCopies(ctx, back, map[string]bool{}); err != nil {
		rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a copy of a cancelled move could not be deleted yet")
	}
	return nil
}

// finish ends a move after its flip: the target accepts writes, the replica follows it, and the copies elsewhere are deleted. It
// returns the directory's row after that; cleared reports whether no copy is left.
func (rt *Router) finish(ctx context.Context, t *directory.Tenant) (now *directory.Tenant, cleared bool, err error) {
	if err := rt.copyAt(t.Node, t.Name).serve(ctx, t.Token); err != nil {
		return t, false, fmt.Errorf("tenant %s is on node %s now and accepts writes once that node answers: %w", t.Name, t.Node, err)
	}
	next := active(t, t.Stale)
	if t.Replica != "" {
		if err := rt.follow(ctx, t, rt.copyAt(t.Replica, t.Name)); err != nil {
			rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a replica does not follow its tenant's new node yet")
			next.Replica = ""
			next.Stale = directory.With(next.Stale, directory.Leftover{Node: t.Replica, Kind: directory.Follower})
		}
	}
	if next.Stale, err = rt.clearCopies(ctx, next.Stale, t.Name); err != nil {
		rt.log.Warn().Str("tenant", t.Name).Err(err).Msg("a superseded copy could not be deleted yet")
	}
	cleared = err == nil
	if now, err = rt.dir.Change(t, next); err != nil {
		// The flip is on disk, so the move is done. The repairer does the rest.
		rt.log.Error().Str("tenant", t.Name).Err(err).Msg("the directory cannot be written: the end of a move is not recorded yet")
		now = t
	}
	return now, cleared, nil
}
