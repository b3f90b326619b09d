package router

import (
	"bytes"
	"errors"
	"time"

	"fenec/internal/http1"
)

// forward serves a request to a tenant: it reads the request whole, sends it to the node that holds the tenant, and returns
// the node's answer.
func (rt *Router) forward(r *http1.Request, name []byte) http1.Answer {
	t, n := rt.dir.Find(name)
	if !t.Routed() {
		return noTenant(string(name))
	}
	ex := exchange{router: rt, request: r, hops: hops(r.Headers)}
	if r.HasBody() {
		var err error
		if ex.body, err = r.Body(http1.MaxBody); err != nil {
			return refused(err)
		}
		// Reading the body may have taken long: the tenant may have moved.
		if t, n = rt.dir.Find(name); !t.Routed() {
			return noTenant(string(name))
		}
	}
	ex.silence = rt.transport.silence
	if wait := waits(r); wait > 0 { // a router that stops ends the wait
		ex.silence += wait
		ex.watch = newWatch(r)
		rt.held.add(ex.watch)
	}
	answer, missed := ex.run(n)
	if missed != served {
		// The node does not serve the tenant. If it has moved since the lookup, its new node answers.
		if t, now := rt.dir.Find(name); t.Routed() && now != n {
			answer, missed = ex.run(now)
		}
	}
	if missed == followed {
		// A write that no copy accepts yet: the node is being told to serve the tenant, or another one is.
		answer = http1.ErrorAnswerRetry(503, "tenant "+string(name)+" is changing its node, send the request again", 1)
	}
	if ex.watch != nil {
		rt.held.remove(ex.watch)
	}
	return answer
}

func noTenant(name string) http1.Answer {
	a := http1.ErrorAnswer(404, "no tenant "+name)
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], absentHeader)
	return a
}

// absentHeader distinguishes a 404 for a tenant from one for something in a tenant.
var absentHeader = http1.Header{Name: []byte("Fenec-Tenant"), Value: []byte("absent")}

// refused returns the answer for a body that could not be read.
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
	// largeAnswer is the longest answer that is copied out of the buffer of its connection.
	largeAnswer = 32 << 10
	// heldAnswer is the most bytes held of an answer, head included, if there is room, and leastAnswer if there is none. The
	// rest of a longer one is read from the node as the client reads.
	heldAnswer  = 1 << 20
	leastAnswer = 64 << 10
	// answerMemory bounds the bytes of all held answers, without those up to leastAnswer.
	answerMemory = 64 << 20
)

// exchange is one request to a node and its answer.
type exchange struct {
	router  *Router
	request *http1.Request
	hops    bool // some of its headers are not forwarded
	body    []byte
	silence time.Duration // how long the node may stay silent
	watch   *watch        // of a request that asks its node to hold it; nil for others, and once a stream owns it
}

// miss is why a node did not serve a tenant.
type miss uint8

const (
	served   miss = iota // it did
	absent               // it does not hold the tenant
	followed             // its copy follows another node and accepts no writes
)

// run sends the request to a node and reads its answer. A request that was not sent whole is sent again, once, on a new
// connection; one that was sent and whose answer was lost, only if running it twice is harmless.
func (ex *exchange) run(n *node) (answer http1.Answer, missed miss) {
	l := n.link.Load()
	w := l.pool.take()
	for again := false; ; again = true {
		if w == nil {
			var err error
			if w, err = l.pool.dial(ex.router.ctx); err != nil {
				return ex.unreachable(n, &lost{starved: starved(err), cause: err}), served
			}
		}
		answer, missed, err := ex.try(w, l)
		if err == nil {
			return answer, missed
		}
		w.close()
		w = nil
		if again || !ex.mayRepeat(err) {
			return ex.unreachable(n, err), served
		}
	}
}

func (ex *exchange) mayRepeat(err *lost) bool {
	if err.silent || err.garbled || err.gone || err.ending {
		return false
	}
	return !err.sent || repeatable(ex.request)
}

// try sends the request over one connection, which it returns to the pool on success.
func (ex *exchange) try(w *wire, l *link) (answer http1.Answer, missed miss, failed *lost) {
	r := ex.request
	began := time.Now()
	if !w.serve(r, ex.watch, began) {
		return answer, served, lostClient(w.ended())
	}
	w.out = appendRequest(w.out[:0], r, ex.hops, l, len(ex.body))
	rest := ex.body
	if len(rest) <= joinedBody {
		w.out, rest = append(w.out, rest...), nil
	}
	// A node may answer and close before it has read everything: its answer counts.
	sending := w.Send(w.out, rest)
	rep, err := w.ReadHead(r.Method, began.Add(ex.silence))
	if err != nil {
		why := w.ended()
		switch {
		case why != nil:
			return answer, served, lostClient(why)
		case sending != nil:
			return answer, served, lostSending(sending)
		}
		return answer, served, lostWaiting(err)
	}
	l.answered()
	w.hops = hops(rep.Headers)
	most, counted := ex.roomFor(rep)
	message, whole, err := w.Message(most, ex.silence)
	switch {
	case err != nil:
		ex.held().Give(counted)
		if why := w.ended(); why != nil {
			return answer, served, lostClient(why)
		}
		return answer, served, lostInside(err)
	case whole:
		missed = missedBy(rep)
		answer = ex.passBack(w, l, rep, message)
	default:
		answer = ex.passOn(w, l, rep, message)
	}
	ex.router.metrics.upstream.Update(time.Since(began).Seconds())
	return answer, missed, nil
}

// held is what the request holds of the memory for answers, until its client has its answer.
func (ex *exchange) held() *http1.Holding { return ex.request.Holding(ex.router.answers) }

// roomFor returns how many bytes of an answer may be held, and how many of them were taken from the memory for answers.
func (ex *exchange) roomFor(rep *http1.Response) (most int, counted int64) {
	size := min(int64(len(rep.Head))+rep.Length, heldAnswer)
	switch {
	case size <= leastAnswer:
		return leastAnswer, 0
	case ex.held().Take(size):
		return heldAnswer, size
	}
	return leastAnswer, 0
}

// passBack makes the client's answer from a node's answer that was read whole.
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

// plain reports whether an answer with a length is forwarded byte for byte.
func (ex *exchange) plain(w *wire) bool { return !w.hops && ex.request.KeepAlive() }

// passLarge is passBack for an answer that is not copied: the connection whose buffer holds it is returned to the pool once
// the client has it.
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

// appendAnswer appends the head for the client: the forwarded lines of the node's, the framing line if there is one, and
// Connection: close if the connection ends.
func appendAnswer(dst []byte, rep *http1.Response, hops bool, framing string, closing bool) []byte {
	dst = append(dst, rep.Head[:bytes.IndexByte(rep.Head, '\n')+1]...)
	dst = appendLines(dst, rep.Head, rep.Headers, hops)
	dst = append(dst, framing...)
	if closing {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, '\r', '\n')
}

// unreachable returns the answer for a request that its node did not answer.
func (ex *exchange) unreachable(n *node, err *lost) http1.Answer {
	r := ex.request
	if err.gone {
		a := http1.ErrorAnswer(499, "the client is gone") // for the metrics: no client reads it
		a.Close = true
		return a
	}
	if err.starved {
		return http1.ErrorAnswerRetry(503, "the router has its maximum of connections: send the request again", 1)
	}
	if err.ending {
		return http1.ErrorAnswerRetry(503, "the router is stopping, send the request again", 1)
	}
	n.errors.Inc()
	n.link.Load().lost()
	ex.router.log.Warn().Str("node", n.name).Bytes("request", r.ID).Str("method", r.Method).Bytes("path", r.Path).
		Bool("sent", err.sent).Err(err.cause).Msg("a node did not answer")
	switch {
	case err.silent:
		return http1.ErrorAnswer(504, "node "+n.name+" did not answer within "+ex.silence.String())
	case err.garbled:
		return http1.ErrorAnswer(502, "node "+n.name+" sent an answer that cannot be read")
	case err.sent && !repeatable(r):
		return http1.ErrorAnswer(502, "node "+n.name+" was lost before it answered: the request may have been carried out")
	case err.sent:
		return http1.ErrorAnswer(502, "node "+n.name+" was lost before it answered")
	}
	return http1.ErrorAnswer(502, "node "+n.name+" cannot be reached")
}
