package node

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
	keySince // of a shape only: elsewhere a field may have that name
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

// readQuery reads the request's query string: the keys of allowed, and filters, whose values become parameters of the
// statement.
func (c *call) readQuery(allowed keys) error {
	if allowed&keyLookup != 0 {
		if err := c.readLevels(); err != nil {
			return err
		}
	}
	return c.eachKey(func(key, value []byte, assigned bool) error {
		if l, of := c.levelOf(key); l != nil {
			return c.readLevelKey(l, of, value, assigned)
		}
		return c.readKey(key, value, assigned, allowed)
	})
}

// eachKey calls fn with each key of the request's query string and its value, until fn returns an error. assigned
// distinguishes an empty value from none.
func (c *call) eachKey(fn func(key, value []byte, assigned bool) error) error {
	rest := c.request.Query
	for len(rest) > 0 {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, ampersand)
		if len(pair) == 0 {
			continue
		}
		key, value, assigned := bytes.Cut(pair, equals)
		var err error
		if key, c.values, err = unescape(c.values, key, true); err != nil {
			return err
		}
		if value, c.values, err = unescape(c.values, value, true); err != nil {
			return err
		}
		if err := fn(key, value, assigned); err != nil {
			return err
		}
	}
	return nil
}

var (
	ampersand = []byte("&")
	space     = []byte(" ")
	equals    = []byte("=")
	comma     = []byte(",")
	dot       = []byte(".")
)

func (c *call) readKey(key, value []byte, assigned bool, allowed keys) error {
	var which keys
	switch string(key) {
	case "select":
		which = keySelect
	case "order":
		which = keyOrder
	case "limit":
		which = keyLimit
	case "offset":
		which = keyOffset
	case "where":
		which = keyWhere
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
	if allowed == shapeKeys {
		if err := checkShapeKey(which, key); err != nil {
			return err
		}
	}
	if !assigned {
		return fail.New(fail.Invalid, "%s has no value: want %s=...", quoted(key), clipped(key))
	}
	if which == 0 {
		return c.filter(key, value)
	}
	switch {
	case allowed&which != 0:
	case allowed == filtersOfNear:
		return fail.New(fail.Invalid, "%s goes into the body of a near, whose query string takes filters and where", which)
	default:
		return fail.New(fail.Invalid, "%s does not go with this method", which)
	}
	return c.give(which, value)
}

// give reads a key that is not a field.
func (c *call) give(which keys, value []byte) error {
	if c.given&which != 0 {
		return fail.New(fail.Invalid, "%s is given twice", which)
	}
	c.given |= which
	return c.clause(which, value)
}

func (c *call) clause(which keys, value []byte) (err error) {
	switch which {
	case keySelect:
		return c.readSelect(value)
	case keyOrder:
		return c.readOrder(value)
	case keyWhere:
		return c.readWhere(value)
	case keyGroup:
		c.grouped = append(c.grouped, value...)
		return checkField("group", value)
	case keyHaving:
		return c.readHaving(value)
	case keyCount:
		c.counting = string(value) != "false"
	case keyLimit:
		c.limit, err = wholeNumber("limit", value)
	case keyOffset:
		c.offset, err = wholeNumber("offset", value)
	case keySince:
		c.cursor, err = parseCursor("since", value)
	}
	return err
}

// readSelect reads `a,b.c,sum(d),count(distinct e)`, or `*`.
func (c *call) readSelect(list []byte) error {
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
		if len(c.selected) > 0 {
			c.selected = append(c.selected, ',')
		}
		c.selected = append(c.selected, item...)
	}
	return nil
}

// readOrder reads `a,b.c.desc,name.und.asc`: paths, each optionally followed by a collation and by asc or desc.
func (c *call) readOrder(list []byte) error {
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
		if len(c.ordered) > 0 {
			c.ordered = append(c.ordered, ',')
		}
		c.ordered = append(append(c.ordered, path...), collation...)
		c.ordered = append(append(c.ordered, ' '), direction...)
	}
	return nil
}

// readWhere copies a condition of FenecQL. It has been parsed as one whole condition without parameters, so nothing in it
// can end the parentheses around it; the line end after it ends a comment.
func (c *call) readWhere(text []byte) error {
	if err := engine.CheckCondition(string(text)); err != nil {
		return err
	}
	c.and()
	c.condition = append(append(append(c.condition, '('), text...), "\n)"...)
	return nil
}

// readHaving copies a condition of groups, checked like that of where.
func (c *call) readHaving(text []byte) error {
	if err := engine.CheckHaving(string(text)); err != nil {
		return err
	}
	c.having = append(append(append(c.having, '('), text...), "\n)"...)
	return nil
}

// and begins another condition that must be true too.
func (c *call) and() {
	if len(c.condition) > 0 {
		c.condition = append(c.condition, " and "...)
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
	return fail.New(fail.Invalid, "%s wants a whole number of 0 or more, got %s", what, quoted(text))
}

// checkPath returns an error unless a part of a query string is the name of a field or a path, which a statement may contain.
func checkPath(where string, path []byte) error {
	if !isPath(path) {
		return fail.New(fail.Invalid, "%s wants the name of a field or a path, got %s", where, quoted(path))
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
		return fail.New(fail.Invalid, "%s wants fields, paths and aggregates (count, sum, avg, min or max of a field, count(distinct field)), got %s", where, quoted(item))
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
		return fail.New(fail.Invalid, "%s wants the name of a field, got %s", where, quoted(name))
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

func quoted(text []byte) string { return string(doc.AppendQuoted(nil, []byte(clipped(text)))) }
