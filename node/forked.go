package node

import (
	"errors"
	"io"
	"strconv"

	"fenec/engine/doc"
	"fenec/internal/edge"
	"fenec/internal/http1"
)

// adminForked is GET /_admin/tenants/<t>/forked: the branches of the tenant that its primary does not have.
func (n *Node) adminForked(r *http1.Request, name string) http1.Answer {
	all, err := n.tenants.Forked(name)
	if err != nil {
		return n.answerError(r, err)
	}
	body := append(r.Scratch(), '[')
	for i, f := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendQuoted(append(body, `{"history":`...), []byte(f.History))
		if f.Whole {
			body = append(body, `,"from":null,"to":null,"changes":null`...)
		} else {
			body = strconv.AppendUint(append(body, `,"from":`...), f.From, 10)
			body = strconv.AppendUint(append(body, `,"to":`...), f.To, 10)
			body = strconv.AppendUint(append(body, `,"changes":`...), f.Changes, 10)
		}
		body = append(strconv.AppendInt(append(body, `,"bytes":`...), f.Bytes, 10), '}')
	}
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, ']')}
}

// serveForked is GET and DELETE /_admin/tenants/<t>/forked/<history>: the lines of a branch, or the whole file that it was in.
func (n *Node) serveForked(r *http1.Request, name, history string) http1.Answer {
	if a, done := (edge.Get | edge.Delete).Check(r); done {
		return a
	}
	if r.Method == "DELETE" {
		if err := n.tenants.DeleteForked(name, history); err != nil {
			return n.answerError(r, err)
		}
		n.log.Info().Bytes("request", r.ID).Str("client", n.client(r)).Str("tenant", name).Str("history", history).Msg("a kept branch was deleted")
		return http1.Answer{Status: 204}
	}
	branch, f, err := n.tenants.OpenForked(name, history)
	if err != nil {
		return n.answerError(r, err)
	}
	headers := ndjson
	if f.Whole {
		headers = octets
	}
	if r.Method == "HEAD" || branch.Size() == 0 {
		return http1.Answer{Status: 200, Headers: headers, Length: branch.Size(), Stream: drained(branch)}
	}
	return http1.Answer{Status: 200, Headers: headers, Length: branch.Size(), Stream: func(w *http1.Writer) error {
		_, err := io.CopyBuffer(w, branch, make([]byte, copyBuffer))
		return errors.Join(err, branch.Close())
	}}
}

// drained closes a branch whose content is not sent.
func drained(c io.Closer) func(*http1.Writer) error {
	_ = c.Close() // it was only read
	return func(*http1.Writer) error { return nil }
}
