package node

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/rest"

	"github.com/go-json-experiment/json"
)

// maxAdminBody is the longest body of an admin request that is not an image.
const maxAdminBody = 64 << 10

// adminRoute is one path of /_admin/.
type adminRoute struct {
	methods edge.Methods
	serve   func(n *Node, r *http1.Request, tenant string) http1.Answer
}

// nodeRoutes are below /_admin/, tenantRoutes below /_admin/tenants/<t>; the empty name is the tenant itself.
var (
	nodeRoutes = map[string]adminRoute{
		"stats":   {edge.Get, (*Node).adminStats},
		"tenants": {edge.Get, (*Node).adminTenants},
		"open":    {edge.Get, (*Node).adminOpen},
	}
	tenantRoutes = map[string]adminRoute{
		"":         {edge.Put | edge.Delete, (*Node).adminTenant},
		"freeze":   {edge.Post, (*Node).adminFreeze},
		"thaw":     {edge.Post, (*Node).adminThaw},
		"frozen":   {edge.Get, (*Node).adminFrozen},
		"file":     {edge.Get | edge.Put, (*Node).adminFile},
		"revision": {edge.Post, (*Node).adminRevision},
	}
	laterAdmin = map[string]string{
		"lease": "a lease", "promote": "promoting a copy", "follow": "following another node", "lineage": "lineage",
		"position": "the position of a copy", "quota": "a quota", "usage": "the usage of a quota",
	}
)

// serveAdmin answers a request below /_admin, which does not exist without an admin token.
func (n *Node) serveAdmin(r *http1.Request, path [][]byte) http1.Answer {
	if !n.adminToken.Set() {
		return errNoRoute().answer()
	}
	if !n.mayManage(r) {
		return n.unauthorized(r)
	}
	name := ""
	routes, at := nodeRoutes, 1
	if len(path) > 2 && string(path[1]) == "tenants" {
		routes, at = tenantRoutes, 3
		if name = string(path[2]); !http1.ValidTenant(name) {
			return http1.ErrorAnswer(400, "a tenant's name is 1 to 64 of a-z, 0-9, _ and -, got "+rest.Quoted(path[2]))
		}
	}
	last := ""
	if len(path) > at {
		last = string(path[at])
	}
	if what, ok := laterAdmin[last]; ok {
		return n.answerError(r, later(what))
	}
	one, ok := routes[last]
	if !ok || len(path) > at+1 {
		return errNoRoute().answer()
	}
	if a, done := one.methods.Check(r); done {
		return a
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		event := n.log.Info().Bytes("request", r.ID).Str("client", n.client(r)).Str("method", r.Method).Str("tenant", name)
		if last != "" {
			event.Str("what", last)
		}
		event.Msg("an admin request")
	}
	return one.serve(n, r, name)
}

// adminStats is GET /_admin/stats.
func (n *Node) adminStats(r *http1.Request, _ string) http1.Answer {
	names, err := n.fs.ReadDir(n.dir)
	if err != nil {
		return n.answerError(r, storageError("the directory of the tenants cannot be read", err))
	}
	tenants, disk := 0, int64(0)
	for _, name := range names {
		if _, ok := tenantOf(name); ok {
			tenants++
		}
		if info, err := n.fs.Stat(n.dir + string(os.PathSeparator) + name); err == nil && !info.Dir {
			disk += info.Size // a file that was deleted meanwhile takes no space
		}
	}
	open := 0
	n.eachOpen(func(t *tenant) {
		open++
		n.measure(t)
	})
	body := appendNumber(append(r.Scratch(), '{'), "tenants", int64(tenants))
	body = appendNumber(append(body, ','), "open", int64(open))
	body = appendNumber(append(body, ','), "disk_bytes", disk)
	body = appendNumber(append(body, ','), "memory_bytes", n.budget.held())
	body = appendNumber(append(body, ','), "dead_bytes", n.budget.dead.Load())
	running, _ := n.compactor.counts()
	body = appendNumber(append(body, ','), "compacting", int64(running))
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, '}')}
}

// tenantOf returns the tenant that a file of the directory belongs to. ok is false for other files.
func tenantOf(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, fileSuffix)
	return name, ok && http1.ValidTenant(name)
}

// tenantNames returns the tenants on disk, damaged ones included, sorted.
func (n *Node) tenantNames() ([]string, error) {
	files, err := n.fs.ReadDir(n.dir)
	if err != nil {
		return nil, storageError("the directory of the tenants cannot be read", err)
	}
	names := files[:0]
	for _, file := range files {
		if name, ok := tenantOf(file); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// countTenants returns how many tenants there are on disk, for a metric: 0 if the directory cannot be read.
func (n *Node) countTenants() int {
	if n.single != nil {
		return 1
	}
	names, err := n.tenantNames()
	if err != nil {
		return 0
	}
	return len(names)
}

// adminTenants is GET /_admin/tenants.
func (n *Node) adminTenants(r *http1.Request, _ string) http1.Answer {
	names, err := n.tenantNames()
	if err != nil {
		return n.answerError(r, err)
	}
	body := append(r.Scratch(), '[')
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendQuoted(body, []byte(name))
	}
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, ']')}
}

// adminOpen is GET /_admin/open: the open tenants, sorted.
func (n *Node) adminOpen(r *http1.Request, _ string) http1.Answer {
	type line struct {
		name string
		text []byte
	}
	var lines []line
	n.eachOpen(func(t *tenant) {
		seq, _ := t.db.Position()
		text := append([]byte(`{"name":`), doc.AppendQuoted(nil, []byte(t.name))...)
		text = appendNumber(append(text, ','), "memory_bytes", n.measure(t))
		text = appendNumber(append(text, ','), "file_bytes", t.file.Load())
		text = appendNumber(append(text, ','), "dead_bytes", t.dead.Load())
		text = strconv.AppendBool(append(text, `,"frozen":`...), t.db.Frozen())
		text = append(text, `,"role":"primary","seq":`...)
		text = append(strconv.AppendUint(text, seq, 10), '}')
		lines = append(lines, line{t.name, text})
	})
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	body := append(r.Scratch(), '[')
	for i, l := range lines {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, l.text...)
	}
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, ']')}
}

// adminTenant is PUT and DELETE /_admin/tenants/<t>.
func (n *Node) adminTenant(r *http1.Request, name string) http1.Answer {
	c, err := readCondition(r)
	if err == nil {
		err = n.checkWritable()
	}
	if err == nil && r.Method == "PUT" {
		if err = n.create(name, c); err == nil {
			return answerTenant(r, 201, name)
		}
	} else if err == nil {
		if err = n.delete(name, c); err == nil {
			return http1.Answer{Status: 204}
		}
	}
	return n.answerError(r, err)
}

func answerTenant(r *http1.Request, status int, name string) http1.Answer {
	body := append(r.Scratch(), `{"tenant":`...)
	body = append(doc.AppendQuoted(body, []byte(name)), '}')
	return http1.Answer{Status: status, Headers: http1.JSON, Body: body}
}

func (n *Node) checkWritable() error {
	if n.config.ReadOnly {
		return fail.New(fail.ReadOnly, "the node is read-only")
	}
	return nil
}

// freezeRequest is the optional body of a freeze or a thaw.
type freezeRequest struct {
	Token string `json:"token"`
}

func readFreeze(r *http1.Request) (f freezeRequest, err error) {
	body, err := r.Body(maxAdminBody)
	if err != nil || len(body) == 0 {
		return f, err
	}
	if err := json.Unmarshal(body, &f, json.RejectUnknownMembers(true)); err != nil {
		return f, fail.New(fail.Invalid, `invalid body: expected an object {"token": "..."}, or no body`)
	}
	return f, checkToken(f.Token)
}

func checkToken(token string) error {
	if len(token) > maxHold/8 {
		return fail.New(fail.Invalid, "the token is longer than %d bytes", maxHold/8)
	}
	return nil
}

// adminFreeze is POST .../freeze.
func (n *Node) adminFreeze(r *http1.Request, name string) http1.Answer {
	return n.changeHold(r, name, true, n.freeze)
}

// adminThaw is POST .../thaw.
func (n *Node) adminThaw(r *http1.Request, name string) http1.Answer {
	return n.changeHold(r, name, false, n.thaw)
}

func (n *Node) changeHold(r *http1.Request, name string, frozen bool, change func(name, token string, c condition) (uint64, error)) http1.Answer {
	c, err := readCondition(r)
	if err == nil {
		err = n.checkWritable()
	}
	var f freezeRequest
	if err == nil {
		f, err = readFreeze(r)
	}
	var seq uint64
	if err == nil {
		seq, err = change(name, f.Token, c)
	}
	if err != nil {
		return n.answerError(r, err)
	}
	body := strconv.AppendBool(append(r.Scratch(), `{"frozen":`...), frozen)
	body = append(strconv.AppendUint(append(body, `,"seq":`...), seq, 10), '}')
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: body}
}

// adminFrozen is GET .../frozen: whether the tenant refuses writes, under which token, whether it is an image that is not in
// service yet, and its change; and in its head, also for a name without a tenant and for a damaged tenant, the revision of
// that state.
func (n *Node) adminFrozen(r *http1.Request, name string) http1.Answer {
	revision := n.revisions.of(name)
	a := n.describeHold(r, name)
	a.Headers = withRevision(a.Headers, revision)
	return a
}

func (n *Node) describeHold(r *http1.Request, name string) http1.Answer {
	t, err := n.acquire(name)
	if err != nil {
		return n.answerError(r, err)
	}
	defer n.release(t)
	h := t.hold.Load()
	seq, _ := t.db.Position()
	body := strconv.AppendBool(append(r.Scratch(), `{"frozen":`...), h != nil)
	if h != nil && h.Token != "" {
		body = doc.AppendQuoted(append(body, `,"token":`...), []byte(h.Token))
	}
	body = strconv.AppendBool(append(body, `,"held":`...), h != nil && h.Held)
	body = append(strconv.AppendUint(append(body, `,"seq":`...), seq, 10), '}')
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: body}
}
