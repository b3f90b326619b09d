package feed

import (
	"slices"

	"fenec/engine"
	"fenec/engine/doc"
)

// Changed is what happened to one collection.
type Changed struct {
	Seq     uint64  // up to this change, at which the last block ends
	IDs     []int64 // of documents put or deleted, each once, ascending
	Schema  bool    // the collection has another schema or index
	Dropped bool    // the collection was dropped, and may have been created again
}

// changedBudget is how many bytes of blocks Changed reads before it releases them.
const changedBudget = 1 << 20

// Collection returns the number of the collection that had a name after the change seq, 0 if there was none that the scope
// permits to read.
func (f *Feed) Collection(scope engine.Scope, name string, seq uint64) uint64 {
	if scope.MayRead() != nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.schemas.number(name, seq)
}

// Schema returns the schema of the collection of that number after the change seq. It returns nil if there was no such
// collection then, or if the feed no longer keeps changes from that far back.
func (f *Feed) Schema(number, seq uint64) *doc.Schema {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.schemas.at(number, seq)
}

// Changed returns what has happened to the collection of that number after the change since, in whole blocks up to the
// last one that has landed. ids is appended to, and may be the emptied Changed.IDs of the previous call. Changed fails
// with a *Gone if there are more than most changes or they are no longer kept: the caller then reads the whole
// collection again. It fails with an *Ahead if since is past the last change.
func (f *Feed) Changed(scope engine.Scope, ids []int64, number, since, most uint64) (Changed, error) {
	if err := scope.MayRead(); err != nil {
		return Changed{}, err
	}
	f.mu.Lock()
	err := f.check(since)
	if err == nil && f.landed-since > most {
		err = &Gone{f.landed - most}
	}
	f.mu.Unlock()
	changed := Changed{Seq: since, IDs: ids}
	if err != nil {
		return changed, err
	}
	var blocks []Block
	for {
		if blocks, err = f.Read(scope, blocks[:0], changed.Seq, Landed, changedBudget); err != nil || len(blocks) == 0 {
			break
		}
		for _, b := range blocks {
			if err = changed.follow(b, number); err != nil {
				return changed, err
			}
		}
	}
	slices.Sort(changed.IDs)
	changed.IDs = slices.Compact(changed.IDs)
	return changed, err
}

// follow adds what a block did to the collection of that number. Changes up to c.Seq are counted already.
func (c *Changed) follow(b Block, number uint64) error {
	seq := b.Before
	err := b.Record.Changes(func(one *engine.Change) error {
		seq++
		if seq <= c.Seq || one.Table != number {
			return nil
		}
		switch one.Op {
		case engine.Put, engine.Deleted:
			c.IDs = append(c.IDs, one.ID)
		case engine.Altered:
			c.Schema = true
		case engine.Dropped:
			c.Dropped = true
		}
		return nil
	})
	c.Seq = b.After
	return err
}
