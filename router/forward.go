package router

import (
	"bytes"
	"errors"
	"time"

	"fenec/internal/http1"
)

// forward serves a request to a tenant: it is read whole, sent to the node that holds the tenant, and the node's
// answer is passed back.
func (rt *Router) forward(r *http1.Request, name []byte) http1.Answer {
	t := rt.dir.tenants.get(name)
	if !t.routed() {
		return noTenant(string(name))
	}
	ex := exchange{router: rt, request: r, hops: hops(r.Headers)}
	if r.HasBody() {
		var err error
		if ex.body, err = r.Body(http1.MaxBody); err != nil {
			return refused(err)
		}
		// The body took its time: the tenant may have moved.
		if t = rt.dir.tenants.get(name); !t.routed() {
			return noTenant(string(name))
		}
	}
	ex.silence = rt.transport.silence
	if wait := waits(r); wait > 0 { // a router that stops does not sit the wait out
		ex.silence += wait
		ex.watch = newWatch(r)
		rt.held.add(ex.watch)
	}
	answer, away := ex.run(t.node)
	if away {
		// The node does not hold the tenant. Where it has moved since it was looked up, its new node answers.
		if now := rt.dir.tenants.get(name); now.routed() && now.node != t.node {
			answer, _ = ex.run(now.node)
		}
	}
	if ex.watch != nil {
		rt.held.remove(ex.watch)
	}
	return answer
}

func noTenant(name string) http1.Answer {
	a := http1.ErrorAnswer(404, "there is no tenant "+name)
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], absentHeader)
	return a
}

// absentHeader tells a 404 of a tenant from one of something in a tenant.
var absentHeader = http1.Header{Name: []byte("Fenec-Tenant"), Value: []byte("absent")}

// refused is the answer to a body that could not be read.
func refused(err error) http1.Answer {
	var bad *http1.Error
	if errors.As(err, &bad) {
		return bad.Answer()
	}
	a := http1.ErrorAnswer(400, "the body could not be read")
	a.Close = true
	return a
}

const (
	// largeAnswer is the longest answer that is copied out of the connection it came on.
	largeAnswer = 32 << 10
	// heldAnswer is the most that is held of an answer, head included, where there is room, and leastAnswer where there is
	// none: of a longer one, the rest is read from the node as the client takes it.
	heldAnswer  = 1 << 20
	leastAnswer = 64 << 10
	// answerMemory is what the answers that are held take together, those up to leastAnswer left out.
	answerMemory = 64 << 20
)

// exchange is one request on its way to a node and its answer on the way back.
type exchange struct {
	router  *Router
	request *http1.Request
	hops    bool // some of its headers end here
	body    []byte
	silence time.Duration // the node's longest
	watch   *watch        // of a request that asks its node to hold it; nil of others, and once a stream has it
}

// run sends the request to a node and reads its answer. A request that was not wholly sent goes again, once, on a
// fresh connection; one that was, and whose answer was lost, does so only where running it twice is harmless. away
// tells that the node says it does not hold the tenant.
func (ex *exchange) run(n *node) (answer http1.Answer, away bool) {
	l := n.link.Load()
	w := l.pool.take()
	for again := false; ; again = true {
		if w == nil {
			var err error
			if w, err = l.pool.dial(ex.router.ctx); err != nil {
				return ex.unreachable(n, &lost{starved: starved(err), cause: err}), false
			}
		}
		answer, away, err := ex.try(w, l)
		if err == nil {
			return answer, away
		}
		w.close()
		w = nil
		if again || !ex.mayRepeat(err) {
			return ex.unreachable(n, err), false
		}
	}
}

func (ex *exchange) mayRepeat(err *lost) bool {
	if err.silent || err.garbled || err.gone || err.ending {
		return false
	}
	return !err.sent || repeatable(ex.request)
}

// try sends the request over one connection, which it gives back where it succeeds.
func (ex *exchange) try(w *wire, l *link) (answer http1.Answer, away bool, failed *lost) {
	r := ex.request
	began := time.Now()
	if !w.serve(r, ex.watch, began) {
		return answer, false, lostClient(w.ended())
	}
	w.out = appendRequest(w.out[:0], r, ex.hops, l, len(ex.body))
	rest := ex.body
	if len(rest) <= joinedBody {
		w.out, rest = append(w.out, rest...), nil
	}
	// A node may answer and close without having read everything: where it has, its answer counts.
	sending := w.Send(w.out, rest)
	rep, err := w.ReadHead(r.Method, began.Add(ex.silence))
	if err != nil {
		why := w.ended()
		switch {
		case why != nil:
			return answer, false, lostClient(why)
		case sending != nil:
			return answer, false, lostSending(sending)
		}
		return answer, false, lostWaiting(err)
	}
	w.hops = hops(rep.Headers)
	most, counted := ex.roomFor(rep)
	message, whole, err := w.Message(most, ex.silence)
	switch {
	case err != nil:
		ex.router.answers.Give(counted)
		if why := w.ended(); why != nil {
			return answer, false, lostClient(why)
		}
		return answer, false, lostInside(err)
	case whole:
		away = absent(rep)
		answer = ex.passBack(w, l, rep, message)
	default:
		answer = ex.passOn(w, l, rep, message)
	}
	r.Hold(ex.router.answers, counted)
	ex.router.metrics.upstream.Update(time.Since(began).Seconds())
	return answer, away, nil
}

// roomFor is how many bytes of an answer may be held, and how many of them were taken from the memory for answers.
func (ex *exchange) roomFor(rep *http1.Response) (most int, counted int64) {
	size := min(int64(len(rep.Head))+rep.Length, heldAnswer)
	switch {
	case size <= leastAnswer:
		return leastAnswer, 0
	case ex.router.answers.Take(size, 0):
		return heldAnswer, size
	}
	return leastAnswer, 0
}

// passBack makes the client's answer from a node's, which is there whole.
func (ex *exchange) passBack(w *wire, l *link, rep *http1.Response, message []byte) http1.Answer {
	status, closing := rep.Status, !ex.request.KeepAlive()
	if len(message) > largeAnswer {
		return ex.passLarge(w, l, rep, message)
	}
	raw := ex.request.Grow(len(message) + 64)
	if ex.plain(w) {
		raw = append(raw, message...)
	} else {
		raw = append(appendAnswer(raw, rep, w.hops, "", closing), message[len(rep.Head):]...)
	}
	l.pool.give(w)
	return http1.Answer{Status: status, Raw: raw}
}

// plain reports whether an answer with a length goes on byte for byte.
func (ex *exchange) plain(w *wire) bool { return !w.hops && ex.request.KeepAlive() }

// passLarge is passBack for an answer that is not copied: the connection it lies in is given back once the client has
// it.
func (ex *exchange) passLarge(w *wire, l *link, rep *http1.Response, message []byte) http1.Answer {
	head, body := message[:len(rep.Head)], message[len(rep.Head):]
	if !ex.plain(w) {
		head = appendAnswer(nil, rep, w.hops, "", !ex.request.KeepAlive())
	}
	return http1.Answer{Status: rep.Status, Raw: head, Length: int64(len(body)), Stream: func(out *http1.Writer) error {
		_, err := out.Write(body)
		if err == nil {
			err = out.Flush()
		}
		l.pool.give(w)
		return err
	}}
}

// appendAnswer appends a node's head as the client gets it: the lines that go on, the framing line where there is one,
// and the word that the connection ends where it does.
func appendAnswer(dst []byte, rep *http1.Response, hops bool, framing string, closing bool) []byte {
	dst = append(dst, rep.Head[:bytes.IndexByte(rep.Head, '\n')+1]...)
	dst = appendLines(dst, rep.Head, rep.Headers, hops)
	dst = append(dst, framing...)
	if closing {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, '\r', '\n')
}

// unreachable is the answer to a request whose node gave none.
func (ex *exchange) unreachable(n *node, err *lost) http1.Answer {
	r := ex.request
	if err.gone {
		a := http1.ErrorAnswer(499, "the client is gone") // for the metrics: nobody reads it
		a.Close = true
		return a
	}
	if err.starved {
		return http1.ErrorAnswerRetry(503, "the router has as many connections as it may have, send the request again", 1)
	}
	if err.ending {
		return http1.ErrorAnswerRetry(503, "the router is stopping, send the request again", 1)
	}
	n.errors.Inc()
	ex.router.log.Warn().Str("node", n.name).Bytes("request", r.ID).Str("method", r.Method).Bytes("path", r.Path).
		Bool("sent", err.sent).Err(err.cause).Msg("a node did not answer")
	switch {
	case err.silent:
		return http1.ErrorAnswer(504, "node "+n.name+" did not answer within "+ex.silence.String())
	case err.garbled:
		return http1.ErrorAnswer(502, "node "+n.name+" gave an answer that cannot be read")
	case err.sent && !repeatable(r):
		return http1.ErrorAnswer(502, "node "+n.name+" was lost before it answered: the request may have been carried out")
	case err.sent:
		return http1.ErrorAnswer(502, "node "+n.name+" was lost before it answered")
	}
	return http1.ErrorAnswer(502, "node "+n.name+" cannot be reached")
}
