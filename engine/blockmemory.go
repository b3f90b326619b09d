package engine

import (
	"unsafe"

	"fenec/engine/query"
)

// countEvery is how many bytes the record of a block grows before what the block takes is counted again.
const countEvery = 64 << 10

// blockMemory counts what an open block takes besides the documents there were: its record, how to undo it and the ids to
// check. It counts in the account of its statements, so that many small changes of one statement cannot take more memory
// than any other statement may.
type blockMemory struct {
	account *query.Account // nil if nothing is counted
	held    int64          // in account
	before  int            // capacity of the segment when the block began
	recount int            // length of the record past which the block is counted again
}

func (m *blockMemory) begin(account *query.Account, segment []byte) {
	*m = blockMemory{account: account, before: cap(segment), recount: countEvery}
}

// count counts the block again. It fails if that is more than its statements may hold.
func (m *blockMemory) count(x *tx) error {
	m.recount = len(x.record()) + countEvery
	if m.account == nil {
		return nil
	}
	now := int64(max(0, cap(x.db.memory.segments[x.segment])-m.before))
	now += int64(cap(x.undo.changes))*int64(unsafe.Sizeof(change{})) + int64(cap(x.touched))*int64(unsafe.Sizeof(touch{}))
	more := now - m.held
	m.held = now
	return m.account.Hold(more, "writing")
}

// end returns how many bytes stay counted, and forgets them.
func (m *blockMemory) end() int64 {
	held := m.held
	*m = blockMemory{}
	return held
}
