package directory

import (
	"context"
	"errors"
	"os"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/engine/wal"

	"github.com/go-json-experiment/json"
)

// everything is what the directory asks its own database for.
var everything = engine.Everything()

// store is the directory's file, open.
type store struct {
	db      *engine.DB
	feed    *feed.Feed
	nodes   collection
	tenants collection
}

// collection is what is needed to read a collection's documents in the feed.
type collection struct {
	number uint64
	schema *doc.Schema
}

// feedBytes is how much of what a compact has removed from the file the feed keeps.
const feedBytes = 1 << 20

// openStore opens or creates the file at path. All that is in it is on disk when openStore returns.
func openStore(path string, o engine.Options) (*store, error) {
	s := &store{feed: feed.New(feedBytes)}
	o.Sync, o.Feed = wal.Policy{Always: true}, s.feed
	_, err := o.FS.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.db, err = engine.Create(path, o)
	case err == nil:
		s.db, err = engine.Open(path, o)
	}
	if err != nil {
		return nil, err
	}
	// A router that was killed may have written rows that it never synced. Rows must be on disk before they are used.
	if err = s.db.Sync(); err == nil {
		err = s.prepare()
	}
	if err != nil {
		s.close() // the error of the open is the one to return
		return nil, err
	}
	return s, nil
}

func (s *store) close() error { return s.db.Close() }

// prepare creates the collections if there are none, adds the fields that they lack, and looks up how to read them.
func (s *store) prepare() error {
	for _, text := range schema {
		if _, err := s.exec(engine.Statement{Text: text}); err != nil {
			return err
		}
	}
	collections := map[string]*collection{"nodes": &s.nodes, "tenants": &s.tenants}
	s.look(collections)
	for _, a := range added {
		if collections[a.collection].schema.Field(a.field) != nil {
			continue
		}
		if _, err := s.exec(engine.Statement{Text: `alter collection ` + a.collection + ` add field ` + a.field + ` text`}); err != nil {
			return err
		}
	}
	s.look(collections)
	return nil
}

// look finds the numbers and the schemas of the collections.
func (s *store) look(collections map[string]*collection) {
	end := s.feed.End(feed.Landed)
	for name, c := range collections {
		c.number = s.feed.Collection(everything, name, end)
		c.schema = s.feed.Schema(c.number, end)
	}
}

// failed returns the error that stopped writes, nil if none did.
func (s *store) failed() error { return s.db.Stats().Failed }

// exec runs statements as one block and returns the change at which it ends. It has no deadline: a change of the directory
// does not end because its client disconnected.
func (s *store) exec(sts ...engine.Statement) (version uint64, err error) {
	reply, err := s.db.Run(context.Background(), everything, &engine.Request{Statements: sts})
	switch {
	case err != nil:
		return 0, err
	case len(sts) == 1:
		return reply.Result.Seq, nil
	}
	return reply.Results[len(sts)-1].Seq, nil
}

// all returns every row, and the change as of which it was read.
func (s *store) all() (nodes, tenants []Change, version uint64, err error) {
	var texts [2][]byte
	err = s.db.SettledView(context.Background(), everything, func(v *engine.View) error {
		version = v.Seq
		for i, text := range []string{
			`get nodes select name, addr, token, standby, passive`,
			`get tenants select name, node, state, target, token, stale, replica, lineage`,
		} {
			q, err := s.db.Query(text)
			if err != nil {
				return err
			}
			result, err := v.Run(q, nil, nil)
			if err != nil {
				return err
			}
			texts[i] = result.Body
		}
		return nil
	})
	if err != nil {
		return nil, nil, 0, err
	}
	var nodeRows []nodeColumns
	var tenantRows []tenantColumns
	if err = json.Unmarshal(texts[0], &nodeRows); err == nil {
		err = json.Unmarshal(texts[1], &tenantRows)
	}
	if err != nil {
		return nil, nil, 0, fail.New(fail.Damaged, "the rows of the directory cannot be read: %w", err)
	}
	for i := range nodeRows {
		nodes = append(nodes, nodeRows[i].change(version))
	}
	for i := range tenantRows {
		c, err := tenantRows[i].change(version)
		if err != nil {
			return nil, nil, 0, err
		}
		tenants = append(tenants, c)
	}
	return nodes, tenants, version, nil
}

// readBytes is how many bytes of blocks since reads at a time.
const readBytes = 1 << 20

// since returns the changes of rows after a version, in order, and the version up to which they are all. It includes the
// change to, which has been acknowledged. It fails with a *feed.Gone if the feed does not reach back to that version.
func (s *store) since(version, to uint64) (changes []Change, now uint64, err error) {
	for now = version; ; {
		moved := s.feed.Moved(feed.Settled)
		blocks, err := s.feed.Read(everything, nil, now, feed.Settled, readBytes)
		if err != nil {
			return nil, 0, err
		}
		for _, b := range blocks {
			if changes, err = s.read(changes, b); err != nil {
				return nil, 0, err
			}
			now = b.After
		}
		if len(blocks) > 0 {
			continue
		}
		if now >= to {
			return changes, now, nil
		}
		<-moved // the log acknowledges a change a moment before it notifies the feed
	}
}

// read appends the changes of rows in a block.
func (s *store) read(changes []Change, b feed.Block) ([]Change, error) {
	seq := b.Before
	err := b.Record.Changes(func(c *engine.Change) error {
		seq++
		if c.Op != engine.Put {
			return nil // a row is marked as deleted before it is
		}
		switch c.Table {
		case s.nodes.number:
			n := nodeColumns{
				Name: s.nodes.text(c.Doc, "name"), Addr: s.nodes.text(c.Doc, "addr"), Token: s.nodes.text(c.Doc, "token"),
				Standby: s.nodes.text(c.Doc, "standby"), Passive: s.nodes.text(c.Doc, "passive"),
			}
			changes = append(changes, n.change(seq))
		case s.tenants.number:
			t := tenantColumns{
				Name: s.tenants.text(c.Doc, "name"), Node: s.tenants.text(c.Doc, "node"), State: s.tenants.text(c.Doc, "state"),
				Target: s.tenants.text(c.Doc, "target"), Token: s.tenants.text(c.Doc, "token"), Stale: s.tenants.text(c.Doc, "stale"),
				Replica: s.tenants.text(c.Doc, "replica"), Lineage: s.tenants.text(c.Doc, "lineage"),
			}
			one, err := t.change(seq)
			if err != nil {
				return err
			}
			changes = append(changes, one)
		}
		return nil
	})
	return changes, err
}

// text returns the value of a text field, empty if it is null.
func (c *collection) text(d doc.Document, field string) string {
	text, _ := d.Field(c.schema.Field(field).Slot).Text()
	return string(text)
}

// putNode returns the statement that makes next a node's row.
func putNode(next *Node, isNew bool) engine.Statement {
	text := `set nodes {addr: $2, token: $3, standby: $4, passive: $5} where name = $1 require 1`
	if isNew {
		text = `insert nodes {name: $1, addr: $2, token: $3, standby: $4, passive: $5}`
	}
	c := next.columns()
	return engine.Statement{Text: text, Params: orNull(3, c.Name, c.Addr, c.Token, c.Standby, c.Passive)}
}

// putTenant returns the statement that makes next a tenant's row.
func putTenant(next *Tenant, isNew bool) engine.Statement {
	text := `set tenants {node: $2, state: $3, target: $4, token: $5, stale: $6, replica: $7, lineage: $8} where name = $1 require 1`
	if isNew {
		text = `insert tenants {name: $1, node: $2, state: $3, target: $4, token: $5, stale: $6, replica: $7, lineage: $8}`
	}
	c := next.columns()
	return engine.Statement{Text: text, Params: orNull(3, c.Name, c.Node, c.State, c.Target, c.Token, c.Stale, c.Replica, c.Lineage)}
}

// orNull is texts, with the columns from a number on null if they are empty.
func orNull(from int, list ...string) []doc.Value {
	params := texts(list...)
	for i := from; i < len(params); i++ {
		if len(params[i].B) == 0 {
			params[i] = doc.Value{}
		}
	}
	return params
}

// deleteNode and deleteTenant return the statements that delete a row.
func deleteNode(name string) []engine.Statement {
	return []engine.Statement{
		{Text: `set nodes {addr: $2} where name = $1 require 1`, Params: texts(name, deletedAddr)},
		{Text: `del nodes where name = $1 require 1`, Params: texts(name)},
	}
}

func deleteTenant(name string) []engine.Statement {
	return []engine.Statement{
		{Text: `set tenants {state: $2} where name = $1 require 1`, Params: texts(name, deletedState)},
		{Text: `del tenants where name = $1 require 1`, Params: texts(name)},
	}
}

func texts(list ...string) []doc.Value {
	values := make([]doc.Value, len(list))
	for i, s := range list {
		values[i] = doc.Value{Kind: doc.Text, B: []byte(s)}
	}
	return values
}

// isStorage reports whether an error is one of the disk.
func isStorage(err error) bool {
	switch fail.KindOf(err) {
	case fail.Storage, fail.Full:
		return true
	}
	return false
}
