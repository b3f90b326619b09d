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
	doubt   bool   // it gave no answer, and may have done what it was asked to all the same
	message string // a sentence without the node's name
}

func (e *nodeError) Error() string { return "node " + e.node + " " + e.message }

// nodeStats is what a node says of itself.
type nodeStats struct {
	Tenants   int64 `json:"tenants"`
	DiskBytes int64 `json:"disk_bytes"`
}

// copyState is how a tenant's copy on a node stands.
type copyState struct {
	Frozen bool   `json:"frozen"`
	Token  string `json:"token"`
	Held   bool   `json:"held"`
	Seq    uint64 `json:"seq"`
}

// nodeAPI speaks to one node's /_admin/ routes. Each of them may be asked twice without harm, so one whose kept
// connection turns out to be dead is asked again on a fresh one.
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
	err := a.ask(ctx, "GET", "/_admin/stats", nil, &stats, 200)
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

// create makes an empty tenant. taken tells that there is a file of that name already.
func (a nodeAPI) create(ctx context.Context, tenant string) (taken bool, err error) {
	status, body, err := a.call(ctx, "PUT", "/_admin/tenants/"+tenant, nil)
	switch {
	case err != nil:
		return false, err
	case status == 201:
		return false, nil
	case status == 409:
		return true, nil
	}
	return false, a.refuses(status, body, "make the tenant")
}

// remove deletes a tenant's file; one that is not there is as good.
func (a nodeAPI) remove(ctx context.Context, tenant string) error {
	status, body, err := a.call(ctx, "DELETE", "/_admin/tenants/"+tenant, nil)
	if err != nil || status == 204 || status == 404 {
		return err
	}
	return a.refuses(status, body, "delete the tenant")
}

// freeze stops the tenant's writes under a token and returns the change they stopped at.
func (a nodeAPI) freeze(ctx context.Context, tenant, token string) (seq uint64, err error) {
	var frozen copyState
	err = a.ask(ctx, "POST", "/_admin/tenants/"+tenant+"/freeze", map[string]string{"token": token}, &frozen, 200)
	if err == nil && !frozen.Frozen {
		err = a.fails(200, "did not freeze the tenant")
	}
	return frozen.Seq, err
}

// thaw lets the tenant take writes again: one frozen under the token, or with no token one that is held.
func (a nodeAPI) thaw(ctx context.Context, tenant, token string) error {
	body := map[string]string{}
	if token != "" {
		body["token"] = token
	}
	return a.ask(ctx, "POST", "/_admin/tenants/"+tenant+"/thaw", body, nil, 200)
}

// state tells how the tenant's copy stands. exists is false where the node has none.
func (a nodeAPI) state(ctx context.Context, tenant string) (c copyState, exists bool, err error) {
	status, body, err := a.call(ctx, "GET", "/_admin/tenants/"+tenant+"/frozen", nil)
	switch {
	case err != nil:
		return c, false, err
	case status == 404:
		return c, false, nil
	case status != 200:
		return c, false, a.refuses(status, body, "say how the tenant stands")
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, false, a.fails(status, "says how the tenant stands in a form that cannot be read")
	}
	return c, true, nil
}

// ask calls a route and reads its answer, which must have the status wanted.
func (a nodeAPI) ask(ctx context.Context, method, path string, body, into any, want int) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("a request to node %s cannot be written: %w", a.name, err)
		}
	}
	status, answer, err := a.call(ctx, method, path, text)
	if err != nil {
		return err
	}
	if status != want {
		return a.refuses(status, answer, method+" "+path)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return a.fails(status, "answers "+path+" in a form that cannot be read")
	}
	return nil
}

func (a nodeAPI) fails(status int, message string) *nodeError {
	return &nodeError{node: a.name, status: status, message: message}
}

// refuses is the error of an answer with the wrong status, with what the node says of it.
func (a nodeAPI) refuses(status int, body []byte, what string) *nodeError {
	var said struct {
		Error string `json:"error"`
	}
	text := strconv.Itoa(status)
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		text += ": " + said.Error
	}
	if status == 401 {
		return a.fails(status, "does not take the admin token ("+text+")")
	}
	return a.fails(status, "refuses to "+what+" ("+text+")")
}

// call asks once, and once more where a kept connection turned out to be dead.
func (a nodeAPI) call(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	sent := false
	if w := a.link.pool.take(); w != nil {
		sent = true
		if status, answer, err = a.over(ctx, w, method, path, body); err == nil || tooLate(err) || ctx.Err() != nil {
			return status, answer, a.unanswered(err, sent)
		}
	}
	w, err := a.link.pool.dial(ctx)
	if err == nil {
		sent = true
		status, answer, err = a.over(ctx, w, method, path, body)
	}
	return status, answer, a.unanswered(err, sent)
}

// tooLate reports whether an error is about a node's silence.
func tooLate(err error) bool {
	var bad *http1.Error
	return errors.As(err, &bad) && bad.Status == 504
}

func (a nodeAPI) unanswered(err error, sent bool) error {
	if err == nil {
		return nil
	}
	return &nodeError{node: a.name, doubt: sent, message: "cannot be reached: " + plainly(err)}
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
func (a nodeAPI) over(ctx context.Context, w *wire, method, path string, body []byte) (status int, answer []byte, err error) {
	stop := context.AfterFunc(ctx, w.close)
	defer func() {
		if stop() && err == nil {
			a.link.pool.give(w)
		} else {
			w.close()
		}
	}()
	w.serve(nil, nil, time.Time{}) // ctx ends it
	w.out = append(a.head(w.out[:0], method, path, int64(len(body))), body...)
	if err := w.Send(w.out, nil); err != nil {
		return 0, nil, err
	}
	return a.answer(w, method, a.link.pool.transport.silence)
}

// head appends the head of a request to the node; a negative length is a body in chunks.
func (a nodeAPI) head(dst []byte, method, path string, length int64) []byte {
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
	return append(dst, "\r\n\r\n"...)
}

// answer reads a whole answer that is not large.
func (a nodeAPI) answer(w *wire, method string, patience time.Duration) (status int, body []byte, err error) {
	rep, err := w.ReadHead(method, time.Now().Add(patience))
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(w.Body(patience), maxAdminAnswer+1))
	if err == nil && len(body) > maxAdminAnswer {
		err = fmt.Errorf("its answer is over %d bytes", maxAdminAnswer)
	}
	return rep.Status, body, err
}
