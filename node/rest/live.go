package rest

import (
	"bytes"
	"slices"
	"strconv"

	"fenec/engine/fail"
)

// liveKeys are the keys of a live query that are not fields.
const liveKeys = keySelect | keyWhere | keySince

// LiveRows writes the statement that reads all rows of a live query, GET /C/changes. since is the cursor that the query
// string continues from, nil without one.
func (s *Statement) LiveRows(query []byte) (since []byte, err error) {
	if err := s.readQuery(query, liveKeys); err != nil {
		return nil, err
	}
	if bytes.IndexByte(s.selected, '(') >= 0 {
		return nil, fail.New(fail.Invalid, "aggregates do not go with a live query: it is a set of rows, which takes filters, select and since")
	}
	s.selectID()
	s.appendLiveFrom()
	s.appendWhere()
	return s.since, nil
}

// LiveRow writes, after LiveRows, the statement that reads the row of the id in the last parameter, which follows those of
// LiveRows.
func (s *Statement) LiveRow() {
	s.Text = s.Text[:0]
	s.appendLiveFrom()
	s.Text = append(s.Text, " where "...)
	if len(s.condition) > 0 {
		s.Text = append(append(append(s.Text, '('), s.condition...), ") and "...)
	}
	s.Text = strconv.AppendInt(append(s.Text, "id = $"...), int64(len(s.Params)+1), 10)
}

func (s *Statement) appendLiveFrom() {
	s.Text = append(append(s.Text, "get "...), s.Name...)
	if len(s.selected) > 0 {
		s.Text = append(append(s.Text, " select "...), s.selected...)
	}
}

// selectID adds the id to the selected fields.
func (s *Statement) selectID() {
	if len(s.selected) == 0 {
		return
	}
	for list, more := s.selected, true; more; {
		var item []byte
		if item, list, more = bytes.Cut(list, comma); string(item) == "id" {
			return
		}
	}
	s.selected = slices.Insert(s.selected, 0, []byte("id,")...)
}

// checkLiveKey refuses a key that asks for a window, an answer of another kind, or other collections.
func checkLiveKey(which keys, key []byte) error {
	name := which.String()
	switch {
	case which&^liveKeys != 0:
	case string(key) == "near", string(key) == "match":
		name = string(key)
	default:
		return nil
	}
	return fail.New(fail.Invalid, "%s does not go with a live query: it is a set of rows, which takes filters, select and since", name)
}
