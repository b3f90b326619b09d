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

// isServers tells a collection of the server's own: in the file and in the change numbers like any other, and neither
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

// keySchema is what keysName is made with, as a first key comes.
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

// keyRow is the row of a key, nil where there is none; its time may be over.
func (db *DB) keyRow(key string) (row doc.Document, err error) {
	t := db.tables[keysName]
	if t == nil {
		return nil, nil
	}
	keys := t.Hash("key")
	if keys == nil {
		return nil, fail.New(fail.Damaged, "the collection %s is not as this version makes it", keysName)
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

// over tells that the time of a row of keysName has passed.
func (db *DB) over(row doc.Document, now time.Time) bool {
	at := int64(row.Field(keyAt).Value().N)
	return now.UnixMilli()-at >= db.opts.KeyTTL.Milliseconds()
}

// keep adds the row of o to the block and gives results the change the block will end at.
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
	if before != nil { // its time is over
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

// keepWithin is keep of the answer of a batch, which is made a second time for it, and counted in the account as it is.
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

// sweptBeside is how many keys whose time is over a new one takes out with it at most: more than one, so that a tenant
// that is never idle gets rid of them too.
const sweptBeside = 4

// sweepKeys deletes up to limit keys whose time is over, and says how many. Ids are handed out as time goes, so they are
// the lowest.
func (x *tx) sweepKeys(limit int) (swept int, err error) {
	var over []int64
	if t := x.table(keysName); t != nil {
		t.Ascend(1, func(d doc.Document) bool {
			if len(over) == limit || !x.db.over(d, x.now) {
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

// keysToSweep tells that the time of a key is over. It needs the lock, shared or not.
func (db *DB) keysToSweep(now time.Time) (found bool) {
	if t := db.tables[keysName]; t != nil {
		t.Ascend(1, func(d doc.Document) bool {
			found = db.over(d, now)
			return false
		})
	}
	return found
}
