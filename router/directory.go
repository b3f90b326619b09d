package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"
)

// directory is the router's only state: the nodes and where each tenant is. It is a file of the engine with two
// collections, and maps of its rows whose readers no writer blocks. A change is one statement, written and synced before
// the maps change and before any request is answered.
//
// Changes of different tenants run concurrently and share a sync. Changes of one tenant run one after the other: the
// caller holds the tenant's operation (see operations).
type directory struct {
	db   *engine.DB
	lock io.Closer
	log  zerolog.Logger
	open func(name, addr, token string) (*node, error) // creates a node's object

	nodes   atomic.Pointer[map[string]*node] // replaced whole under mu
	tenants placements
	mu      sync.Mutex // guards node.holds, node.removed and the replacement of nodes
}

// schema is the file's schema. The state of a tenant is a name of stateNames; stale is its leftovers separated by spaces,
// each the name of a node, followed by a colon and the token if there is one.
var schema = []string{
	`create collection if not exists nodes (name text required @unique, addr text required, token text required)`,
	`create collection if not exists tenants (name text required @unique, node text required, state text required,
		target text, token text, stale text)`,
}

// openDirectory opens or creates the file at path and reads it into the maps.
func openDirectory(fs vfs.FS, path string, o engine.Options, open func(name, addr, token string) (*node, error)) (*directory, error) {
	lock, err := fs.Lock(path + ".lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("the directory %s is in use by another router", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the directory %s cannot be locked: %s", path, vfs.Reason(err))
	}
	d := &directory{lock: lock, log: o.Log, open: open}
	d.nodes.Store(&map[string]*node{})
	o.FS, o.Sync = fs, wal.Policy{Always: true}
	if _, err = fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		d.db, err = engine.Create(path, o)
	} else if err == nil {
		d.db, err = engine.Open(path, o)
	}
	if err == nil {
		// A router that was killed may have written rows that it never synced. Rows must be on disk before they are used.
		if err = d.db.Sync(); err == nil {
			err = d.load()
		}
	}
	if err != nil {
		d.close() // the error of the open is the one to return
		return nil, fmt.Errorf("the directory %s cannot be opened: %w", path, err)
	}
	return d, nil
}

func (d *directory) close() error {
	var err error
	if d.db != nil {
		err = d.db.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// nodeRow and tenantRow are the rows of the two collections.
type nodeRow struct {
	Name  string `json:"name"`
	Addr  string `json:"addr"`
	Token string `json:"token"`
}

type tenantRow struct {
	Name   string `json:"name"`
	Node   string `json:"node"`
	State  string `json:"state"`
	Target string `json:"target"`
	Token  string `json:"token"`
	Stale  string `json:"stale"`
}

func (d *directory) load() error {
	for _, text := range schema {
		if err := d.exec(text); err != nil {
			return err
		}
	}
	var nodes []nodeRow
	if err := d.rows(`get nodes select name, addr, token`, &nodes); err != nil {
		return err
	}
	known := map[string]*node{}
	for _, row := range nodes {
		n, err := d.open(row.Name, row.Addr, row.Token)
		if err != nil {
			return fmt.Errorf("node %s: %w", row.Name, err)
		}
		known[row.Name] = n
	}
	d.nodes.Store(&known)
	var tenants []tenantRow
	if err := d.rows(`get tenants select name, node, state, target, token, stale`, &tenants); err != nil {
		return err
	}
	for _, row := range tenants {
		t, err := d.read(row)
		if err != nil {
			return err
		}
		for _, n := range t.named() {
			n.holds++
		}
		d.tenants.set(t.name, t)
	}
	return nil
}

// read converts a row to a tenant.
func (d *directory) read(row tenantRow) (*tenant, error) {
	s, ok := parseState(row.State)
	t := &tenant{
		name: row.Name, state: s, node: d.node(row.Node), target: d.node(row.Target), token: row.Token,
	}
	for _, text := range strings.Fields(row.Stale) {
		name, token, _ := strings.Cut(text, ":")
		t.stale = append(t.stale, leftover{name, token})
	}
	switch {
	case !ok:
		return nil, fail.New(fail.Damaged, "tenant %s is in state %s, which this version does not know", row.Name, row.State)
	case t.node == nil && s != gone:
		return nil, fail.New(fail.Damaged, "tenant %s is on node %q, which is not recorded", row.Name, row.Node)
	case t.target == nil && s == moving:
		return nil, fail.New(fail.Damaged, "tenant %s moves to node %q, which is not recorded", row.Name, row.Target)
	}
	return t, nil
}

// row returns the tenant's row.
func (t *tenant) row() []doc.Value {
	row := []doc.Value{textValue(t.name), textValue(""), textValue(t.state.String()), {}, {}, {}}
	if t.node != nil {
		row[1] = textValue(t.node.name)
	}
	if t.target != nil {
		row[3] = textValue(t.target.name)
	}
	if t.token != "" {
		row[4] = textValue(t.token)
	}
	if len(t.stale) > 0 {
		var text []byte
		for _, l := range t.stale {
			if len(text) > 0 {
				text = append(text, ' ')
			}
			text = append(text, l.node...)
			if l.token != "" {
				text = append(append(text, ':'), l.token...)
			}
		}
		row[5] = textValue(string(text))
	}
	return row
}

// named returns the nodes that cannot be removed while the tenant is in this state.
func (t *tenant) named() []*node {
	var list []*node
	if t == nil || t.state == gone {
		return nil
	}
	if t.node != nil {
		list = append(list, t.node)
	}
	if t.target != nil {
		list = append(list, t.target)
	}
	return list
}

// change replaces a tenant's row: old is the current row, nil for none, and next the new one, nil to delete it. The caller
// holds the tenant's operation. After an error that is inDoubt the change may or may not be on disk; the next start reads
// which.
func (d *directory) change(old, next *tenant) error {
	if err := d.reserve(next); err != nil {
		return err
	}
	var err error
	switch {
	case next == nil:
		err = d.exec(`del tenants where name = $1 require 1`, textValue(old.name))
	case old == nil:
		err = d.exec(`insert tenants {name: $1, node: $2, state: $3, target: $4, token: $5, stale: $6}`, next.row()...)
	default:
		err = d.exec(`set tenants {node: $2, state: $3, target: $4, token: $5, stale: $6} where name = $1 require 1`, next.row()...)
	}
	if err != nil {
		d.release(next)
		return err
	}
	if next != nil {
		d.tenants.set(next.name, next)
	} else {
		d.tenants.set(old.name, nil)
	}
	d.release(old)
	return nil
}

// inDoubt reports whether a change that failed may be found on disk at the next start.
func inDoubt(err error) bool {
	switch fail.KindOf(err) {
	case fail.Storage, fail.Full:
		return true
	}
	return false
}

// reserve keeps the nodes that a tenant names from being removed.
func (d *directory) reserve(t *tenant) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range t.named() {
		if n.removed {
			return &refusal{404, "no node " + n.name}
		}
	}
	for _, n := range t.named() {
		n.holds++
	}
	return nil
}

func (d *directory) release(t *tenant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range t.named() {
		n.holds--
	}
}

// node returns the node of a name, nil if there is no such node.
func (d *directory) node(name string) *node { return (*d.nodes.Load())[name] }

// nodeList returns the nodes, sorted by name.
func (d *directory) nodeList() []*node {
	nodes := *d.nodes.Load()
	list := make([]*node, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, n)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// putNode records a node, or a new address and token of a known one. The caller holds the operation on the node's name.
func (d *directory) putNode(name, addr, token string) (made bool, err error) {
	fresh, err := d.open(name, addr, token)
	if err != nil {
		return false, &refusal{400, err.Error()}
	}
	if n := d.node(name); n != nil {
		err := d.exec(`set nodes {addr: $2, token: $3} where name = $1 require 1`, textValue(name), textValue(addr), textValue(token))
		if err != nil {
			return false, err
		}
		n.link.Swap(fresh.link.Load()).pool.close()
		return false, nil
	}
	err = d.exec(`insert nodes {name: $1, addr: $2, token: $3}`, textValue(name), textValue(addr), textValue(token))
	if err != nil {
		return false, err
	}
	d.replaceNodes(func(nodes map[string]*node) { nodes[name] = fresh })
	return true, nil
}

// removeNode removes a node that no tenant names. The caller holds the operation on the node's name.
func (d *directory) removeNode(n *node) error {
	d.mu.Lock()
	holds := n.holds
	n.removed = holds == 0
	d.mu.Unlock()
	if holds > 0 {
		what := "tenants"
		if holds == 1 {
			what = "tenant"
		}
		return &refusal{409, fmt.Sprintf("node %s holds %d %s: move them first", n.name, holds, what)}
	}
	if err := d.exec(`del nodes where name = $1 require 1`, textValue(n.name)); err != nil {
		d.mu.Lock()
		n.removed = false
		d.mu.Unlock()
		return err
	}
	d.replaceNodes(func(nodes map[string]*node) { delete(nodes, n.name) })
	n.link.Load().pool.close()
	return nil
}

func (d *directory) replaceNodes(edit func(map[string]*node)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	nodes := map[string]*node{}
	for name, n := range *d.nodes.Load() {
		nodes[name] = n
	}
	edit(nodes)
	d.nodes.Store(&nodes)
}

// holdCounts returns how many tenants each node serves.
func (d *directory) holdCounts() map[*node]int {
	counts := map[*node]int{}
	d.tenants.each(func(t *tenant) {
		if t.routed() {
			counts[t.node]++
		}
	})
	return counts
}

// exec runs one statement. It has no deadline: a change of the directory does not end because its client disconnected.
func (d *directory) exec(text string, params ...doc.Value) error {
	_, err := d.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text, Params: params}, nil)
	return err
}

func (d *directory) rows(text string, into any) error {
	result, err := d.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(result.Body, into)
}

func textValue(s string) doc.Value { return doc.Value{Kind: doc.Text, B: []byte(s)} }

// A directory is compacted if its file is over compactBytes and over compactFactor times what its rows need.
const (
	compactBytes  = 1 << 20
	compactFactor = 4
	rowBytes      = 200
)

// tidy compacts the file if most of it is rows that have changed since.
func (d *directory) tidy() {
	size := d.db.Stats().FileBytes
	if size < compactBytes || size < int64(compactFactor*rowBytes*(d.tenants.len()+len(*d.nodes.Load()))) {
		return
	}
	if err := d.exec(`compact`); err != nil {
		d.log.Warn().Err(err).Msg("the directory could not be compacted")
	}
}

// held returns how many tenants, and changes under way, name each of the nodes.
func (d *directory) held(nodes []*node) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := make([]int, len(nodes))
	for i, n := range nodes {
		held[i] = n.holds
	}
	return held
}
