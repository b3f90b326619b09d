package node

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"
	"fenec/node/rest"
)

const (
	// defaultChanges and maxChanges bound the changes of a page: without a limit in the request, and with any limit.
	defaultChanges = 1000
	maxChanges     = 10_000
	// pageBytes is the length in bytes at which a page ends even if its limit allows more changes.
	pageBytes = 8 << 20
	// readChanges is how many bytes of blocks are read at a time.
	readChanges = 256 << 10
)

// changesQuery is what a request for changes asks for.
type changesQuery struct {
	since    uint64
	from     bool // since is given
	consumer []byte
	limit    int
	wait     time.Duration
}

// changes is GET /_changes: a line for each change after a cursor that is on disk.
func (c *call) changes() http1.Answer {
	q := changesQuery{limit: defaultChanges}
	err := c.readChangesQuery(&q)
	if err == nil {
		err = c.findCursor(&q)
	}
	if err != nil {
		return c.answerCursor(err)
	}
	a, err := c.answered(func() (http1.Answer, error) { return c.onePage(&q) })
	if err != nil {
		return c.answerCursor(err)
	}
	return a
}

// onePage returns the requested page of changes.
func (c *call) onePage(q *changesQuery) (http1.Answer, error) {
	p := page{
		feed: c.tenant.Feed, scope: c.scope, next: q.since, body: c.request.Scratch(), limit: q.limit, names: c.tenant.Feed.Names(),
		account: &c.memory.account,
	}
	p.roof = cap(p.body)
	if err := c.fill(&p, q.wait); err != nil {
		return http1.Answer{}, err
	}
	headers := withType(positionHeaders(c.tenant.DB.Position()), ndjson)
	if err := c.tenant.Feed.CoverHistory(); err != nil { // the page's cursor belongs to that history
		return http1.Answer{}, err
	}
	headers = append(headers, http1.Header{Name: nextName, Value: strconv.AppendUint(nil, p.next, 10)})
	return http1.Answer{Status: 200, Headers: headers, Body: p.body}, nil
}

var (
	ndjson   = []http1.Header{{Name: []byte("Content-Type"), Value: []byte("application/x-ndjson")}}
	nextName = []byte("Fenec-Next")
)

// answerCursor returns the answer for a cursor that cannot be served, with the first one that can.
func (c *call) answerCursor(err error) http1.Answer {
	var gone *feed.Gone
	var ahead *feed.Ahead
	switch {
	case errors.As(err, &gone):
		body := http1.AppendError(nil, err.Error())
		body = append(body[:len(body)-1], `,"since":`...)
		body = append(strconv.AppendUint(body, gone.First, 10), '}')
		return http1.Answer{Status: 410, Headers: positionHeaders(c.tenant.DB.Position()), Body: body}
	case errors.As(err, &ahead), fail.KindOf(err) == fail.Conflict:
		a := http1.ErrorAnswer(409, err.Error())
		a.Headers = positionHeaders(c.tenant.DB.Position())
		return a
	}
	return c.node.answerError(c.request, err)
}

func (c *call) readChangesQuery(q *changesQuery) error {
	var given [4]bool
	err := c.statement.EachKey(c.request.Query, func(key, value []byte, _ bool) error {
		which, err := q.read(string(key), value)
		if err == nil && given[which] {
			err = fail.New(fail.Invalid, "%s is given twice", key)
		}
		given[which] = true
		return err
	})
	if err != nil {
		return err
	}
	if q.from && q.consumer != nil {
		return fail.New(fail.Invalid, "since and consumer exclude each other: a consumer has a cursor of its own")
	}
	return nil
}

// read reads one key of the query and returns which it is.
func (q *changesQuery) read(key string, value []byte) (which int, err error) {
	switch key {
	case "since":
		q.from = true
		q.since, err = parseChange("since", value)
		return 0, err
	case "limit":
		n, notNumber := strconv.Atoi(string(value))
		if notNumber != nil || n < 1 || n > maxChanges {
			return 0, fail.New(fail.Invalid, "limit: expected a number from 1 to %d, got %s", maxChanges, rest.Quoted(value))
		}
		q.limit = n
		return 1, nil
	case "wait":
		q.wait, err = parseWait("wait", value)
		return 2, err
	case "consumer":
		q.consumer = value
		return 3, nil
	}
	return 0, fail.New(fail.Invalid, "%s is no key of /_changes, which has since, limit, wait and consumer", rest.Quoted([]byte(key)))
}

// findCursor sets where the page begins, and fails if that cursor cannot be served.
func (c *call) findCursor(q *changesQuery) error {
	changes := c.tenant.Feed
	switch {
	case q.consumer != nil:
		consumer, err := c.tenant.DB.Consumer(c.scope, string(q.consumer))
		if err != nil {
			return err
		}
		q.since = consumer.Since
	case !q.from:
		if err := changes.Cover(); err != nil {
			return err
		}
		q.since = changes.End(feed.Durable)
	}
	return c.checkCursor(q.since)
}

// checkCursor returns an error if a cursor cannot be served. If the request names a history and no position to wait for, the
// cursor belongs to that history.
func (c *call) checkCursor(since uint64) error {
	if c.asked.history != nil && !c.asked.named {
		switch relation, err := c.tenant.DB.Relation(since, c.asked.history); {
		case err != nil:
			return err
		case relation == engine.Diverged:
			_, history := c.tenant.DB.Position()
			return fail.New(fail.Conflict, "change %d of history %s is not a change of this copy, whose history is %s", since, c.asked.history, history)
		}
	}
	return c.tenant.Feed.Check(since)
}

// fill reads the page, and waits if it would be empty.
func (c *call) fill(p *page, wait time.Duration) error {
	changes := c.tenant.Feed
	var timer *time.Timer
	for {
		moved := changes.Moved(feed.Durable)
		if err := changes.Cover(); err != nil {
			return err
		}
		if err := p.read(); err != nil || p.lines > 0 || wait == 0 {
			return err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		switch c.pause(moved, timer) {
		case waitOver, waitStopping, waitLeft:
			return nil
		case waitGone:
			return errLeaving(c.tenant.Name)
		}
	}
}

// page is a page of changes being made.
type page struct {
	feed   *feed.Feed
	scope  engine.Scope
	next   uint64 // the cursor after its last change
	body   []byte
	lines  int
	limit  int
	names  *feed.Names
	blocks []feed.Block

	account *engine.Account // of body
	roof    int             // bytes that body may have without being counted again
}

// read adds the changes after the page, in whole blocks as far as they fit. It adds only part of a block that would not fit
// on an empty page.
func (p *page) read() (err error) {
	for {
		p.blocks, err = p.feed.Read(p.scope, p.blocks[:0], p.next, feed.Durable, readChanges)
		if err != nil || len(p.blocks) == 0 {
			return err
		}
		for _, b := range p.blocks {
			if more, err := p.add(b); err != nil || !more {
				return err
			}
		}
	}
}

// add adds the changes of a block after p.next. more is false if the page is full.
func (p *page) add(b feed.Block) (more bool, err error) {
	lines, length := p.lines, len(p.body)
	seq, at := b.Before, b.Record.At()
	err = b.Record.Changes(func(one *engine.Change) error {
		seq++
		schema := p.names.Schema(one, seq)
		switch {
		case seq <= p.next:
		case schema == nil:
			return &feed.Gone{First: p.feed.First()} // the file was rewritten just now, and the block released
		case engine.IsServers(schema.Name):
		case p.lines == p.limit || len(p.body) >= pageBytes:
			return errFull
		default:
			p.body = feed.AppendLine(p.body, one, schema, seq, at)
			p.lines++
			return p.count()
		}
		return nil
	})
	switch {
	case err == nil:
		p.next = b.After
		return true, nil
	case lines > 0 && (fail.KindOf(err) == fail.Busy || fail.KindOf(err) == fail.TooLarge): // the changes that had room are a page
		p.lines, p.body = lines, bytes.Clone(p.body[:length])
	case !errors.Is(err, errFull):
		return false, err
	case lines > 0:
		p.lines, p.body = lines, p.body[:length]
	default:
		p.next = seq - 1
	}
	return false, nil
}

// count counts the bytes by which the page has grown.
func (p *page) count() error {
	if len(p.body) <= p.roof {
		return nil
	}
	more := cap(p.body) - p.roof
	p.roof = cap(p.body)
	return p.account.Hold(int64(more), "listing changes")
}

var errFull = errors.New("the page is full")
