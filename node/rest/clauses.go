package rest

import (
	"bytes"
	"math"
	"strings"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
)

// clauses are a REST query string as parts of a statement.
type clauses struct {
	condition []byte // after where, empty without a filter
	selected  []byte // after select, empty for all fields
	grouped   []byte // after group, empty for none
	having    []byte // after having, empty for none
	ordered   []byte // after order
	limit     doc.Value
	offset    doc.Value
	counting  bool // the number of documents is requested
	given     keys
}

func (c *clauses) emptied() clauses {
	return clauses{condition: kept(c.condition), selected: kept(c.selected), ordered: kept(c.ordered), grouped: kept(c.grouped), having: kept(c.having)}
}

// keys is a set of the keys of a query string that are not fields.
type keys uint16

const (
	keySelect keys = 1 << iota
	keyOrder
	keyLimit
	keyOffset
	keyCount
	keyWhere
	keyGroup
	keyHaving
	keyLookup
	keyOn
	keyParent
	keyRequired
	keySince // of a live query only: elsewhere a field may have that name
	keyBody  // in no query string: distinguishes the keys allowed with a near's body from those of a write

	filtersOfNear = keyWhere | keyBody
)

func (k keys) String() string {
	for i, name := range [...]string{"select", "order", "limit", "offset", "count", "where", "group", "having", "lookup", "on", "parent", "required", "since"} {
		if k == 1<<i {
			return name
		}
	}
	return ""
}

// readQuery reads a query string: the keys of allowed, and filters, whose values become parameters of the
// statement.
func (s *Statement) readQuery(query []byte, allowed keys) error {
	if allowed&keyLookup != 0 {
		if err := s.readLevels(query); err != nil {
			return err
		}
	}
	return s.EachKey(query, func(key, value []byte, assigned bool) error {
		if l, of := s.levelOf(key); l != nil {
			return s.readLevelKey(l, of, value, assigned)
		}
		return s.readKey(key, value, assigned, allowed)
	})
}

var (
	ampersand = []byte("&")
	space     = []byte(" ")
	equals    = []byte("=")
	comma     = []byte(",")
	dot       = []byte(".")
)

// keyOfRows returns the key that says which rows a statement or a lookup returns, 0 for any other name.
func keyOfRows(name []byte) keys {
	switch string(name) {
	case "select":
		return keySelect
	case "order":
		return keyOrder
	case "limit":
		return keyLimit
	case "offset":
		return keyOffset
	case "where":
		return keyWhere
	}
	return 0
}

func (s *Statement) readKey(key, value []byte, assigned bool, allowed keys) error {
	which := keyOfRows(key)
	switch string(key) {
	case "count":
		switch string(value) {
		case "", "true", "false":
			which, assigned = keyCount, true
		} // else a field of that name
	case "lookup":
		which = keyLookup
	case "group":
		which = keyGroup
	case "having":
		which = keyHaving
	case "since":
		which = keySince & allowed
	}
	if allowed == liveKeys {
		if err := checkLiveKey(which, key); err != nil {
			return err
		}
	}
	if !assigned {
		return fail.New(fail.Invalid, "%s has no value: expected %s=...", Quoted(key), clipped(key))
	}
	if which == 0 {
		return s.filter(key, value)
	}
	switch {
	case allowed&which != 0:
	case allowed == filtersOfNear:
		return fail.New(fail.Invalid, "%s goes into the body of a near, whose query string takes filters and where", which)
	default:
		return fail.New(fail.Invalid, "%s does not go with this method", which)
	}
	return s.give(which, value)
}

// give reads a key that is not a field.
func (s *Statement) give(which keys, value []byte) error {
	if s.given&which != 0 {
		return fail.New(fail.Invalid, "%s is given twice", which)
	}
	s.given |= which
	return s.clause(which, value)
}

func (s *Statement) clause(which keys, value []byte) (err error) {
	switch which {
	case keySelect:
		return s.readSelect(value)
	case keyOrder:
		return s.readOrder(value)
	case keyWhere:
		return s.readWhere(value)
	case keyGroup:
		s.grouped = append(s.grouped, value...)
		return checkField("group", value)
	case keyHaving:
		return s.readHaving(value)
	case keyCount:
		s.counting = string(value) != "false"
	case keyLimit:
		s.limit, err = wholeNumber("limit", value)
	case keyOffset:
		s.offset, err = wholeNumber("offset", value)
	case keySince:
		s.since = value
	}
	return err
}

// readSelect reads `a,b.c,sum(d),count(distinct e)`, or `*`.
func (s *Statement) readSelect(list []byte) error {
	if string(list) == "*" {
		return nil
	}
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, comma)
		item = bytes.TrimSpace(item)
		if err := checkColumn("select", item); err != nil {
			return err
		}
		if len(s.selected) > 0 {
			s.selected = append(s.selected, ',')
		}
		s.selected = append(s.selected, item...)
	}
	return nil
}

// readOrder reads `a,b.s.desc,name.und.asc`: paths, each optionally followed by a collation and by asc or desc.
func (s *Statement) readOrder(list []byte) error {
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, comma)
		path := bytes.TrimSpace(item)
		collation, direction := "", ""
		if i := bytes.LastIndexByte(path, '.'); i >= 0 {
			switch last := string(path[i+1:]); last {
			case "asc", "desc":
				path, direction = path[:i], last
			}
		}
		if i := bytes.LastIndexByte(path, '.'); i >= 0 {
			switch last := string(path[i+1:]); last {
			case "und", "tr":
				path, collation = path[:i], " collate "+last
			}
		}
		if err := checkColumn("order", path); err != nil {
			return err
		}
		if len(s.ordered) > 0 {
			s.ordered = append(s.ordered, ',')
		}
		s.ordered = append(append(s.ordered, path...), collation...)
		s.ordered = append(append(s.ordered, ' '), direction...)
	}
	return nil
}

// readWhere copies a condition of FenecQL. It has been parsed as one whole condition without parameters, so nothing in it
// can end the parentheses around it; the line end after it ends a comment.
func (s *Statement) readWhere(text []byte) error {
	if err := engine.CheckCondition(string(text)); err != nil {
		return err
	}
	s.and()
	s.condition = append(append(append(s.condition, '('), text...), "\n)"...)
	return nil
}

// readHaving copies a condition of groups, checked like that of where.
func (s *Statement) readHaving(text []byte) error {
	if err := engine.CheckHaving(string(text)); err != nil {
		return err
	}
	s.having = append(append(append(s.having, '('), text...), "\n)"...)
	return nil
}

// and begins another condition that must be true too.
func (s *Statement) and() {
	if len(s.condition) > 0 {
		s.condition = append(s.condition, " and "...)
	}
}

// wholeNumber parses a limit or an offset.
func wholeNumber(what string, text []byte) (doc.Value, error) {
	n := int64(0)
	for _, d := range text {
		if d < '0' || d > '9' || n > (math.MaxInt64-int64(d-'0'))/10 {
			return doc.Value{}, errWholeNumber(what, text)
		}
		n = n*10 + int64(d-'0')
	}
	if len(text) == 0 {
		return doc.Value{}, errWholeNumber(what, text)
	}
	return doc.IntValue(n), nil
}

func errWholeNumber(what string, text []byte) error {
	return fail.New(fail.Invalid, "%s: expected a whole number of 0 or more, got %s", what, Quoted(text))
}

// checkPath returns an error unless a part of a query string is the name of a field or a path, which a statement may contain.
func checkPath(where string, path []byte) error {
	if !isPath(path) {
		return fail.New(fail.Invalid, "%s: expected the name of a field or a path, got %s", where, Quoted(path))
	}
	if isConstant(path) {
		return fail.New(fail.NotFound, "there is no field %s: the word is a value", clipped(path))
	}
	return nil
}

// checkColumn is checkPath that also accepts an aggregate of a field.
func checkColumn(where string, item []byte) error {
	open := bytes.IndexByte(item, '(')
	if open < 0 {
		return checkPath(where, item)
	}
	name, arg, closed := item[:open], item[open+1:], item[len(item)-1] == ')'
	switch strings.ToLower(string(name)) {
	case "count", "sum", "avg", "min", "max":
	default:
		closed = false
	}
	if !closed {
		return fail.New(fail.Invalid, "%s: expected fields, paths and aggregates (count, sum, avg, min or max of a field, count(distinct field)), got %s", where, Quoted(item))
	}
	if arg = arg[:len(arg)-1]; string(arg) == "*" {
		return nil // count(*); parsing the statement reports any other error
	}
	if word, field, found := bytes.Cut(arg, space); found && strings.EqualFold(string(word), "distinct") {
		arg = bytes.TrimLeft(field, " ") // of count; parsing the statement reports any other error
	}
	return checkField(clipped(name), arg)
}

// checkField returns an error unless a part of a query string is the name of a field, which a statement may contain.
func checkField(where string, name []byte) error {
	if !isName(name) {
		return fail.New(fail.Invalid, "%s: expected the name of a field, got %s", where, Quoted(name))
	}
	return checkPath(where, name)
}

// isConstant reports whether FenecQL reads a name as a value.
func isConstant(name []byte) bool {
	switch len(name) {
	case len("true"), len("false"):
		word := strings.ToLower(string(name))
		return word == "true" || word == "null" || word == "false"
	}
	return false
}

// shownBytes is how many bytes of a client's text an error repeats.
const shownBytes = 64

func clipped(text []byte) string {
	if len(text) <= shownBytes {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:shownBytes]), "") + "..."
}

// Quoted returns a client's text in quotes for an error, clipped if it is long.
func Quoted(text []byte) string { return string(doc.AppendQuoted(nil, []byte(clipped(text)))) }
