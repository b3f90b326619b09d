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
	// statsTimeout bounds a request for a node's statistics, which a placement and a listing wait for.
	statsTimeout = 5 * time.Second
	// installTimeout is how long a node may take to install an image once it has all of it: it replays and syncs it.
	installTimeout = 10 * time.Minute
	// maxAdminAnswer bounds a node's answers under /_admin/, except images.
	maxAdminAnswer = 1 << 20
	// maxTenantList bounds a node's list of its tenants.
	maxTenantList = 64 << 20
)

// nodeError is the error of a request that a node refused or did not answer.
type nodeError struct {
	node    string
	status  int    // of the answer, 0 without one
	message string // a sentence without the node's name
}

func (e *nodeError) Error() string { return "node " + e.node + " " + e.message }

// nodeStats are a node's statistics.
type nodeStats struct {
	Tenants   int64 `json:"tenants"`
	DiskBytes int64 `json:"disk_bytes"`
}

// nodeAPI is a client of one node's /_admin/ routes. Each request may be repeated, because a change names the revision that
// it ends. So a request whose idle connection turns out to be dead is sent again on a new one.
type nodeAPI struct {
	name string
	link *link
	most int64 // the longest answer, maxAdminAnswer if zero
}

func (n *node) api() nodeAPI { return nodeAPI{name: n.name, link: n.link.Load()} }

func (a nodeAPI) stats(ctx context.Context) (nodeStats, error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	var stats struct {
		Tenants   *int64 `json:"tenants"`
		DiskBytes *int64 `json:"disk_bytes"`
	}
	err := a.ask(ctx, "GET", "/_admin/stats", "", nil, &stats, 200)
	if refused := (*nodeError)(nil); errors.As(err, &refused) && refused.status == 404 {
		return nodeStats{}, a.fails(404, "has no /_admin/: start the node over a directory and with --admin-token")
	}
	if err != nil {
		return nodeStats{}, err
	}
	if stats.Tenants == nil || stats.DiskBytes == nil {
		return nodeStats{}, a.fails(200, "answers /_admin/stats without a node's statistics")
	}
	return nodeStats{*stats.Tenants, *stats.DiskBytes}, nil
}

// tenants returns the names of the tenants of which the node holds a file.
func (a nodeAPI) tenants(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	a.most = maxTenantList
	return names, a.ask(ctx, "GET", "/_admin/tenants", "", nil, &names, 200)
}

// openTenant is an open tenant of a node.
type openTenant struct {
	Name   string  `json:"name"`
	Role   string  `json:"role"`
	Seq    uint64  `json:"seq"`
	Behind *uint64 `json:"behind"` // of a replica: changes on the primary's disk that it lacks, nil if that is not known
}

// open returns the node's open tenants by name. Its replicas are open.
func (a nodeAPI) open(ctx context.Context) (map[string]openTenant, error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	a.most = maxTenantList
	var list []openTenant
	if err := a.ask(ctx, "GET", "/_admin/open", "", nil, &list, 200); err != nil {
		return nil, err
	}
	tenants := make(map[string]openTenant, len(list))
	for _, t := range list {
		tenants[t.Name] = t
	}
	return tenants, nil
}

// reply is a node's answer.
type reply struct {
	status   int
	body     []byte
	revision string // of Fenec-Revision, empty without one
}

// ask sends a request and decodes its answer, which must have the status want. fields are header lines of the request.
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
		return a.fails(r.status, "answers "+path+" with something that cannot be read")
	}
	return nil
}

func (a nodeAPI) fails(status int, message string) *nodeError {
	return &nodeError{node: a.name, status: status, message: message}
}

// refuses returns the error for an answer with the wrong status. It includes the node's own error sentence.
func (a nodeAPI) refuses(r reply, what string) *nodeError {
	var said struct {
		Error string `json:"error"`
	}
	text := strconv.Itoa(r.status)
	if json.Unmarshal(r.body, &said) == nil && said.Error != "" {
		text += ": " + said.Error
	}
	if r.status == 401 {
		return a.fails(r.status, "does not accept the admin token ("+text+")")
	}
	return a.fails(r.status, "refuses to "+what+" ("+text+")")
}

// call sends a request, and sends it once more if an idle connection turned out to be dead.
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

// tooLate reports whether an error is a timeout of the node.
func tooLate(err error) bool {
	var bad *http1.Error
	return errors.As(err, &bad) && bad.Status == 504
}

func (a nodeAPI) unanswered(err error) error {
	if err == nil {
		return nil
	}
	a.link.lost()
	return &nodeError{node: a.name, message: "cannot be reached: " + plainly(err)}
}

// plainly returns the text of a network error without the system call and the addresses, which the operator knows.
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

// over sends a request over one connection, which it then returns to the pool or closes.
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

// head appends the head of a request to the node, with the lines of fields. A negative length means a chunked body.
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

// answer reads a whole answer of at most maxAdminAnswer bytes.
func (a nodeAPI) answer(w *wire, method string, patience time.Duration) (r reply, err error) {
	rep, err := w.ReadHead(method, time.Now().Add(patience))
	if err != nil {
		return r, err
	}
	a.link.answered()
	r.status, r.revision = rep.Status, string(rep.Get("Fenec-Revision"))
	most := max(a.most, maxAdminAnswer)
	r.body, err = io.ReadAll(io.LimitReader(w.Body(patience), most+1))
	if err == nil && int64(len(r.body)) > most {
		err = fmt.Errorf("its answer is over %d bytes", most)
	}
	return r, err
}
