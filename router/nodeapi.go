package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"fenec/internal/http1"

	"github.com/go-json-experiment/json"
)

const (
	// statsTimeout bounds the question what a node holds, which a placement and a listing wait for.
	statsTimeout = 5 * time.Second
	// installTimeout is how long a node may take over an image once it has all of it: it replays and syncs it first.
	installTimeout = 10 * time.Minute
	// maxAdminAnswer bounds what a node answers under /_admin/, images apart.
	maxAdminAnswer = 1 << 20
)

// nodeError is a node that did not do what it was asked to.
type nodeError struct {
	node    string
	status  int    // what it answered, 0 where it gave no answer
	message string // a sentence without the node's name
}

func (e *nodeError) Error() string { return "node " + e.node + " " + e.message }

// nodeStats is what a node says of itself.
type nodeStats struct {
	Tenants   int64 `json:"tenants"`
	DiskBytes int64 `json:"disk_bytes"`
}

// nodeAPI speaks to one node's /_admin/ routes. Each of them may be asked twice without harm, as a change names the
// revision that it ends: so a request whose kept connection turns out to be dead is sent again on a fresh one.
type nodeAPI struct {
	name string
	link *link
}

func (n *node) api() nodeAPI { return nodeAPI{n.name, n.link.Load()} }

func (a nodeAPI) stats(ctx context.Context) (nodeStats, error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	var stats struct {
		Tenants   *int64 `json:"tenants"`
		DiskBytes *int64 `json:"disk_bytes"`
	}
	err := a.ask(ctx, "GET", "/_admin/stats", "", nil, &stats, 200)
	if refused := (*nodeError)(nil); errors.As(err, &refused) && refused.status == 404 {
		return nodeStats{}, a.fails(404, "has no /_admin/: a node that serves a directory has one once it is given an --admin-token")
	}
	if err != nil {
		return nodeStats{}, err
	}
	if stats.Tenants == nil || stats.DiskBytes == nil {
		return nodeStats{}, a.fails(200, "answers /_admin/stats with something else than a node's numbers")
	}
	return nodeStats{*stats.Tenants, *stats.DiskBytes}, nil
}

// reply is a node's answer.
type reply struct {
	status   int
	body     []byte
	revision string // that it names, empty for none
}

// ask calls a route and reads its answer, which must have the status wanted. fields are lines of the request's head.
func (a nodeAPI) ask(ctx context.Context, method, path, fields string, body, into any, want int) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("a request to node %s cannot be written: %w", a.name, err)
		}
	}
	r, err := a.call(ctx, method, path, fields, text)
	if err != nil {
		return err
	}
	if r.status != want {
		return a.refuses(r, method+" "+path)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return a.fails(r.status, "answers "+path+" in a form that cannot be read")
	}
	return nil
}

func (a nodeAPI) fails(status int, message string) *nodeError {
	return &nodeError{node: a.name, status: status, message: message}
}

// refuses is the error of an answer with the wrong status, with what the node says of it.
func (a nodeAPI) refuses(r reply, what string) *nodeError {
	var said struct {
		Error string `json:"error"`
	}
	text := strconv.Itoa(r.status)
	if json.Unmarshal(r.body, &said) == nil && said.Error != "" {
		text += ": " + said.Error
	}
	if r.status == 401 {
		return a.fails(r.status, "does not take the admin token ("+text+")")
	}
	return a.fails(r.status, "refuses to "+what+" ("+text+")")
}

// call asks once, and once more where a kept connection turned out to be dead.
func (a nodeAPI) call(ctx context.Context, method, path, fields string, body []byte) (r reply, err error) {
	if w := a.link.pool.take(); w != nil {
		if r, err = a.over(ctx, w, method, path, fields, body); err == nil || tooLate(err) || ctx.Err() != nil {
			return r, a.unanswered(err)
		}
	}
	w, err := a.link.pool.dial(ctx)
	if err == nil {
		r, err = a.over(ctx, w, method, path, fields, body)
	}
	return r, a.unanswered(err)
}

// tooLate reports whether an error is about a node's silence.
func tooLate(err error) bool {
	var bad *http1.Error
	return errors.As(err, &bad) && bad.Status == 504
}

func (a nodeAPI) unanswered(err error) error {
	if err == nil {
		return nil
	}
	return &nodeError{node: a.name, message: "cannot be reached: " + plainly(err)}
}

// plainly is a network error without what the operator knows: the call and the addresses.
func plainly(err error) string {
	var op *net.OpError
	var call *os.SyscallError
	switch {
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.Is(err, io.EOF):
		return "it closed the connection"
	}
	return err.Error()
}

// over asks over one connection, which it gives back or closes.
func (a nodeAPI) over(ctx context.Context, w *wire, method, path, fields string, body []byte) (r reply, err error) {
	stop := context.AfterFunc(ctx, w.close)
	defer func() {
		if stop() && err == nil {
			a.link.pool.give(w)
		} else {
			w.close()
		}
	}()
	w.serve(nil, nil, time.Time{}) // ctx ends it
	w.out = append(a.head(w.out[:0], method, path, fields, int64(len(body))), body...)
	if err := w.Send(w.out, nil); err != nil {
		return r, err
	}
	return a.answer(w, method, a.link.pool.transport.silence)
}

// head appends the head of a request to the node, with the lines of fields; a negative length is a body in chunks.
func (a nodeAPI) head(dst []byte, method, path, fields string, length int64) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, path...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, a.link.host...)
	dst = append(dst, "\r\nAuthorization: Bearer "...)
	dst = append(dst, a.link.token...)
	switch {
	case length < 0:
		dst = append(dst, "\r\nTransfer-Encoding: chunked"...)
	case length > 0 || method != "GET":
		dst = append(dst, "\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, length, 10)
	}
	dst = append(append(dst, "\r\n"...), fields...)
	return append(dst, "\r\n"...)
}

// answer reads a whole answer that is not large.
func (a nodeAPI) answer(w *wire, method string, patience time.Duration) (r reply, err error) {
	rep, err := w.ReadHead(method, time.Now().Add(patience))
	if err != nil {
		return r, err
	}
	r.status, r.revision = rep.Status, string(rep.Get("Fenec-Revision"))
	r.body, err = io.ReadAll(io.LimitReader(w.Body(patience), maxAdminAnswer+1))
	if err == nil && len(r.body) > maxAdminAnswer {
		err = fmt.Errorf("its answer is over %d bytes", maxAdminAnswer)
	}
	return r, err
}
