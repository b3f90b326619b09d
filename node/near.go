package node

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// nearKeys are the keys of a near's body, each with the expected value and the function that reads it.
var nearKeys = map[string]struct {
	wants string
	take  func(c *call, n *nearBody, v doc.Value) (ok bool, err error)
}{
	"vector": {"a list of numbers or a text", func(_ *call, n *nearBody, v doc.Value) (bool, error) {
		n.vector = v
		return v.Kind == doc.List || v.Kind == doc.Text, nil
	}},
	"field": {"the name of a field", func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeField("field", &n.field, v) }},
	"match_field": {"the name of a field", func(_ *call, n *nearBody, v doc.Value) (bool, error) {
		return takeField("match_field", &n.matchField, v)
	}},
	"match": {"a text", func(_ *call, n *nearBody, v doc.Value) (bool, error) {
		n.match = v
		return v.Kind == doc.Text, nil
	}},
	"exact": {"true or false", func(_ *call, n *nearBody, v doc.Value) (bool, error) {
		n.exact = v.Kind == doc.Bool && v.Bool()
		return v.Kind == doc.Bool, nil
	}},
	"select":     {"fields with commas between them, or a list of fields", func(c *call, _ *nearBody, v doc.Value) (bool, error) { return c.takeSelect(v) }},
	"where":      {"a condition as text", func(c *call, _ *nearBody, v doc.Value) (bool, error) { return v.Kind == doc.Text, c.takeWhere(v) }},
	"limit":      {wantsWhole, func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.limit, v), nil }},
	"offset":     {wantsWhole, func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.offset, v), nil }},
	"ef":         {wantsWhole, func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.ef, v), nil }},
	"fuse_k":     {wantsWhole, func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.fuseK, v), nil }},
	"candidates": {wantsWhole, func(_ *call, n *nearBody, v doc.Value) (bool, error) { return takeWhole(&n.candidates, v), nil }},
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

// near is POST /C/near: a statement with near, or if the body has a match, with near, match and fuse.
func (c *call) near() http1.Answer {
	a, err := c.nearest()
	if err != nil {
		return c.node.answerRESTError(c.request, err)
	}
	return a
}

func (c *call) nearest() (http1.Answer, error) {
	n, err := c.readNear()
	if err != nil {
		return http1.Answer{}, err
	}
	c.text = append(append(c.text, "get "...), c.name...)
	c.appendClauses(&c.clauses)
	c.text = append(append(append(c.text, " near "...), n.field...), ' ')
	c.text = c.appendParam(c.text, n.vector)
	c.appendOption(" ef ", n.ef)
	if n.exact {
		c.text = append(c.text, " exact"...)
	}
	if n.match.Kind != doc.Null {
		c.text = append(append(append(c.text, " match "...), n.matchField...), ' ')
		c.text = append(c.appendParam(c.text, n.match), " fuse"...)
		c.appendOption(" k ", n.fuseK)
		c.appendOption(" candidates ", n.candidates)
	}
	c.appendOption(" limit ", n.limit)
	c.appendOption(" offset ", n.offset)
	return c.execText(false, (*call).found)
}

// appendOption appends a word with its number if one is given.
func (c *call) appendOption(word string, v doc.Value) {
	if v.Kind != doc.Null {
		c.text = c.appendParam(append(c.text, word...), v)
	}
}

// readNear reads the filters of the query string, and the body, whose where must be true too. A key that is null counts as
// absent.
func (c *call) readNear() (*nearBody, error) {
	if err := c.readQuery(filtersOfNear); err != nil {
		return nil, err
	}
	body, err := c.readJSON()
	if err != nil {
		return nil, err
	}
	if body.Kind() != doc.Object {
		return nil, fail.New(fail.Invalid, "near wants an object with %s, got %s", nearKeyNames, body.Kind())
	}
	n := &nearBody{}
	body.Entries(func(key []byte, value doc.Raw) bool {
		known, found := nearKeys[string(key)]
		switch {
		case !found:
			err = fail.New(fail.Invalid, "%s is no key of a near, which has %s", quoted(key), nearKeyNames)
		case value.IsNull():
		default:
			var ok bool
			if ok, err = known.take(c, n, value.Value()); err == nil && !ok {
				err = fail.New(fail.Invalid, "%s wants %s, got %s", key, known.wants, doc.Describe(value.Value()))
			}
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return n, c.completeNear(n)
}

// completeNear fills in fields that are left out, and refuses keys without the key that they need.
func (c *call) completeNear(n *nearBody) error {
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
		return fail.New(fail.Invalid, "vector is missing: near wants the vector to be near to")
	}
	var err error
	if n.field == "" {
		n.field, err = c.onlyField("field", "vector or sparse field", func(f *doc.Field) bool {
			return f.Type.Kind == doc.TypeVector || f.Type.Kind == doc.TypeSparse
		})
	}
	if err == nil && hybrid && n.matchField == "" {
		n.matchField, err = c.onlyField("match_field", "field with @text", func(f *doc.Field) bool { return f.Index.Kind == doc.IndexText })
	}
	return err
}

// onlyField returns the name of the collection's only suitable field, for a key that is left out.
func (c *call) onlyField(key, what string, meant func(f *doc.Field) bool) (string, error) {
	all, err := c.tenant.db.Collections(c.scope)
	if err != nil {
		return "", err
	}
	for _, info := range all {
		if info.Schema.Name != string(c.name) {
			continue
		}
		name := ""
		for i := range info.Schema.Fields {
			switch f := &info.Schema.Fields[i]; {
			case !meant(f):
			case name != "":
				return "", fail.New(fail.Invalid, "%s is missing: %s has more than one %s", key, c.name, what)
			default:
				name = f.Name
			}
		}
		if name == "" {
			return "", fail.New(fail.Invalid, "%s has no %s", c.name, what)
		}
		return name, nil
	}
	return "", fail.New(fail.NotFound, "there is no collection %s", c.name)
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
func (c *call) takeSelect(v doc.Value) (bool, error) {
	switch v.Kind {
	case doc.Text:
		return true, c.readSelect(v.B)
	case doc.List:
		all, err := true, error(nil)
		doc.Raw(v.B).Elements(func(item doc.Raw) bool {
			var name []byte
			if name, all = item.Text(); all {
				err = c.readSelect(name)
			}
			return all && err == nil
		})
		return all, err
	}
	return false, nil
}

func (c *call) takeWhere(v doc.Value) error {
	if v.Kind != doc.Text {
		return nil
	}
	return c.readWhere(v.B)
}
