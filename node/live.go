package node

import (
	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/http1"
)

// live is GET /C/changes: the rows of a shape and their changes, as server-sent events.
func (c *call) live() http1.Answer {
	s, err := c.openStream()
	if err != nil {
		return c.node.answerRESTError(c.request, err)
	}
	a := http1.Answer{Status: 200, Headers: streamHeaders(s.seq, s.history), Stream: s.run, Apart: true, Close: true}
	if c.request.Method == "HEAD" { // nothing is streamed
		s.close()
	}
	return a
}

var (
	eventStream = []http1.Header{{Name: []byte("Content-Type"), Value: []byte("text/event-stream")}}
	notStored   = http1.Header{Name: []byte("Cache-Control"), Value: []byte("no-store")}
)

func streamHeaders(seq uint64, history string) []http1.Header {
	return append(withType(positionHeaders(seq, history), eventStream), notStored)
}

// openStream opens the requested stream and makes its seed. The caller closes it.
func (c *call) openStream() (*stream, error) {
	shape, err := c.readShape()
	if err == nil {
		err = c.readLastEvent()
	}
	if err != nil {
		return nil, err
	}
	s := &stream{
		node: c.node, tenant: c.tenant, feed: c.tenant.Feed, scope: c.scope, shape: shape, request: c.request.ID,
		memory: c.node.newMemory(c.request),
	}
	s.ctx = s.memory.context()
	if err := s.open(); err != nil {
		return nil, err
	}
	begun := false
	defer func() {
		if !begun {
			s.close()
		}
	}()
	resumes, err := c.mayResume()
	if err != nil {
		return nil, err
	}
	if err := s.memory.run(func() error { return s.begin(c.cursor.seq, resumes) }); err != nil {
		return nil, err
	}
	s.memory.keep(int64(cap(s.first)))
	begun = true
	return s, nil
}

// mayResume reports whether the request has a cursor of this copy's history that is not past its last change.
func (c *call) mayResume() (bool, error) {
	if !c.cursor.given {
		return false, nil
	}
	relation, err := c.tenant.DB.Relation(c.cursor.seq, c.cursor.history)
	return relation == engine.Included, err
}

// open counts the stream, and holds its tenant open.
func (s *stream) open() error {
	n := s.node
	if n.streaming.Add(1) > n.budget.streams {
		n.streaming.Add(-1)
		return fail.New(fail.Closed, "%d live queries are open, the node's maximum: send the request again later", n.budget.streams)
	}
	if !s.tenant.Enter() {
		n.streaming.Add(-1)
		return s.leaving()
	}
	s.shape = streamsOf(s.tenant).share(s.shape)
	return nil
}

// close undoes open.
func (s *stream) close() {
	streamsOf(s.tenant).unshare(s.shape)
	s.node.tenants.Release(s.tenant)
	s.node.streaming.Add(-1)
}

// begin finds the collection and where the stream starts: after the change since if the changes after it are kept, and
// otherwise with a seed.
func (s *stream) begin(since uint64, resumes bool) error {
	return s.tenant.DB.SettledView(s.ctx, s.scope, func(v *engine.View) error {
		s.seq, s.history = v.Seq, v.History
		s.collection = s.feed.Collection(s.scope, s.shape.collection, v.Seq)
		if resumes && s.canFollow(v, since) {
			s.seq, s.history, s.first = since, v.HistoryAt(since), nil
			return s.shape.in(v, &s.memory.account).check()
		}
		var seed advance
		err := s.seed(v, &seed)
		s.first = seed.event
		return err
	})
}

// canFollow reports whether the changes after since are kept and account for every difference between the rows of then
// and now. A collection created later, even in the place of another of its name, is not the one the client has rows of;
// after an alter of what the shape reads, rows differ without a change of theirs.
func (s *stream) canFollow(v *engine.View, since uint64) bool {
	return s.feed.Check(since) == nil && v.Seq-since <= uint64(s.node.config.Changes) &&
		s.feed.Collection(s.scope, s.shape.collection, since) == s.collection && !s.altered(since, v.Seq)
}
