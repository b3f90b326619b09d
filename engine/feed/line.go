package feed

import (
	"strconv"

	"fenec/engine"
	"fenec/engine/doc"
)

// ops are the names of changes.
var ops = map[engine.ChangeOp]string{
	engine.Put: "put", engine.Deleted: "del", engine.Created: "create", engine.Altered: "alter", engine.Dropped: "drop",
}

// AppendLine appends the line of a change, as change data capture sends it: its number, its time in epoch milliseconds, what it did,
// and the document if it put one. The schema is that of Names.Schema.
func AppendLine(dst []byte, one *engine.Change, schema *doc.Schema, seq uint64, at int64) []byte {
	dst = strconv.AppendUint(append(dst, `{"seq":`...), seq, 10)
	dst = strconv.AppendInt(append(dst, `,"at":`...), at, 10)
	dst = doc.AppendQuoted(append(dst, `,"collection":`...), []byte(schema.Name))
	dst = append(append(append(dst, `,"op":"`...), ops[one.Op]...), '"')
	if one.Op == engine.Put || one.Op == engine.Deleted {
		dst = strconv.AppendInt(append(dst, `,"id":`...), one.ID, 10)
	}
	if one.Op == engine.Put {
		dst = strconv.AppendInt(append(dst, `,"doc":{"id":`...), one.ID, 10)
		for i := range schema.Fields {
			f := &schema.Fields[i]
			dst = doc.AppendQuoted(append(dst, ','), []byte(f.Name))
			dst = doc.AppendJSON(append(dst, ':'), one.Doc.Field(f.Slot))
		}
		dst = append(dst, '}')
	}
	return append(dst, "}\n"...)
}
