package node

import (
	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// collection answers /C and /C/all. Each request becomes one statement (node/rest).
func (c *call) collection() http1.Answer {
	switch c.request.Method {
	case "POST":
		return c.answerREST(c.insert())
	case "PATCH":
		return c.answerREST(c.update())
	case "DELETE":
		return c.answerREST(c.delete())
	}
	return c.answerREST(c.rows())
}

func (c *call) answerREST(a http1.Answer, err error) http1.Answer {
	if err != nil {
		return c.node.answerRESTError(c.request, err)
	}
	return a
}

// rows is GET /C.
func (c *call) rows() (http1.Answer, error) {
	if err := c.statement.Rows(c.request.Query); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(false, (*call).found)
}

// found returns the answer of a REST read.
func (c *call) found(res *engine.Result) http1.Answer {
	body := res.Body
	if c.statement.Counts() && len(body) > 2 {
		body = body[1 : len(body)-1] // the only row, without its list
	}
	return http1.Answer{Status: 200, Headers: c.head(res), Body: body}
}

// insert is POST /C.
func (c *call) insert() (http1.Answer, error) {
	absent, err := c.statement.InsertKeys(c.request.Query)
	if err != nil {
		return http1.Answer{}, err
	}
	body, err := c.readJSON()
	if err != nil {
		return http1.Answer{}, err
	}
	if err := c.statement.Insert(body, absent); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(true, (*call).inserted)
}

// update is PATCH /C and /C/all.
func (c *call) update() (http1.Answer, error) {
	body, err := c.readJSON()
	if err != nil {
		return http1.Answer{}, err
	}
	if err := c.statement.Update(body, c.request.Query, c.all); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(true, (*call).updated)
}

// delete is DELETE /C and /C/all.
func (c *call) delete() (http1.Answer, error) {
	if err := c.statement.Delete(c.request.Query, c.all); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(false, (*call).deleted)
}

// near is POST /C/near.
func (c *call) near() http1.Answer { return c.answerREST(c.nearest()) }

func (c *call) nearest() (http1.Answer, error) {
	if err := c.statement.NearFilters(c.request.Query); err != nil {
		return http1.Answer{}, err
	}
	body, err := c.readJSON()
	if err != nil {
		return http1.Answer{}, err
	}
	if err := c.statement.Near(body, c.schemaOfName); err != nil {
		return http1.Answer{}, err
	}
	return c.execText(false, (*call).found)
}

// schemaOfName returns the schema of the collection in the path.
func (c *call) schemaOfName() (*doc.Schema, error) {
	all, err := c.tenant.DB.Collections(c.scope)
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		if info.Schema.Name == string(c.statement.Name) {
			return info.Schema, nil
		}
	}
	return nil, fail.New(fail.NotFound, "there is no collection %s", c.statement.Name)
}

// execText is exec of the statement written so far.
func (c *call) execText(grows bool, answer func(*call, *engine.Result) http1.Answer) (http1.Answer, error) {
	if grows {
		if err := c.node.checkGrowth(c.tenant); err != nil {
			return c.ranBefore(err)
		}
	}
	return c.exec(engine.Statement{Text: string(c.statement.Text), Params: c.statement.Params}, answer)
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
