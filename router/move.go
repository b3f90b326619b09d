package router

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"fenec/internal/http1"
)

// moved is what a move answers.
type moved struct {
	Tenant        string `json:"tenant"`
	From          string `json:"from"`
	To            string `json:"to"`
	Bytes         int64  `json:"bytes"` // of the image
	MS            int64  `json:"ms"`
	SourceRemoved bool   `json:"source_removed"` // otherwise the router goes on trying
}

// move is one attempt to bring a tenant from one node to another, in the steps of mark, freeze, transfer, flip, finish.
// Requests go to the source until the flip and to the target from then on; the source takes no write from the freeze
// on, and the target none before finish. So no two copies take writes, whichever step is the last.
type move struct {
	rt     *Router
	tenant *tenant // as the directory has it now
	from   *node
	to     *node
	token  string // what the source is frozen under
	known  bool   // the target may hold a copy that an earlier attempt has left
	seq    uint64 // the change the source was frozen at
	bytes  int64
	frozen frozen
}

// frozen is what is known of the source's freeze.
type frozen uint8

const (
	notFrozen frozen = iota
	maybeFrozen
	isFrozen
)

// undoTimeout bounds what is done to put a move back that could not be made.
const undoTimeout = 10 * time.Second

func (rt *Router) postMove(r *http1.Request, name string) http1.Answer {
	var wanted struct {
		To string `json:"to"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return answerError(err)
	}
	if wanted.To == "" {
		return http1.ErrorAnswer(400, `a move wants the node to move to: {"to": "n2"}`)
	}
	end, busy := rt.tenantOps.begin(name, "moved")
	if busy != "" {
		return busyTenant(name, busy)
	}
	defer end()
	t, to := rt.dir.tenants.find(name), rt.dir.node(wanted.To)
	switch {
	case !t.routed():
		return noTenant(name)
	case to == nil:
		return noNode(wanted.To)
	}
	done, err := rt.move(t, to)
	if err != nil {
		return answerError(err)
	}
	return jsonAnswer(200, done)
}

// move moves a tenant whose operation the caller holds. To where it is, it ends a move that was interrupted.
func (rt *Router) move(t *tenant, to *node) (done moved, err error) {
	began := time.Now()
	defer func() {
		done.MS = time.Since(began).Milliseconds()
		event, what := rt.log.Info(), "a tenant is moved"
		if err != nil {
			event, what = rt.log.Error().Err(err), "a move failed"
		}
		event.Str("tenant", t.name).Str("from", t.node.name).Str("to", to.name).Int64("bytes", done.Bytes).
			Int64("ms", done.MS).Bool("source_removed", done.SourceRemoved).Msg(what)
	}()
	done = moved{Tenant: t.name, From: t.node.name, To: to.name}
	if t.state == settling {
		// An earlier move is all but over.
		if t, done.SourceRemoved, err = rt.finish(rt.ctx, t); err != nil || t.node == to {
			return done, err
		}
		done.SourceRemoved = false
	}
	if t.node == to {
		if t.state == active {
			return done, &refusal{409, fmt.Sprintf("tenant %s is on node %s already", t.name, to.name)}
		}
		return done, rt.cancelMove(t)
	}
	m := &move{rt: rt, tenant: t, from: t.node, to: to, token: rand.Text(), known: slices.Contains(t.leftovers(), to.name)}
	if err = m.run(); err != nil {
		rt.metrics.moveFails.Inc()
		return done, err
	}
	done.Bytes = m.bytes
	rt.metrics.moved(m.bytes, time.Since(began))
	_, done.SourceRemoved, err = rt.finish(rt.ctx, m.tenant)
	return done, err
}

// run takes the steps up to the flip, or puts back those that were taken.
func (m *move) run() error {
	if _, _, err := m.look(); err != nil {
		return err
	}
	if m.tenant.state == moving {
		// The source may be frozen under the token of the attempt that was interrupted, and only the row knows it.
		if err := m.from.api().thaw(m.rt.ctx, m.tenant.name, m.tenant.token); err != nil {
			return err
		}
	}
	if err := m.mark(); err != nil {
		return err
	}
	err := m.transfer()
	if err == nil {
		err = m.flip()
		if err != nil && inDoubt(err) {
			// Which node has the tenant only the next start can tell, so neither takes a write before it.
			return fmt.Errorf("the tenant takes no writes until the router is started again: %w", err)
		}
	}
	if err != nil {
		m.undo()
	}
	return err
}

// look asks the target what it has of the tenant, and refuses what the move must not replace.
func (m *move) look() (found copyState, exists bool, err error) {
	found, exists, err = m.to.api().state(m.rt.ctx, m.tenant.name)
	switch {
	case err != nil || !exists:
		return found, exists, err
	case m.frozen == isFrozen && found.Frozen && found.Token == m.token:
		return found, exists, &refusal{409, fmt.Sprintf("nodes %s and %s are one and the same", m.from.name, m.to.name)}
	case m.known || found.Held || found.Seq == 0:
		return found, exists, nil
	}
	return found, exists, &refusal{409, fmt.Sprintf("node %s holds a file for tenant %s that the directory does not know", m.to.name, m.tenant.name)}
}

// mark says in the directory that the tenant moves.
func (m *move) mark() error {
	return m.change(&tenant{
		name: m.tenant.name, node: m.from, state: moving, target: m.to, token: m.token,
		stale: without(m.tenant.leftovers(), m.to.name),
	})
}

func (m *move) change(next *tenant) error {
	err := m.rt.dir.change(m.tenant, next)
	if err == nil {
		m.tenant = next
	}
	return err
}

// transfer freezes the source and brings its image to the target, which holds it back from writes.
func (m *move) transfer() error {
	ctx, name, source, target := m.rt.ctx, m.tenant.name, m.from.api(), m.to.api()
	var err error
	m.frozen = isFrozen
	if m.seq, err = source.freeze(ctx, name, m.token); err != nil {
		var failed *nodeError
		m.frozen = maybeFrozen
		if errors.As(err, &failed) && !failed.doubt {
			m.frozen = notFrozen
		}
		return err
	}
	err = m.bring(source, target)
	var failed *nodeError
	if errors.As(err, &failed) && failed.node == m.to.name && failed.status == 409 {
		// An image that a router before this one had sent has landed meanwhile. It is cleared away like any other.
		err = m.bring(source, target)
	}
	if err != nil {
		return err
	}
	return m.verify(source, target)
}

// bring clears the target of what an earlier attempt has left there, and copies the image.
func (m *move) bring(source, target nodeAPI) error {
	_, exists, err := m.look()
	if err == nil && exists {
		err = target.remove(m.rt.ctx, m.tenant.name)
	}
	if err != nil {
		return err
	}
	m.bytes, err = copyImage(m.rt.ctx, source, target, m.tenant.name)
	return err
}

// verify makes sure, as late as can be, that nothing was written to the source since it was frozen: a node restarted,
// or somebody's thaw, may have ended the freeze.
func (m *move) verify(source, target nodeAPI) error {
	was, exists, err := source.state(m.rt.ctx, m.tenant.name)
	switch {
	case err != nil:
		return err
	case !exists || !was.Frozen || was.Token != m.token || was.Seq != m.seq:
		return &refusal{409, fmt.Sprintf("tenant %s did not stay frozen on node %s while its image was copied", m.tenant.name, m.from.name)}
	}
	now, exists, err := target.state(m.rt.ctx, m.tenant.name)
	switch {
	case err != nil:
		return err
	case !exists || !now.Held || now.Seq != m.seq:
		return &refusal{502, fmt.Sprintf("node %s does not hold the image of tenant %s as it was sent", m.to.name, m.tenant.name)}
	}
	return nil
}

// flip points the directory at the target, in one statement.
func (m *move) flip() error {
	return m.change(&tenant{name: m.tenant.name, node: m.to, state: settling, stale: with(m.tenant.stale, m.from.name)})
}

// undo puts back a move that failed before the flip: the copy on the target goes, the source takes writes again, the
// directory says what it said. What cannot be done now is owed.
func (m *move) undo() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.rt.ctx), undoTimeout)
	defer cancel()
	t := m.tenant
	if m.frozen != notFrozen {
		if err := m.from.api().thaw(ctx, t.name, m.token); err != nil || m.frozen == maybeFrozen {
			// The mark stays, and with it the debt. A freeze whose answer did not come may yet take effect.
			m.rt.owe(t)
			return
		}
	}
	stale, _ := m.rt.clearCopies(t.leftovers(), t.name) // what is left is owed
	back := &tenant{name: t.name, node: t.node, state: active, stale: stale}
	if err := m.change(back); err != nil {
		m.rt.log.Error().Str("tenant", t.name).Err(err).Msg("a move that failed could not be taken back in the directory")
		return
	}
	if !back.settled() {
		m.rt.owe(back)
	}
}

// cancelMove ends an interrupted move where the tenant is: its source takes writes, and the copy made of it goes.
func (rt *Router) cancelMove(t *tenant) error {
	if err := t.node.api().thaw(rt.ctx, t.name, t.token); err != nil {
		return err
	}
	stale, _ := rt.clearCopies(t.leftovers(), t.name) // what is left is owed
	back := &tenant{name: t.name, node: t.node, state: active, stale: stale}
	if err := rt.dir.change(t, back); err != nil {
		return err
	}
	if !back.settled() {
		rt.owe(back)
	}
	return nil
}

// finish ends a move after its flip: the target takes writes, the copies elsewhere go. It returns the tenant as the
// directory has it then; cleared tells that no copy is left.
func (rt *Router) finish(ctx context.Context, t *tenant) (now *tenant, cleared bool, err error) {
	if err := t.node.api().thaw(ctx, t.name, ""); err != nil {
		rt.owe(t)
		return t, false, fmt.Errorf("tenant %s is on node %s now and takes writes once that node answers: %w", t.name, t.node.name, err)
	}
	stale, err := rt.clearCopies(t.stale, t.name)
	if err != nil {
		rt.log.Warn().Str("tenant", t.name).Strs("nodes", stale).Err(err).Msg("a copy is left behind for now")
	}
	now = &tenant{name: t.name, node: t.node, state: active, stale: stale}
	if err := rt.dir.change(t, now); err != nil {
		return t, false, err
	}
	if !now.settled() {
		rt.owe(now)
	}
	return now, len(stale) == 0, nil
}
