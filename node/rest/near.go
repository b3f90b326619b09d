package rest

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
)

// nearKeys are the keys of a near's body, each with the expected value and the function that reads it.
var nearKeys = map[string]struct {
	wants string
	take  func(s *Statement, n *nearBody, v doc.Value) (ok bool, err error)
}{
	"vector": {"a list of numbers or a text", func(_ *Statement, n *nearBody, v doc.Value) (bool, error) {
		n.vector = v
		return v.Kind == doc.List || v.Kind == doc.Text, nil
	}},
	"field": {"the name of a field", func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeField("field", &n.field, v) }},
	"match_field": {"the name of a field", func(_ *Statement, n *nearBody, v doc.Value) (bool, error) {
		return takeField("match_field", &n.matchField, v)
	}},
	"match": {"a text", func(_ *Statement, n *nearBody, v doc.Value) (bool, error) {
		n.match = v
		return v.Kind == doc.Text, nil
	}},
	"exact": {"true or false", func(_ *Statement, n *nearBody, v doc.Value) (bool, error) {
		n.exact = v.Kind == doc.Bool && v.Bool()
		return v.Kind == doc.Bool, nil
	}},
	"select":     {"fields with commas between them, or a list of fields", func(s *Statement, _ *nearBody, v doc.Value) (bool, error) { return s.takeSelect(v) }},
	"where":      {"a condition as text", func(s *Statement, _ *nearBody, v doc.Value) (bool, error) { return v.Kind == doc.Text, s.takeWhere(v) }},
	"limit":      {wantsWhole, func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.limit, v), nil }},
	"offset":     {wantsWhole, func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.offset, v), nil }},
	"ef":         {wantsWhole, func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.ef, v), nil }},
	"fuse_k":     {wantsWhole, func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.fuseK, v), nil }},
	"candidates": {wantsWhole, func(_ *Statement, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.candidates, v), nil }},
}

const (
	nearKeyNames = "vector, field, limit, offset, ef, exact, select, where, match, match_field, fuse_k and candidates"
	wantsWhole   = "a whole number of 0 or more"
)

// nearBody is the body of a near. Missing keys are null or empty.
type nearBody struct {
	vector, match                        doc.Value
	field, matchField                    string
	exact                                bool
	limit, offset, ef, fuseK, candidates doc.Value
}

// NearFilters reads the query string of POST /C/near, which has filters and where.
func (s *Statement) NearFilters(query []byte) error { return s.readQuery(query, filtersOfNear) }

// Near writes, after NearFilters, the statement of POST /C/near: with near, or if the body has a match, with near, match and
// fuse. schema returns the schema of the collection; it is called for fields that the body leaves out.
func (s *Statement) Near(body doc.Raw, schema func() (*doc.Schema, error)) error {
	n, err := s.readNear(body)
	if err == nil {
		err = n.complete(schema)
	}
	if err != nil {
		return err
	}
	s.Text = append(append(s.Text, "get "...), s.Name...)
	s.appendClauses(&s.clauses)
	s.Text = append(append(append(s.Text, " near "...), n.field...), ' ')
	s.Text = s.AppendParam(s.Text, n.vector)
	s.appendOption(" ef ", n.ef)
	if n.exact {
		s.Text = append(s.Text, " exact"...)
	}
	if n.match.Kind != doc.Null {
		s.Text = append(append(append(s.Text, " match "...), n.matchField...), ' ')
		s.Text = append(s.AppendParam(s.Text, n.match), " fuse"...)
		s.appendOption(" k ", n.fuseK)
		s.appendOption(" candidates ", n.candidates)
	}
	s.appendOption(" limit ", n.limit)
	s.appendOption(" offset ", n.offset)
	return nil
}

// appendOption appends a word with its number if one is given.
func (s *Statement) appendOption(word string, v doc.Value) {
	if v.Kind != doc.Null {
		s.Text = s.AppendParam(append(s.Text, word...), v)
	}
}

// readNear reads the body, whose where must be true besides the filters. A key that is null counts as absent.
func (s *Statement) readNear(body doc.Raw) (*nearBody, error) {
	if body.Kind() != doc.Object {
		return nil, fail.New(fail.Invalid, "near: expected an object with %s, got %s", nearKeyNames, body.Kind())
	}
	n := &nearBody{}
	var err error
	body.Entries(func(key []byte, value doc.Raw) bool {
		known, found := nearKeys[string(key)]
		switch {
		case !found:
			err = fail.New(fail.Invalid, "%s is no key of a near, which has %s", Quoted(key), nearKeyNames)
		case value.IsNull():
		default:
			var ok bool
			if ok, err = known.take(s, n, value.Value()); err == nil && !ok {
				err = fail.New(fail.Invalid, "%s: expected %s, got %s", key, known.wants, doc.Describe(value.Value()))
			}
		}
		return err == nil
	})
	return n, err
}

// complete fills in fields that are left out, and refuses keys without the key that they need.
func (n *nearBody) complete(schema func() (*doc.Schema, error)) error {
	hybrid := n.match.Kind != doc.Null
	for _, key := range [...]struct {
		name  string
		given bool
	}{{"match_field", n.matchField != ""}, {"fuse_k", n.fuseK.Kind != doc.Null}, {"candidates", n.candidates.Kind != doc.Null}} {
		if key.given && !hybrid {
			return fail.New(fail.Invalid, "%s goes with match, which is missing", key.name)
		}
	}
	if n.vector.Kind == doc.Null {
		return fail.New(fail.Invalid, "vector is missing: it is what the rows are near to")
	}
	if n.field != "" && (n.matchField != "" || !hybrid) {
		return nil
	}
	of, err := schema()
	if err == nil && n.field == "" {
		n.field, err = onlyField(of, "field", "vector or sparse field", func(f *doc.Field) bool {
			return f.Type.Kind == doc.TypeVector || f.Type.Kind == doc.TypeSparse
		})
	}
	if err == nil && hybrid && n.matchField == "" {
		n.matchField, err = onlyField(of, "match_field", "field with @text", func(f *doc.Field) bool { return f.Index.Kind == doc.IndexText })
	}
	return err
}

// onlyField returns the name of the only suitable field, for a key that is left out.
func onlyField(of *doc.Schema, key, what string, meant func(f *doc.Field) bool) (name string, err error) {
	for i := range of.Fields {
		switch f := &of.Fields[i]; {
		case !meant(f):
		case name != "":
			return "", fail.New(fail.Invalid, "%s is missing: %s has more than one %s", key, of.Name, what)
		default:
			name = f.Name
		}
	}
	if name == "" {
		return "", fail.New(fail.Invalid, "%s has no %s", of.Name, what)
	}
	return name, nil
}

// takeField reads the name of a field.
func takeField(key string, into *string, v doc.Value) (bool, error) {
	if v.Kind != doc.Text {
		return false, nil
	}
	*into = string(v.B)
	return true, checkField(key, v.B)
}

// takeWhole reads a whole number of 0 or more.
func takeWhole(into *doc.Value, v doc.Value) bool {
	n, ok := v.Int64()
	*into = doc.IntValue(n)
	return ok && n >= 0
}

// takeSelect reads a select in the form of a query string, or as a list.
func (s *Statement) takeSelect(v doc.Value) (bool, error) {
	switch v.Kind {
	case doc.Text:
		return true, s.readSelect(v.B)
	case doc.List:
		all, err := true, error(nil)
		doc.Raw(v.B).Elements(func(item doc.Raw) bool {
			var name []byte
			if name, all = item.Text(); all {
				err = s.readSelect(name)
			}
			return all && err == nil
		})
		return all, err
	}
	return false, nil
}

func (s *Statement) takeWhere(v doc.Value) error {
	if v.Kind != doc.Text {
		return nil
	}
	return s.readWhere(v.B)
}
