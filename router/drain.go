package router

import (
	"errors"
	"sort"
	"sync"

	"fenec/internal/http1"
	"fenec/router/directory"

	"github.com/go-json-experiment/json"
)

// drainWidth is how many tenants a drain moves at a time.
const drainWidth = 4

// drained is the last line of a drain: its result.
type drained struct {
	Node  string `json:"node"`
	Moved int    `json:"moved"`
	Left  int    `json:"left"`
	Error string `json:"error,omitzero"`
}

// drainFailed is the line of a tenant that could not be moved.
type drainFailed struct {
	Tenant string `json:"tenant"`
	Error  string `json:"error"`
}

// drain moves every tenant off a node, each to the node with the fewest bytes at that time. It sends a line of JSON as each
// move ends, and a last one with the result. The first failure stops it, after the moves under way have ended.
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
	rt    *Router
	node  *node
	id    []byte       // of the request that asked for it
	gone  func() error // returns an error once the client that asked for it has disconnected
	moved int
	err   error // the first failure
}

// outcome is one tenant's move.
type outcome struct {
	tenant string
	done   moved
	err    error
}

func (d *draining) run(out *http1.Writer) error {
	for d.err == nil {
		tenants := d.tenants()
		if len(tenants) == 0 {
			break
		}
		if err := d.round(out, tenants); err != nil {
			return err
		}
	}
	last := drained{Node: d.node.name, Moved: d.moved, Left: len(d.tenants())}
	if d.err != nil {
		last.Error = d.err.Error()
	}
	return writeLine(out, last)
}

// tenants returns the names of the tenants that the node serves, sorted.
func (d *draining) tenants() []string {
	var names []string
	d.rt.dir.Each(func(t *directory.Tenant, n *node) {
		if t.Routed() && n == d.node {
			names = append(names, t.Name)
		}
	})
	sort.Strings(names)
	return names
}

// round moves the tenants, drainWidth at a time. It returns an error of the client's connection; that of a move is in d.err.
func (d *draining) round(out *http1.Writer, tenants []string) (failed error) {
	next, outcomes := make(chan string), make(chan outcome)
	var movers sync.WaitGroup
	for range min(drainWidth, len(tenants)) {
		movers.Go(func() {
			for name := range next {
				done, err := d.move(name)
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
		d.moved++
		return writeLine(out, o.done)
	}
	if d.err == nil {
		d.err = o.err
	}
	return writeLine(out, drainFailed{o.tenant, o.err.Error()})
}

// move moves one tenant off the node.
func (d *draining) move(name string) (moved, error) {
	end, err := d.rt.begin(name, directory.Move)
	if err != nil {
		return moved{}, err
	}
	defer end()
	t := d.rt.dir.Tenant(name)
	if !t.Routed() || t.Node != d.node.name {
		return moved{Tenant: name, From: d.node.name}, nil // deleted meanwhile, or moved by another request
	}
	to, err := d.rt.emptiest(d.node)
	if err != nil {
		return moved{}, err
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
