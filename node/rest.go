package node

import (
	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// nameCollection reads the collection's name from the path.
func (c *call) nameCollection(segment []byte) (err error) {
	if c.name, c.values, err = unescape(c.values, segment, false); err != nil {
		return err
	}
	if !isName(c.name) {
		return fail.New(fail.NotFound, "there is no collection %s", quoted(c.name))
	}
	return nil
}

// collection answers /C and /C/all. Each request becomes one statement; requests that differ only in their values have the
// same text, which the engine has parsed and planned already.
func (c *call) collection() http1.Answer {
	var a http1.Answer
	var err error
	switch c.request.Method {
	case "POST":
		a, err = c.insert()
	case "PATCH":
		a, err = c.update()
	case "DELETE":
		a, err = c.delete()
	default:
		a, err = c.rows()
	}
	if err != nil {
		return c.node.answerRESTError(c.request, err)
	}
	return a
}

// rows is GET /C.
func (c *call) rows() (http1.Answer, error) {
	if err := c.readQuery(keySelect | keyOrder | keyLimit | keyOffset | keyCount | keyWhere | keyGroup | keyHaving | keyLookup); err != nil {
		return http1.Answer{}, err
	}
	if c.counting && c.given&^(keyCount|keyWhere|keyLookup) != 0 {
		return http1.Answer{}, fail.New(fail.Invalid, "count goes with filters and required lookups only, not with select, group, having, order, limit or offset")
	}
	c.text = append(append(c.text, "get "...), c.name...)
	c.appendClauses(&c.clauses)
	if c.counting {
		c.text = append(c.text, " count"...)
	}
	if err := c.appendLevels(); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(false, (*call).found)
}

// found returns the answer of a REST read.
func (c *call) found(res *engine.Result) http1.Answer {
	body := res.Body
	if c.counting && len(body) > 2 {
		body = body[1 : len(body)-1] // the only row, without its list
	}
	return http1.Answer{Status: 200, Headers: c.head(res), Body: body}
}

// appendClauses appends the clauses of a query string for the rows of one level.
func (c *call) appendClauses(of *clauses) {
	if len(of.selected) > 0 {
		c.text = append(append(c.text, " select "...), of.selected...)
	}
	if len(of.condition) > 0 {
		c.text = append(append(c.text, " where "...), of.condition...)
	}
	if len(of.grouped) > 0 {
		c.text = append(append(c.text, " group by "...), of.grouped...)
	}
	if len(of.having) > 0 {
		c.text = append(append(c.text, " having "...), of.having...)
	}
	if len(of.ordered) > 0 {
		c.text = append(append(c.text, " order by "...), of.ordered...)
	}
	if of.given&keyLimit != 0 {
		c.text = c.appendParam(append(c.text, " limit "...), of.limit)
	}
	if of.given&keyOffset != 0 {
		c.text = c.appendParam(append(c.text, " offset "...), of.offset)
	}
}

func (c *call) appendWhere() {
	if len(c.condition) > 0 {
		c.text = append(append(c.text, " where "...), c.condition...)
	}
}

// insert is POST /C.
func (c *call) insert() (http1.Answer, error) {
	absent, err := c.readAbsent()
	if err != nil {
		return http1.Answer{}, err
	}
	body, err := c.readJSON()
	if err != nil {
		return http1.Answer{}, err
	}
	if k := body.Kind(); k != doc.Object && k != doc.List {
		return http1.Answer{}, fail.New(fail.Invalid, "an insert wants an object or a list of objects, got %s", k)
	}
	c.text = append(append(append(c.text, "insert into "...), c.name...), " $1"...)
	if absent {
		c.text = append(c.text, " if absent"...)
	}
	c.param(body.Value())
	return c.execText(true, (*call).inserted)
}

// readAbsent reads the query string of an insert, which is empty or `if=absent`.
func (c *call) readAbsent() (absent bool, err error) {
	err = c.eachKey(func(key, value []byte, _ bool) error {
		switch {
		case string(key) != "if":
			return fail.New(fail.Invalid, "an insert takes no key but if=absent in its query string, got %s", quoted(key))
		case absent:
			return fail.New(fail.Invalid, "if is given twice")
		case string(value) != "absent":
			return fail.New(fail.Invalid, "if wants absent, got %s", quoted(value))
		}
		absent = true
		return nil
	})
	return absent, err
}

// update is PATCH /C and /C/all.
func (c *call) update() (http1.Answer, error) {
	body, err := c.readJSON()
	if err != nil {
		return http1.Answer{}, err
	}
	if body.Kind() != doc.Object || body.Count() == 0 {
		return http1.Answer{}, fail.New(fail.Invalid, "an update wants an object with at least one field")
	}
	c.text = append(append(append(c.text, "set "...), c.name...), " {"...)
	separator := ""
	body.Entries(func(key []byte, value doc.Raw) bool {
		if !isPath(key) {
			err = fail.New(fail.Invalid, "an update wants the names of fields and paths as keys, got %s", quoted(key))
			return false
		}
		c.text = append(append(append(c.text, separator...), key...), ": "...)
		c.text = c.appendParam(c.text, value.Value())
		separator = ", "
		return true
	})
	if err != nil {
		return http1.Answer{}, err
	}
	c.text = append(c.text, '}')
	if err := c.readFilters(); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(true, (*call).updated)
}

// delete is DELETE /C and /C/all.
func (c *call) delete() (http1.Answer, error) {
	c.text = append(append(c.text, "del "...), c.name...)
	if err := c.readFilters(); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(false, (*call).deleted)
}

// readFilters reads which documents to change: all of them only if the path is /C/all.
func (c *call) readFilters() error {
	if err := c.readQuery(keyWhere); err != nil {
		return err
	}
	filtered := len(c.condition) > 0
	switch {
	case c.all && filtered:
		return fail.New(fail.Invalid, "%s/all is the whole collection and takes no filter: leave /all away", c.name)
	case !c.all && !filtered:
		return fail.New(fail.Invalid, "a filter is missing: %s/all is the whole collection", c.name)
	}
	c.appendWhere()
	return nil
}

func (c *call) inserted(res *engine.Result) http1.Answer { return c.wrote(201, "inserted", res) }

func (c *call) updated(res *engine.Result) http1.Answer { return c.wrote(200, "updated", res) }

func (c *call) deleted(res *engine.Result) http1.Answer { return c.wrote(200, "deleted", res) }

// wrote returns the answer of a REST write.
func (c *call) wrote(status int, what string, res *engine.Result) http1.Answer {
	return http1.Answer{Status: status, Headers: writeHeaders(res), Body: appendCount(c.request.Scratch(), what, res.Affected)}
}

// readJSON reads the body as one JSON value, which may contain documents.
func (c *call) readJSON() (doc.Raw, error) {
	body, err := c.request.Body(http1.MaxBody)
	if err != nil {
		return nil, err
	}
	return c.parse(body)
}
