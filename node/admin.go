package node

import (
	"slices"
	"strconv"
	"strings"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/rest"
	"fenec/node/tenants"

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
		"follow":   {edge.Post, (*Node).adminFollow},
		"promote":  {edge.Post, (*Node).adminPromote},
		"position": {edge.Get, (*Node).adminPosition},
		"lineage":  {edge.Get, (*Node).adminLineage},
		"forked":   {edge.Get, (*Node).adminForked},
	}
	laterAdmin = map[string]string{
		"lease": "a lease", "quota": "a quota", "usage": "the usage of a quota",
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
	if last == "forked" && len(path) == at+2 {
		return n.serveForked(r, name, string(path[at+1]))
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
	count, disk, err := n.tenants.Disk()
	if err != nil {
		return n.answerError(r, err)
	}
	open := 0
	n.tenants.Each(func(t *tenants.Tenant) {
		open++
		n.tenants.Measure(t)
	})
	body := appendNumber(append(r.Scratch(), '{'), "tenants", int64(count))
	body = appendNumber(append(body, ','), "open", int64(open))
	body = appendNumber(append(body, ','), "disk_bytes", disk)
	body = appendNumber(append(body, ','), "memory_bytes", n.budget.tenants.Held())
	body = appendNumber(append(body, ','), "dead_bytes", n.budget.tenants.Dead())
	body = appendNumber(append(body, ','), "compacting", int64(n.tenants.Compacting()))
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: append(body, '}')}
}

// adminTenants is GET /_admin/tenants.
func (n *Node) adminTenants(r *http1.Request, _ string) http1.Answer {
	names, err := n.tenants.Names()
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
	n.tenants.Each(func(t *tenants.Tenant) {
		seq, _ := t.DB.Position()
		text := append([]byte(`{"name":`), doc.AppendQuoted(nil, []byte(t.Name))...)
		text = appendNumber(append(text, ','), "memory_bytes", n.tenants.Measure(t))
		text = appendNumber(append(text, ','), "file_bytes", t.FileBytes())
		text = appendNumber(append(text, ','), "dead_bytes", t.DeadBytes())
		text = strconv.AppendBool(append(text, `,"frozen":`...), t.DB.Frozen())
		text = append(append(append(text, `,"role":"`...), roleOf(t.DB.Follows())...), `","seq":`...)
		text = strconv.AppendUint(text, seq, 10)
		if status, ok := n.tenants.Status(t.Name); ok && status.Known {
			text = strconv.AppendUint(append(text, `,"behind":`...), status.Behind, 10)
		}
		text = append(text, '}')
		lines = append(lines, line{t.Name, text})
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
	if err == nil && r.Method == "PUT" {
		var lineage string
		if lineage, err = n.tenants.Create(name, c); err == nil {
			return answerTenant(r, 201, name, lineage)
		}
	} else if err == nil {
		if err = n.tenants.Delete(name, c); err == nil {
			return http1.Answer{Status: 204}
		}
	}
	return n.answerError(r, err)
}

func answerTenant(r *http1.Request, status int, name, lineage string) http1.Answer {
	body := doc.AppendQuoted(append(r.Scratch(), `{"tenant":`...), []byte(name))
	body = doc.AppendQuoted(append(body, `,"lineage":`...), []byte(lineage))
	return http1.Answer{Status: status, Headers: http1.JSON, Body: append(body, '}')}
}

// freezeRequest is the optional body of a freeze or a thaw.
type freezeRequest struct {
	Token string `json:"token"`
}

func readFreeze(r *http1.Request) (f freezeRequest, err error) {
	if err := readJSON(r, &f, `{"token": "..."}`); err != nil {
		return f, err
	}
	return f, checkToken(f.Token)
}

// readJSON reads the optional body of an admin request, an object of the expected form.
func readJSON(r *http1.Request, into any, expected string) error {
	body, err := r.Body(maxAdminBody)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return fail.New(fail.Invalid, "invalid body: expected an object %s, or no body", expected)
	}
	return nil
}

func checkToken(token string) error {
	if len(token) > tenants.MaxToken {
		return fail.New(fail.Invalid, "the token is longer than %d bytes", tenants.MaxToken)
	}
	return nil
}

// adminFreeze is POST .../freeze.
func (n *Node) adminFreeze(r *http1.Request, name string) http1.Answer {
	return n.changeHold(r, name, true, n.tenants.Freeze)
}

// adminThaw is POST .../thaw.
func (n *Node) adminThaw(r *http1.Request, name string) http1.Answer {
	return n.changeHold(r, name, false, n.tenants.Thaw)
}

func (n *Node) changeHold(r *http1.Request, name string, frozen bool, change func(name, token string, c tenants.Condition) (uint64, error)) http1.Answer {
	c, err := readCondition(r)
	if err == nil {
		err = n.tenants.CheckWritable()
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
	revision := n.tenants.Revision(name)
	a := n.describeHold(r, name)
	a.Headers = withRevision(a.Headers, revision)
	return a
}

func (n *Node) describeHold(r *http1.Request, name string) http1.Answer {
	state, err := n.tenants.State(name)
	if err != nil {
		return n.answerError(r, err)
	}
	body := strconv.AppendBool(append(r.Scratch(), `{"frozen":`...), state.Frozen)
	if state.Token != "" {
		body = doc.AppendQuoted(append(body, `,"token":`...), []byte(state.Token))
	}
	body = strconv.AppendBool(append(body, `,"held":`...), state.Held)
	body = append(strconv.AppendUint(append(body, `,"seq":`...), state.Seq, 10), '}')
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: body}
}
