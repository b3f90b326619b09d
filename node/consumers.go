package node

import (
	"bytes"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// consumers is GET /_changes/consumers.
func (c *call) consumers() http1.Answer {
	headers := c.headNow()
	if err := c.tenant.Feed.Cover(); err != nil {
		return c.node.answerError(c.request, err)
	}
	all, err := c.tenant.DB.Consumers(c.scope)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	body := append(c.request.Scratch(), '[')
	for i, one := range all {
		if i > 0 {
			body = append(body, ',')
		}
		behind, err := c.tenant.Feed.Behind(c.scope, one.Since)
		if err != nil {
			return c.node.answerError(c.request, err)
		}
		body = appendConsumer(body, one)
		body = appendNumber(append(body[:len(body)-1], ','), "behind", int64(behind))
		body = append(body, '}')
	}
	return http1.Answer{Status: 200, Headers: headers, Body: append(body, ']')}
}

func appendConsumer(dst []byte, one engine.Consumer) []byte {
	dst = doc.AppendQuoted(append(dst, `{"name":`...), []byte(one.Name))
	dst = append(appendNumber(append(dst, ','), "since", int64(one.Since)), '}')
	return dst
}

// consumer is POST and DELETE /_changes/consumers/K.
func (c *call) consumer() http1.Answer {
	var a http1.Answer
	var err error
	if c.request.Method == "POST" {
		a, err = c.commitConsumer()
	} else {
		a, err = c.writeConsumer(func(o *engine.Once) (engine.Result, *engine.Kept, error) {
			return c.tenant.DB.DeleteConsumer(c.scope, o, string(c.statement.Name))
		}, func(res *engine.Result) http1.Answer {
			return http1.Answer{Status: 204, Headers: positionHeaders(res.Seq, res.History)[1:]}
		})
	}
	if err != nil {
		return c.answerCursor(err)
	}
	return a
}

// commitConsumer creates a consumer or moves its cursor. Without a cursor an existing one is not moved.
func (c *call) commitConsumer() (http1.Answer, error) {
	one := engine.Consumer{Name: string(c.statement.Name)}
	since, given, err := c.readCursor()
	switch {
	case err != nil:
	case given:
		one.Since, err = since, c.checkCursor(since)
	default:
		one.Since, err = c.presentCursor(one.Name)
	}
	if err != nil {
		return http1.Answer{}, err
	}
	return c.writeConsumer(func(o *engine.Once) (engine.Result, *engine.Kept, error) {
		return c.tenant.DB.SetConsumer(c.scope, o, one)
	}, func(res *engine.Result) http1.Answer {
		return http1.Answer{
			Status: 200, Headers: positionHeaders(res.Seq, res.History), Body: appendConsumer(c.request.Scratch(), one),
		}
	})
}

// readCursor reads an optional body of {"since": n}.
func (c *call) readCursor() (since uint64, given bool, err error) {
	body, err := c.request.Body(http1.MaxBody)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return 0, false, err
	}
	var cursor struct {
		Since jsontext.Value `json:"since"`
	}
	if err := json.Unmarshal(body, &cursor, json.RejectUnknownMembers(true)); err != nil {
		return 0, false, fail.New(fail.Invalid, `expected an object {"since": n}, n the number of a change, or no body`)
	}
	if cursor.Since == nil {
		return 0, false, nil
	}
	since, err = parseChange("since", cursor.Since)
	return since, true, err
}

// presentCursor returns the cursor of a consumer, or that of a new one: the last change on disk.
func (c *call) presentCursor(name string) (uint64, error) {
	one, err := c.tenant.DB.Consumer(c.scope, name)
	if fail.KindOf(err) != fail.NotFound {
		return one.Since, err
	}
	if err := c.tenant.Feed.Cover(); err != nil {
		return 0, err
	}
	return c.tenant.Feed.End(feed.Durable), nil
}

// writeConsumer runs a write to the consumers, under the request's key if it has one.
func (c *call) writeConsumer(write func(o *engine.Once) (engine.Result, *engine.Kept, error), answer func(*engine.Result) http1.Answer) (http1.Answer, error) {
	var o *engine.Once
	if c.keyed {
		var err error
		if o, err = c.once(func(results []engine.Result) http1.Answer { return answer(&results[0]) }); err != nil {
			return http1.Answer{}, err
		}
	}
	res, kept, err := write(o)
	switch {
	case err != nil:
		return http1.Answer{}, err
	case kept != nil:
		return replay(kept), nil
	}
	return answer(&res), nil
}
