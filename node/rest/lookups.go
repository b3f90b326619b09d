package rest

import (
	"bytes"

	"fenec/engine"
	"fenec/engine/fail"
)

// level is one lookup of a query string: `lookup=name`, and the keys that begin with `name.`
type level struct {
	name     []byte
	on       []byte // the level's field
	parent   []byte // the field above that it equals, empty for the id
	required bool
	clauses
}

var lookupKey = []byte("lookup")

// readLevels reads `lookup=a,b` before the other keys, because it gives them their meaning wherever it is in the query.
func (s *Statement) readLevels(query []byte) error {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, ampersand)
		key, list, _ := bytes.Cut(pair, equals)
		var err error
		if key, err = s.Unescape(key, true); err != nil {
			return err
		}
		if !bytes.Equal(key, lookupKey) {
			continue
		}
		if list, err = s.Unescape(list, true); err != nil {
			return err
		}
		for more := true; more; {
			var name []byte
			name, list, more = bytes.Cut(list, comma)
			if !isName(name) {
				return fail.New(fail.Invalid, "lookup: expected the names of collections, got %s", Quoted(name))
			}
			if s.level(name) != nil {
				return fail.New(fail.Invalid, "%s is looked up twice in one chain", clipped(name))
			}
			if len(s.levels) == engine.MaxLookups {
				return fail.New(fail.Invalid, "a chain of lookups has at most %d levels", engine.MaxLookups)
			}
			s.levels = append(s.levels, level{name: name})
		}
	}
	return nil
}

// levelOf returns the level whose name a key begins with, and the rest of the key.
func (s *Statement) levelOf(key []byte) (*level, []byte) {
	if len(s.levels) == 0 {
		return nil, nil
	}
	name, of, found := bytes.Cut(key, dot)
	if !found {
		return nil, nil
	}
	return s.level(name), of
}

// level returns the level of that name, nil if there is none.
func (s *Statement) level(name []byte) *level {
	for i := range s.levels {
		if bytes.Equal(s.levels[i].name, name) {
			return &s.levels[i]
		}
	}
	return nil
}

// readLevelKey reads a key of a level. The level's clauses replace the request's while it does.
func (s *Statement) readLevelKey(l *level, key, value []byte, assigned bool) error {
	s.clauses, l.clauses = l.clauses, s.clauses
	defer func() { s.clauses, l.clauses = l.clauses, s.clauses }()
	which := keyOfRows(key)
	switch string(key) {
	case "on":
		which = keyOn
		l.on = value
	case "parent":
		which = keyParent
		l.parent = value
	case "required":
		which, assigned = keyRequired, true
	}
	if !assigned {
		return fail.New(fail.Invalid, "\"%s.%s\" has no value: expected %s.%s=...", clipped(l.name), clipped(key), clipped(l.name), clipped(key))
	}
	switch which {
	case 0:
		return s.filter(key, value)
	case keyOn, keyParent:
		if err := checkField(which.String(), value); err != nil {
			return err
		}
	case keyRequired:
		switch string(value) {
		case "", "true":
			l.required = true
		case "false":
		default:
			return fail.New(fail.Invalid, "%s.required: expected true or false, got %s", clipped(l.name), Quoted(value))
		}
	}
	return s.give(which, value)
}

// appendLevels appends the levels as FenecQL.
func (s *Statement) appendLevels() error {
	for i := range s.levels {
		l := &s.levels[i]
		if len(l.on) == 0 {
			return fail.New(fail.Invalid, "%s.on is missing: it names the field of %s that says whose it is", clipped(l.name), clipped(l.name))
		}
		s.Text = append(append(append(append(s.Text, " lookup "...), l.name...), " on "...), l.on...)
		if len(l.parent) > 0 {
			s.Text = append(append(s.Text, " = "...), l.parent...)
		}
		if l.required {
			s.Text = append(s.Text, " required"...)
		}
		s.appendClauses(&l.clauses)
	}
	return nil
}
