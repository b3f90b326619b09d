package engine

import (
	"strings"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query"
)

// keysName is the collection of the writes that ran under a key.
const keysName = "_idempotency"

// isServers reports whether a collection is internal: in the file and in the change numbers like any other, but neither
// listed nor found by a statement.
func isServers(name string) bool { return strings.HasPrefix(name, "_") }

// The slots of keysName.
const (
	keyKey = iota
	keyRequest
	keyAt // when the write ran
	keyStatus
	keyBody
	keySeq
	keyHistory
	keySlots
)

// keySchema is the schema of keysName, which the first key creates.
var keySchema = &doc.Schema{
	Name: keysName, Slots: keySlots,
	Fields: []doc.Field{
		{Name: "key", Type: doc.Type{Kind: doc.TypeText}, Index: doc.Index{Kind: doc.IndexHash}, Slot: keyKey},
		{Name: "request", Type: doc.Type{Kind: doc.TypeBytes}, Slot: keyRequest},
		{Name: "at", Type: doc.Type{Kind: doc.TypeTimestamp}, Slot: keyAt},
		{Name: "status", Type: doc.Type{Kind: doc.TypeInt}, Slot: keyStatus},
		{Name: "body", Type: doc.Type{Kind: doc.TypeBytes}, Slot: keyBody},
		{Name: "seq", Type: doc.Type{Kind: doc.TypeInt}, Slot: keySeq},
		{Name: "history", Type: doc.Type{Kind: doc.TypeText}, Slot: keyHistory},
	},
}

// keyRow returns the row of a key, which may have expired, or nil.
func (db *DB) keyRow(key string) (row doc.Document, err error) {
	t := db.tables[keysName]
	if t == nil {
		return nil, nil
	}
	keys := t.Hash("key")
	if keys == nil {
		return nil, fail.New(fail.Damaged, "the collection %s has another schema than this version gives it", keysName)
	}
	v := doc.TextValue([]byte(key))
	keys.Ascend(doc.Hash(v), func(id int64) bool {
		d := t.Get(id)
		if doc.Equal(d.Field(keyKey).Value(), v) {
			row = d
		}
		return row == nil
	})
	return row, nil
}

// keyExpired reports whether a row of keysName has expired.
func (db *DB) keyExpired(row doc.Document, now time.Time) bool {
	at := int64(row.Field(keyAt).Value().N)
	return now.UnixMilli()-at >= db.opts.KeyTTL.Milliseconds()
}

// keep adds the row of o to the block and sets the position after the block in results.
func (x *tx) keep(o *Once, results []Result) error {
	if x.db.tables[keysName] == nil {
		if err := x.CreateCollection(keySchema); err != nil {
			return err
		}
	}
	before, err := x.db.keyRow(o.Key)
	if err != nil {
		return err
	}
	if before != nil { // it has expired
		if err := x.Delete(keysName, before.ID()); err != nil {
			return err
		}
	}
	if _, err := x.sweepKeys(sweptBeside); err != nil {
		return err
	}
	x.enterHistory() // the row may be the block's first change
	seq := x.db.seq + 1
	for i := range results {
		results[i].Seq, results[i].History = seq, x.db.historyText
	}
	status, body := o.Answer(results)
	id := x.NextID(keysName)
	if id == 0 {
		return fail.New(fail.TooLarge, "the collection %s has no ids left", keysName)
	}
	row, err := keyDocument(id, x.now, o, &Kept{Status: status, Body: body, Seq: seq, History: x.db.historyText})
	if err != nil {
		return err
	}
	return x.Put(keysName, row)
}

// keepWithin is keep for a batch. It counts the second copy of the batch's answer, which keep makes, in the account.
func (x *tx) keepWithin(account *query.Account, o *Once, results []Result) error {
	made := int64(0)
	for i := range results {
		made += int64(len(results[i].Body))
	}
	held := account.Held()
	defer account.Return(held)
	if err := account.Hold(2*made, "keeping its answer"); err != nil { // as an answer, and as a document
		return err
	}
	return x.keep(o, results)
}

func keyDocument(id int64, now time.Time, o *Once, k *Kept) (doc.Document, error) {
	values := [keySlots]doc.Value{
		keyKey:     doc.TextValue([]byte(o.Key)),
		keyRequest: {Kind: doc.Bytes, B: o.Request[:]},
		keyAt:      doc.TimestampValue(now.UnixMilli()),
		keyStatus:  doc.IntValue(int64(k.Status)),
		keyBody:    {Kind: doc.Bytes, B: k.Body},
		keySeq:     doc.IntValue(int64(k.Seq)),
		keyHistory: doc.TextValue([]byte(k.History)),
	}
	var b doc.Builder
	b.Reset(keySlots)
	for i, f := range keySchema.Fields {
		if err := b.Set(f.Slot, f.Type, values[i], "field "+f.Name); err != nil {
			return nil, fail.New(fail.KindOf(err), "the answer cannot be kept under the idempotency key: %s", err)
		}
	}
	if err := b.Check(); err != nil {
		return nil, fail.New(fail.KindOf(err), "the answer cannot be kept under the idempotency key: %s", err)
	}
	return b.AppendTo(nil, id), nil
}

// sweptBeside is how many expired keys a write under a new key deletes at most. It is more than one, so that the expired
// keys of a tenant that is never idle are deleted too.
const sweptBeside = 4

// sweepKeys deletes up to limit expired keys and returns how many. Ids grow with time, so the expired ones are the lowest.
func (x *tx) sweepKeys(limit int) (swept int, err error) {
	var over []int64
	if t := x.table(keysName); t != nil {
		t.Ascend(1, func(d doc.Document) bool {
			if len(over) == limit || !x.db.keyExpired(d, x.now) {
				return false
			}
			over = append(over, d.ID())
			return true
		})
	}
	for _, id := range over {
		if err := x.Delete(keysName, id); err != nil {
			return 0, err
		}
	}
	return len(over), nil
}

// keysToSweep reports whether a key has expired. It needs the lock, shared or not.
func (db *DB) keysToSweep(now time.Time) (found bool) {
	if t := db.tables[keysName]; t != nil {
		t.Ascend(1, func(d doc.Document) bool {
			found = db.keyExpired(d, now)
			return false
		})
	}
	return found
}
