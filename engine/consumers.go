package engine

import (
	"context"
	"slices"
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Consumer is one reader of the changes whose cursor the database keeps.
type Consumer struct {
	Name  string
	Since uint64 // the last change it has processed
}

const (
	// MaxConsumers is how many consumers a database keeps.
	MaxConsumers = 1000
	// MaxConsumerName is the most characters of a consumer's name.
	MaxConsumerName = 128
)

// consumersName is the collection of the consumers, one document each.
const consumersName = "_consumers"

// The slots of consumersName.
const (
	consumerName = iota
	consumerSince
	consumerSlots
)

// consumerSchema is the schema of consumersName, which the first consumer creates.
var consumerSchema = &doc.Schema{
	Name: consumersName, Slots: consumerSlots,
	Fields: []doc.Field{
		{Name: "name", Type: doc.Type{Kind: doc.TypeText}, Slot: consumerName},
		{Name: "since", Type: doc.Type{Kind: doc.TypeInt}, Slot: consumerSince},
	},
}

// Consumers lists the consumers by name.
func (db *DB) Consumers(scope Scope) ([]Consumer, error) {
	if err := scope.MayRead(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return nil, errClosed()
	}
	var all []Consumer
	db.eachConsumer(func(_ int64, c Consumer) bool {
		all = append(all, c)
		return true
	})
	slices.SortFunc(all, func(a, b Consumer) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Consumer returns the consumer of that name. It fails with fail.NotFound if it does not exist.
func (db *DB) Consumer(scope Scope, name string) (Consumer, error) {
	if err := scope.MayRead(); err != nil {
		return Consumer{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return Consumer{}, errClosed()
	}
	id, c := db.consumer(name)
	if id == 0 {
		return Consumer{}, errConsumer(name)
	}
	return c, nil
}

// SetConsumer sets a consumer's cursor and creates the consumer if it does not exist. It is an ordinary write, under a key
// if o is not nil.
func (db *DB) SetConsumer(scope Scope, o *Once, c Consumer) (Result, *Kept, error) {
	if err := checkConsumerName(c.Name); err != nil {
		return Result{}, nil, err
	}
	return db.writeOwn(scope, o, func(x *tx) error {
		t := db.tables[consumersName]
		if t == nil {
			if err := x.CreateCollection(consumerSchema); err != nil {
				return err
			}
			t = db.tables[consumersName]
		}
		id, _ := db.consumer(c.Name)
		if id == 0 {
			if t.Len() >= MaxConsumers {
				return fail.New(fail.Conflict, "a tenant has at most %d consumers: delete one that is no longer used", MaxConsumers)
			}
			if id = x.NextID(consumersName); id == 0 {
				return fail.New(fail.TooLarge, "the collection %s has no ids left", consumersName)
			}
		}
		row, err := consumerDocument(id, c)
		if err != nil {
			return err
		}
		return x.Put(consumersName, row)
	})
}

// DeleteConsumer deletes a consumer. It fails with fail.NotFound if it does not exist.
func (db *DB) DeleteConsumer(scope Scope, o *Once, name string) (Result, *Kept, error) {
	return db.writeOwn(scope, o, func(x *tx) error {
		id, _ := db.consumer(name)
		if id == 0 {
			return errConsumer(name)
		}
		return x.Delete(consumersName, id)
	})
}

// writeOwn runs a write to an internal collection.
func (db *DB) writeOwn(scope Scope, o *Once, own func(x *tx) error) (Result, *Kept, error) {
	w := write{ctx: context.Background(), scope: scope, once: o, own: own}
	kept, err := db.write(&w)
	if err != nil {
		return Result{}, nil, err
	}
	return w.result, kept, nil
}

// consumer returns a consumer and the id of its document, or 0 if it does not exist. It needs the lock, shared or not.
func (db *DB) consumer(name string) (id int64, found Consumer) {
	db.eachConsumer(func(at int64, c Consumer) bool {
		if c.Name == name {
			id, found = at, c
		}
		return id == 0
	})
	return id, found
}

func (db *DB) eachConsumer(fn func(id int64, c Consumer) bool) {
	t := db.tables[consumersName]
	if t == nil {
		return
	}
	t.Ascend(1, func(d doc.Document) bool {
		name, since := d.Field(consumerName).Value(), d.Field(consumerSince).Value()
		return fn(d.ID(), Consumer{string(name.B), since.N})
	})
}

func consumerDocument(id int64, c Consumer) (doc.Document, error) {
	values := [consumerSlots]doc.Value{
		consumerName:  doc.TextValue([]byte(c.Name)),
		consumerSince: doc.IntValue(int64(c.Since)),
	}
	var b doc.Builder
	b.Reset(consumerSlots)
	for _, f := range consumerSchema.Fields {
		if err := b.Set(f.Slot, f.Type, values[f.Slot], "field "+f.Name); err != nil {
			return nil, err
		}
	}
	return b.AppendTo(nil, id), nil
}

func checkConsumerName(name string) error {
	if len(name) == 0 || len(name) > MaxConsumerName {
		return fail.New(fail.Invalid, "the name of a consumer has 1 to %d characters, got %d", MaxConsumerName, len(name))
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
		return fail.New(fail.Invalid, "the name of a consumer is printable ASCII, got %q", name)
	}
	return nil
}

func errConsumer(name string) error {
	return fail.New(fail.NotFound, "there is no consumer %q", name)
}
