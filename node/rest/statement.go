// Package rest translates a REST request on a collection into one FenecQL statement: its filters, pages and lookups come
// from the query string, its documents and vectors from a body that is already parsed. Values become parameters, so requests
// that differ only in their values have the same text, which the engine has parsed and planned already. Of a client's text
// only checked names, and conditions that parse by themselves, are written into a statement.
//
// It calls the engine only to check text. It reads no connection and runs nothing.
package rest

import (
	"bytes"
	"strconv"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
)

// Statement is a statement being written, with the buffers it is written into. Parameters refer to the query string, the
// body and Values.
type Statement struct {
	Name   []byte // the collection, a checked name
	Text   []byte
	Params []doc.Value
	Values []byte // bytes of parameters that are not slices of the request

	levels []level // of lookup
	since  []byte  // of a live query, if given
	clauses
}

const (
	keptBuffer = 64 << 10 // bytes that Reset keeps of a buffer
	keptParams = 256      // parameters
)

// Reset empties the statement and keeps its buffers if they are not large. Nothing that it referred to may be used any more.
func (s *Statement) Reset() {
	clear(s.Params)
	*s = Statement{Text: kept(s.Text), Values: kept(s.Values), Params: s.Params[:0], clauses: s.clauses.emptied()}
	if cap(s.Params) > keptParams {
		s.Params = nil
	}
}

func kept(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	return b[:0]
}

// Param appends a value and returns its number, from 1.
func (s *Statement) Param(v doc.Value) int {
	s.Params = append(s.Params, v)
	return len(s.Params)
}

// AppendParam appends a value to the parameters and its `$n` to the text.
func (s *Statement) AppendParam(dst []byte, v doc.Value) []byte {
	return strconv.AppendInt(append(dst, '$'), int64(s.Param(v)), 10)
}

// NameCollection reads the collection's name from a segment of the path.
func (s *Statement) NameCollection(segment []byte) (err error) {
	if s.Name, err = s.Unescape(segment, false); err != nil {
		return err
	}
	if !isName(s.Name) {
		return fail.New(fail.NotFound, "there is no collection %s", Quoted(s.Name))
	}
	return nil
}

// Rows writes the statement of GET /C.
func (s *Statement) Rows(query []byte) error {
	if err := s.readQuery(query, keySelect|keyOrder|keyLimit|keyOffset|keyCount|keyWhere|keyGroup|keyHaving|keyLookup); err != nil {
		return err
	}
	if s.counting && s.given&^(keyCount|keyWhere|keyLookup) != 0 {
		return fail.New(fail.Invalid, "count goes with filters and required lookups only, not with select, group, having, order, limit or offset")
	}
	s.Text = append(append(s.Text, "get "...), s.Name...)
	s.appendClauses(&s.clauses)
	if s.counting {
		s.Text = append(s.Text, " count"...)
	}
	return s.appendLevels()
}

// Counts reports whether the statement is of a request for the number of rows. Its answer is one row.
func (s *Statement) Counts() bool { return s.counting }

// appendClauses appends the clauses of a query string for the rows of one level.
func (s *Statement) appendClauses(of *clauses) {
	if len(of.selected) > 0 {
		s.Text = append(append(s.Text, " select "...), of.selected...)
	}
	if len(of.condition) > 0 {
		s.Text = append(append(s.Text, " where "...), of.condition...)
	}
	if len(of.grouped) > 0 {
		s.Text = append(append(s.Text, " group by "...), of.grouped...)
	}
	if len(of.having) > 0 {
		s.Text = append(append(s.Text, " having "...), of.having...)
	}
	if len(of.ordered) > 0 {
		s.Text = append(append(s.Text, " order by "...), of.ordered...)
	}
	if of.given&keyLimit != 0 {
		s.Text = s.AppendParam(append(s.Text, " limit "...), of.limit)
	}
	if of.given&keyOffset != 0 {
		s.Text = s.AppendParam(append(s.Text, " offset "...), of.offset)
	}
}

func (s *Statement) appendWhere() {
	if len(s.condition) > 0 {
		s.Text = append(append(s.Text, " where "...), s.condition...)
	}
}

// InsertKeys reads the query string of POST /C, which is empty or `if=absent`.
func (s *Statement) InsertKeys(query []byte) (absent bool, err error) {
	err = s.EachKey(query, func(key, value []byte, _ bool) error {
		switch {
		case string(key) != "if":
			return fail.New(fail.Invalid, "an insert takes no key but if=absent in its query string, got %s", Quoted(key))
		case absent:
			return fail.New(fail.Invalid, "if is given twice")
		case string(value) != "absent":
			return fail.New(fail.Invalid, "if: expected absent, got %s", Quoted(value))
		}
		absent = true
		return nil
	})
	return absent, err
}

// Insert writes the statement of POST /C: one document, or a list of them.
func (s *Statement) Insert(body doc.Raw, absent bool) error {
	if k := body.Kind(); k != doc.Object && k != doc.List {
		return fail.New(fail.Invalid, "insert: expected an object or a list of objects, got %s", k)
	}
	s.Text = append(append(append(s.Text, "insert into "...), s.Name...), " $1"...)
	if absent {
		s.Text = append(s.Text, " if absent"...)
	}
	s.Param(body.Value())
	return nil
}

// Update writes the statement of PATCH /C, or of PATCH /C/all.
func (s *Statement) Update(body doc.Raw, query []byte, all bool) (err error) {
	if body.Kind() != doc.Object || body.Count() == 0 {
		return fail.New(fail.Invalid, "update: expected an object with at least one field")
	}
	s.Text = append(append(append(s.Text, "set "...), s.Name...), " {"...)
	separator := ""
	body.Entries(func(key []byte, value doc.Raw) bool {
		if !isPath(key) {
			err = fail.New(fail.Invalid, "update: expected the names of fields and paths as keys, got %s", Quoted(key))
			return false
		}
		s.Text = append(append(append(s.Text, separator...), key...), ": "...)
		s.Text = s.AppendParam(s.Text, value.Value())
		separator = ", "
		return true
	})
	if err != nil {
		return err
	}
	s.Text = append(s.Text, '}')
	return s.readFilters(query, all)
}

// Delete writes the statement of DELETE /C, or of DELETE /C/all.
func (s *Statement) Delete(query []byte, all bool) error {
	s.Text = append(append(s.Text, "del "...), s.Name...)
	return s.readFilters(query, all)
}

// readFilters reads which documents to change: all of them only if the path is /C/all.
func (s *Statement) readFilters(query []byte, all bool) error {
	if err := s.readQuery(query, keyWhere); err != nil {
		return err
	}
	filtered := len(s.condition) > 0
	switch {
	case all && filtered:
		return fail.New(fail.Invalid, "%s/all is the whole collection and takes no filter: leave /all away", s.Name)
	case !all && !filtered:
		return fail.New(fail.Invalid, "a filter is missing: %s/all is the whole collection", s.Name)
	}
	s.appendWhere()
	return nil
}

// EachKey calls fn with each key of a query string and its value, until fn returns an error. assigned distinguishes an empty
// value from none.
func (s *Statement) EachKey(query []byte, fn func(key, value []byte, assigned bool) error) error {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, ampersand)
		if len(pair) == 0 {
			continue
		}
		key, value, assigned := bytes.Cut(pair, equals)
		var err error
		if key, err = s.Unescape(key, true); err != nil {
			return err
		}
		if value, err = s.Unescape(value, true); err != nil {
			return err
		}
		if err := fn(key, value, assigned); err != nil {
			return err
		}
	}
	return nil
}

// Unescape decodes the percent escapes of a part of a target; in a query a plus is a space. It returns raw itself if there
// are none.
func (s *Statement) Unescape(raw []byte, query bool) (text []byte, err error) {
	text, s.Values, err = Unescape(s.Values, raw, query)
	return text, err
}

// isName reports whether text is a name of FenecQL. Nothing else from a URL is ever written into a statement.
func isName(text []byte) bool { return engine.IsName(string(text)) }

// isPath reports whether text is a path of FenecQL, which a name is too.
func isPath(text []byte) bool { return engine.IsPath(string(text)) }
