package node

import (
	"context"
	"errors"

	"fenec/engine/fail"
	"fenec/internal/http1"
	"fenec/node/tenants"
	"fenec/replication"
)

// retrySeconds is the wait in an answer if a retry soon makes sense.
const retrySeconds = 1

// statuses maps each kind of error to its status.
var statuses = map[fail.Kind]struct {
	status int
	retry  bool // the answer has a Retry-After
}{
	fail.Invalid:     {status: 400},
	fail.NotFound:    {status: 404},
	fail.Conflict:    {status: 409},
	fail.Require:     {status: 412},
	fail.TooLarge:    {status: 413},
	fail.Unsupported: {status: 501},
	fail.ReadOnly:    {status: 403},
	fail.Frozen:      {status: 503, retry: true},
	fail.Storage:     {status: 500},
	fail.Full:        {status: 507},
	fail.Damaged:     {status: 500},
	fail.Canceled:    {status: 503},
	fail.Timeout:     {status: 503, retry: true},
	fail.Closed:      {status: 503, retry: true},
	fail.Reused:      {status: 422},
	fail.Busy:        {status: 503, retry: true},
	fail.Follows:     {status: 403},
}

// tenantHeader marks, for a router, a 404 that means that this node does not hold the tenant (absent), and a 403 that means that its
// copy follows another node (replica).
func tenantHeader(value string) http1.Header {
	return http1.Header{Name: []byte("Fenec-Tenant"), Value: []byte(value)}
}

// answerError returns the answer for a request that failed, with the position in the statement in its sentence.
func (n *Node) answerError(r *http1.Request, err error) http1.Answer {
	return n.answerFailure(r, err, err.Error())
}

// answerRESTError is answerError for a statement that the node wrote itself: a position in it would mean nothing to the
// client.
func (n *Node) answerRESTError(r *http1.Request, err error) http1.Answer {
	var e *fail.Error
	if errors.As(err, &e) {
		return n.answerFailure(r, err, e.Message)
	}
	return n.answerFailure(r, err, err.Error())
}

func (n *Node) answerFailure(r *http1.Request, err error, message string) http1.Answer {
	var missing *tenants.Absent
	var framing *http1.Error
	var late *behind
	var refused *replication.Ended
	switch {
	case errors.As(err, &late):
		a := http1.ErrorAnswer(504, message)
		a.Headers = positionHeaders(late.seq, late.history)
		return a
	case errors.As(err, &missing):
		a := http1.ErrorAnswer(404, message)
		a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], tenantHeader("absent"))
		return a
	case errors.As(err, &refused):
		return http1.ErrorAnswer(statusOfRefusal(refused), message)
	case errors.As(err, &framing):
		return framing.Answer()
	}
	kind := fail.KindOf(err)
	how, known := statuses[kind]
	switch {
	case !known && errors.Is(err, context.Canceled):
		how, message = statuses[fail.Canceled], "the request was given up"
	case !known:
		n.log.Error().Bytes("request", r.ID).Err(err).Msg("an unclassified error")
		how.status, message = 500, "the request failed: the node's log has the reason"
	case kind == fail.Canceled:
		n.log.Info().Bytes("request", r.ID).Msg("the client disconnected before its answer")
	case how.status == 500 || how.status == 507:
		n.log.Error().Bytes("request", r.ID).Err(err).Msg("a request failed")
	}
	if kind == fail.Follows {
		a := http1.ErrorAnswer(how.status, message)
		a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], tenantHeader("replica"))
		return a
	}
	if how.retry {
		return http1.ErrorAnswerRetry(how.status, message, retrySeconds)
	}
	return http1.ErrorAnswer(how.status, message)
}

// statusOfRefusal returns the status for a copy that may not follow another node.
func statusOfRefusal(e *replication.Ended) int {
	if e.Status == 401 {
		return 502
	}
	return 409
}
