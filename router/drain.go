package router

import (
	"errors"
	"slices"
	"sync"

	"fenec/internal/http1"
	"fenec/router/directory"

	"github.com/go-json-experiment/json"
)

// drained is the last line of a drain: its result.
type drained struct {
	Node     string `json:"node"`
	Moved    int    `json:"moved"`
	Replicas int    `json:"replicas,omitzero"` // moved
	Left     int    `json:"left"`              // tenants and replicas
	Error    string `json:"error,omitzero"`
}

// replicaMoved is the line of a tenant that has its replica on another node now.
type replicaMoved struct {
	Tenant  string `json:"tenant"`
	From    string `json:"from"`
	Replica string `json:"replica"`
}

// drain moves every tenant off a node, each to the node with the fewest bytes at that time, and then every replica. It sends a
// line of JSON as each move ends, and a last one with the result. The first failure stops it, after the moves under way have
// ended.
func (rt *Router) drain(r *http1.Request, name string) http1.Answer {
	if err := readJSON(r, &struct{}{}); err != nil {
		return answerError(err)
	}
	_, n := rt.dir.Node(name)
	if n == nil {
		return noNode(name)
	}
	if nodes, _ := rt.dir.Len(); nodes < 2 {
		return http1.ErrorAnswer(409, "no other node to move the tenants of "+name+" to: record one with PUT /_shard/nodes/<name>")
	}
	ctx := r.Context()
	return http1.Answer{
		Status:  200,
		Headers: []http1.Header{{Name: []byte("Content-Type"), Value: []byte("application/x-ndjson")}},
		Stream: func(out *http1.Writer) error {
			n.draining.Add(1)
			defer n.draining.Add(-1)
			d := &draining{rt: rt, node: n, id: r.ID, gone: ctx.Err}
			return d.run(out)
		},
	}
}

// draining is one drain under way.
type draining struct {
	rt       *Router
	node     *node
	id       []byte       // of the request that asked for it
	gone     func() error // returns an error once the client that asked for it has disconnected
	moved    int
	replicas int
	err      error // the first failure
}

// outcome is what became of one tenant: done is the line that says so.
type outcome struct {
	tenant string
	done   any
	err    error
}

func (d *draining) run(out *http1.Writer) error {
	for d.err == nil {
		tenants, replicas := d.tenants()
		move, left := d.move, tenants
		if len(tenants) == 0 {
			move, left = d.moveReplica, replicas
		}
		if len(left) == 0 {
			break
		}
		if err := d.round(out, left, move); err != nil {
			return err
		}
	}
	tenants, replicas := d.tenants()
	last := drained{Node: d.node.name, Moved: d.moved, Replicas: d.replicas, Left: len(tenants) + len(replicas)}
	if d.err != nil {
		last.Error = d.err.Error()
	}
	return writeLine(out, last)
}

// tenants returns the names of the tenants that the node serves, and of those whose replica it holds, sorted.
func (d *draining) tenants() (names, replicas []string) {
	d.rt.dir.Each(func(t *directory.Tenant, n *node) {
		switch {
		case t.Routed() && n == d.node:
			names = append(names, t.Name)
		case t.Routed() && t.Replica == d.node.name:
			replicas = append(replicas, t.Name)
		}
	})
	slices.Sort(names)
	slices.Sort(replicas)
	return names, replicas
}

// round has every tenant moved, operationWidth at a time. It returns an error of the client's connection; that of a move is in
// d.err.
func (d *draining) round(out *http1.Writer, tenants []string, move func(name string) (any, error)) (failed error) {
	next, outcomes := make(chan string), make(chan outcome)
	var movers sync.WaitGroup
	for range min(operationWidth, len(tenants)) {
		movers.Go(func() {
			for name := range next {
				done, err := move(name)
				outcomes <- outcome{name, done, err}
			}
		})
	}
	under := 0
	for len(tenants) > 0 || under > 0 {
		give := next
		if len(tenants) == 0 || d.err != nil || failed != nil || d.stopped() {
			give, tenants = nil, nil
			if under == 0 {
				break
			}
		}
		select {
		case give <- first(tenants):
			tenants = tenants[1:]
			under++
		case o := <-outcomes:
			under--
			if err := d.report(out, o); err != nil {
				failed = err
			}
		}
	}
	close(next)
	movers.Wait()
	return failed
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// stopped reports whether the drain ends early because the router stops, its client disconnected or a move failed.
func (d *draining) stopped() bool {
	select {
	case <-d.rt.server.Draining():
		if d.err == nil {
			d.err = errors.New("the router is stopping")
		}
		return true
	default:
	}
	if d.gone() != nil && d.err == nil {
		d.err = errClientGone
	}
	return d.err != nil
}

// report writes the line of one move.
func (d *draining) report(out *http1.Writer, o outcome) error {
	if o.err == nil {
		if _, ok := o.done.(replicaMoved); ok {
			d.replicas++
		} else {
			d.moved++
		}
		return writeLine(out, o.done)
	}
	if d.err == nil {
		d.err = o.err
	}
	return writeLine(out, failedTenant{o.tenant, o.err.Error()})
}

// moveReplica moves the replica of one tenant off the node. It is deleted once the new one has caught up.
func (d *draining) moveReplica(name string) (any, error) {
	end, err := d.rt.begin(name, directory.Replicate)
	if err != nil {
		return nil, err
	}
	defer end()
	t := d.rt.dir.Tenant(name)
	if t == nil || t.Replica != d.node.name {
		return replicaMoved{Tenant: name, From: d.node.name}, nil // deleted meanwhile, or moved by another request
	}
	if t, err = d.rt.place(t, noCensus(), func(t *directory.Tenant, n *node) (*directory.Tenant, error) { return d.rt.replace(d.rt.ctx, t, n) }); err != nil {
		return nil, err
	}
	return replicaMoved{name, d.node.name, t.Replica}, nil
}

// move moves one tenant off the node.
func (d *draining) move(name string) (any, error) {
	end, err := d.rt.begin(name, directory.Move)
	if err != nil {
		return nil, err
	}
	defer end()
	t := d.rt.dir.Tenant(name)
	if !t.Routed() || t.Node != d.node.name {
		return moved{Tenant: name, From: d.node.name}, nil // deleted meanwhile, or moved by another request
	}
	to, err := d.rt.emptiest(d.node.name, t.Replica)
	if err != nil { // the node of the replica remains
		to, err = d.rt.emptiest(d.node.name)
	}
	if err != nil {
		return nil, err
	}
	return d.rt.move(t, to, d.id)
}

// writeLine sends a value as one line of JSON.
func writeLine(out *http1.Writer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return err
	}
	return out.Flush()
}
