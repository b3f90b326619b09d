package node

import (
	"bytes"
	"net"
	"strconv"
	"time"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/tenants"
	"fenec/replication"
)

// serveConnection is GET /_replication: another node asks for a connection on which this node feeds it tenants.
func (n *Node) serveConnection(r *http1.Request) http1.Answer {
	if !bytes.EqualFold(r.Get("Upgrade"), []byte(replication.Protocol)) {
		a := http1.ErrorAnswer(426, "this path is for nodes that follow: expected Upgrade: "+replication.Protocol)
		a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], upgradeHeaders...)
		return a
	}
	if n.stopping.Load() {
		return n.answerError(r, tenants.ErrStopping)
	}
	return http1.Answer{Status: 101, Headers: upgradeHeaders, Switch: func(conn net.Conn) {
		_ = n.tenants.Serve(conn) // the follower logs that the connection is lost, and why
	}}
}

var upgradeHeaders = []http1.Header{
	{Name: []byte("Connection"), Value: []byte("Upgrade")}, {Name: []byte("Upgrade"), Value: []byte(replication.Protocol)},
}

// serveNodeReplication answers a request below /_replication. Without a replication token there is no such route.
func (n *Node) serveNodeReplication(r *http1.Request, path [][]byte) http1.Answer {
	if a, refused := n.refuseReplication(r); refused {
		return a
	}
	if len(path) > 1 {
		return errNoRoute().answer()
	}
	if a, done := edge.Get.Check(r); done {
		return a
	}
	return n.serveConnection(r)
}

// refuseReplication returns the answer for a request without the replication token. refused is false if it has it.
func (n *Node) refuseReplication(r *http1.Request) (a http1.Answer, refused bool) {
	switch {
	case !n.replicationToken.Set():
		return errNoRoute().answer(), true
	case !n.replicationToken.In(r):
		return n.unauthorized(r), true
	}
	return a, false
}

// serveReplication answers a request for /t/<tenant>/_replication or below.
func (n *Node) serveReplication(r *http1.Request, name string, path [][]byte) http1.Answer {
	if a, refused := n.refuseReplication(r); refused {
		return a
	}
	below := ""
	if len(path) == 2 {
		below = string(path[1])
	}
	serve, methods := n.sendFeed, edge.Get
	switch {
	case len(path) > 2:
		return errNoRoute().answer()
	case len(path) == 1:
	case below == "status":
		serve = n.adminPosition
	case below == "promote":
		serve, methods = n.adminPromote, edge.Post
	default:
		return errNoRoute().answer()
	}
	if a, done := methods.Check(r); done {
		return a
	}
	return serve(r, name)
}

// feedQuery is what a request for a tenant's feed asks for.
type feedQuery struct {
	since   uint64
	history string
	image   bool
}

func readFeedQuery(query []byte) (q feedQuery, err error) {
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		key, value, _ := bytes.Cut(pair, []byte("="))
		switch string(key) {
		case "":
		case "since":
			if q.since, err = parseChange("since", value); err != nil {
				return q, err
			}
		case "history":
			q.history = string(value)
		case "image":
			if string(value) != "1" {
				return q, fail.New(fail.Invalid, "image: expected 1, got %q", value)
			}
			q.image = true
		default:
			return q, fail.New(fail.Invalid, "%q is no key of /_replication, which has since, history and image", key)
		}
	}
	return q, nil
}

// sendFeed is GET /t/<tenant>/_replication: the tenant's image, or its records after a change as frames, until the client
// disconnects.
func (n *Node) sendFeed(r *http1.Request, name string) http1.Answer {
	q, err := readFeedQuery(r.Query)
	if err != nil {
		return n.answerError(r, err)
	}
	if q.image {
		return n.sendImage(r, name, true) // a copy must hold nothing that can be lost here
	}
	t, err := n.tenants.Acquire(name)
	if err != nil {
		return n.answerError(r, err)
	}
	release := func() { n.tenants.Release(t) }
	frames, err := replication.NewFrames(replication.Copy{DB: t.DB, Feed: t.Feed, Release: release}, q.since, q.history)
	if err != nil {
		release()
		return n.answerError(r, err)
	}
	headers := withType(positionHeaders(t.DB.Position()), octets)
	if r.Method == "HEAD" {
		release()
		return http1.Answer{Status: 200, Headers: headers}
	}
	return http1.Answer{Status: 200, Headers: headers, Apart: true, Stream: func(w *http1.Writer) error {
		defer release()
		return n.pumpFrames(w, r, t, frames)
	}}
}

// pumpFrames sends frames until the client disconnects, the tenant goes or the node stops.
func (n *Node) pumpFrames(w *http1.Writer, r *http1.Request, t *tenants.Tenant, frames *replication.Frames) error {
	for {
		moved := t.Feed.Moved(feed.Durable)
		b, err := frames.Next()
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if len(b) > 0 {
			continue
		}
		select {
		case <-moved:
		case <-r.Context().Done():
			return nil
		case <-t.Gone():
			return nil
		case <-n.stop:
			return nil
		}
	}
}

// followRequest is the body of POST .../follow.
type followRequest struct {
	From    string `json:"from"`
	Lineage string `json:"lineage"`
	Force   bool   `json:"force"`
	Read    bool   `json:"read"`
}

// adminFollow is POST /_admin/tenants/<t>/follow.
func (n *Node) adminFollow(r *http1.Request, name string) http1.Answer {
	c, err := readCondition(r)
	var f followRequest
	if err == nil {
		err = readJSON(r, &f, `{"from": "http://host:port", "lineage": "...", "force": true}`)
	}
	if err == nil && f.From != "" {
		if f.From, err = replication.ParseAddress(f.From); err != nil {
			err = fail.New(fail.Invalid, "from: %v", err)
		}
	}
	if err == nil && f.Lineage != "" && !isLineage(f.Lineage) {
		err = fail.New(fail.Invalid, "lineage: expected 16 hexadecimal digits, got %q", f.Lineage)
	}
	if err == nil && !n.replicationToken.Set() {
		err = fail.New(fail.Conflict, "the node has no --replication-token and cannot follow another")
	}
	if err != nil {
		return n.answerError(r, err)
	}
	from, connected, err := n.tenants.Follow(name, tenants.FollowRequest(f), c)
	if err != nil {
		return n.answerError(r, err)
	}
	body := append(r.Scratch(), `{"following":true,"from":`...)
	body = doc.AppendQuoted(body, []byte(from))
	body = append(strconv.AppendBool(append(body, `,"connected":`...), connected), '}')
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: body}
}

func isLineage(text string) bool {
	_, err := strconv.ParseUint(text, 16, 64)
	return err == nil && len(text) == 16 && text[0] != '+'
}

// adminPromote is POST /_admin/tenants/<t>/promote and POST /t/<t>/_replication/promote.
func (n *Node) adminPromote(r *http1.Request, name string) http1.Answer {
	c, err := readCondition(r)
	var req struct {
		Force bool `json:"force"`
	}
	if err == nil {
		err = readJSON(r, &req, `{"force": true}`)
	}
	var p tenants.Promoted
	if err == nil {
		p, err = n.tenants.Promote(name, req.Force, c)
	}
	if err != nil {
		return n.answerError(r, err)
	}
	body := strconv.AppendBool(append(r.Scratch(), `{"promoted":`...), p.Promoted)
	body = strconv.AppendUint(append(body, `,"seq":`...), p.Seq, 10)
	body = doc.AppendQuoted(append(body, `,"history":`...), []byte(p.History))
	body = doc.AppendQuoted(append(body, `,"lineage":`...), []byte(p.Lineage))
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, '}')}
}

// adminPosition is GET /_admin/tenants/<t>/position and GET /t/<t>/_replication/status.
func (n *Node) adminPosition(r *http1.Request, name string) http1.Answer {
	p, err := n.tenants.Position(name)
	if err != nil {
		return n.answerError(r, err)
	}
	body := appendPosition(r.Scratch(), &p, n.config.Clock())
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: body}
}

func roleOf(follows bool) string {
	if follows {
		return "replica"
	}
	return "primary"
}

func appendPosition(dst []byte, p *tenants.Position, now time.Time) []byte {
	dst = append(append(append(dst, `{"role":"`...), roleOf(p.Follows)...), `","seq":`...)
	dst = strconv.AppendUint(dst, p.Seq, 10)
	dst = strconv.AppendUint(append(dst, `,"durable":`...), p.Durable, 10)
	dst = doc.AppendQuoted(append(dst, `,"history":`...), []byte(p.History))
	dst = doc.AppendQuoted(append(dst, `,"lineage":`...), []byte(p.Lineage))
	dst = strconv.AppendBool(append(dst, `,"frozen":`...), p.Frozen)
	dst = strconv.AppendBool(append(dst, `,"writable":`...), p.Writable)
	if p.Follows {
		dst = appendFollowing(dst, p, now)
	} else {
		dst = append(dst, `,"replicas":[`...)
		for i, one := range p.Replicas {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = doc.AppendQuoted(append(dst, `{"addr":`...), []byte(one.Addr))
			dst = strconv.AppendUint(append(dst, `,"sent":`...), one.Sent, 10)
			dst = append(strconv.AppendUint(append(dst, `,"synced":`...), one.Synced, 10), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendFollowing appends how a copy follows.
func appendFollowing(dst []byte, p *tenants.Position, now time.Time) []byte {
	s := &p.Status
	dst = appendTextOrNull(append(dst, `,"from":`...), p.From)
	dst = strconv.AppendBool(append(dst, `,"connected":`...), s.Connected)
	dst = strconv.AppendBool(append(dst, `,"caught_up":`...), s.CaughtUp)
	dst = append(dst, `,"behind":`...)
	if s.Known {
		dst = strconv.AppendUint(dst, s.Behind, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"contact_ms":`...)
	if s.Contact.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, max(0, now.Sub(s.Contact).Milliseconds()), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"images":`...), int64(s.Images), 10)
	reason := ""
	if s.Err != nil {
		reason = s.Err.Error()
	}
	return appendTextOrNull(append(dst, `,"error":`...), reason)
}

func appendTextOrNull(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return doc.AppendQuoted(dst, []byte(text))
}

// adminLineage is GET /_admin/tenants/<t>/lineage: which tenant this file is, and the histories that it has left.
func (n *Node) adminLineage(r *http1.Request, name string) http1.Answer {
	branches, lineage, err := n.tenants.Branches(name)
	if err != nil {
		return n.answerError(r, err)
	}
	last := branches[len(branches)-1]
	body := doc.AppendQuoted(append(r.Scratch(), `{"lineage":`...), []byte(lineage))
	body = doc.AppendQuoted(append(body, `,"history":`...), []byte(last.History))
	body = strconv.AppendUint(append(body, `,"seq":`...), last.At, 10)
	body = append(body, `,"left":[`...)
	for i, b := range branches[:len(branches)-1] {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendQuoted(append(body, `{"history":`...), []byte(b.History))
		body = append(strconv.AppendUint(append(body, `,"at":`...), b.At, 10), '}')
	}
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, "]}"...)}
}
