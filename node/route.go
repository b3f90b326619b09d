package node

import (
	"fenec/engine/fail"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/node/tenants"
)

// maxSegments is how many segments the longest route has, and one more.
const maxSegments = 6

// handler is the Node as a handler of the connection loop.
type handler struct{ node *Node }

func (h handler) Serve(r *http1.Request) http1.Answer { return h.node.Handle(r) }

// Handle answers one request.
func (n *Node) Handle(r *http1.Request) http1.Answer {
	a := n.handle(r)
	n.metrics.answered(a.Status)
	return a
}

func (n *Node) handle(r *http1.Request) http1.Answer {
	if n.single == nil {
		tenant, rest, ok, err := http1.SplitTenant(r.Path)
		if err != nil {
			return err.Answer()
		}
		if ok {
			return n.serveTenant(r, tenant, rest)
		}
	}
	if string(r.Target) == "*" { // OPTIONS of the node as a whole
		return edge.AllMethods.Options()
	}
	path := edge.SplitPath(make([][]byte, 0, maxSegments), r.Path)
	switch {
	case len(path) > 0 && string(path[0]) == "_health":
		return n.serveNodeWide(r, path, n.health)
	case len(path) > 0 && string(path[0]) == "_metrics":
		return n.serveNodeWide(r, path, n.exposeMetrics)
	case n.single != nil:
		return n.serveTenant(r, nil, r.Path)
	case len(path) > 0 && string(path[0]) == "_admin":
		return n.serveAdmin(r, path)
	case len(path) > 0 && string(path[0]) == "_replication":
		return n.serveNodeReplication(r, path)
	}
	return http1.ErrorAnswer(404, "no such route: tenants are served under /t/<tenant>/")
}

func (n *Node) serveNodeWide(r *http1.Request, path [][]byte, serve func(*http1.Request) http1.Answer) http1.Answer {
	if len(path) > 1 {
		return errNoRoute().answer()
	}
	if a, done := edge.Get.Check(r); done {
		return a
	}
	return serve(r)
}

// route is one path of the tenant surface.
type route struct {
	methods edge.Methods
	serve   func(*call) http1.Answer
}

var (
	routeRoot        = route{edge.Get, (*call).root}
	routeCollections = route{edge.Get, (*call).collections}
	routeQuery       = route{edge.Post, (*call).query}
	routeBatch       = route{edge.Post, (*call).batch}
	routeSchema      = route{edge.Get, (*call).schema}
	routeChanges     = route{edge.Get, (*call).changes}
	routeConsumers   = route{edge.Get, (*call).consumers}
	routeConsumer    = route{edge.Post | edge.Delete, (*call).consumer}
	routeStats       = route{edge.Get | edge.Delete, (*call).statementStats}
	routeCollection  = route{edge.Get | edge.Post | edge.Patch | edge.Delete, (*call).collection}
	routeAll         = route{edge.Patch | edge.Delete, (*call).collection}
	routeNear        = route{edge.Post, (*call).near}
	routeLive        = route{edge.Get, (*call).live}
)

// laterPaths are the paths of a tenant's API that this version does not have.
var laterPaths = map[string]string{
	"_whoami": "/_whoami",
}

func later(what string) error {
	return fail.New(fail.Unsupported, "%s comes with a later version", what)
}

// noRoute is the error for an unknown path.
type noRoute struct{}

func errNoRoute() noRoute { return noRoute{} }

func (noRoute) answer() http1.Answer { return http1.ErrorAnswer(404, "no such route") }

// findRoute returns the route of a path below a tenant. The name in the path, of a collection or a consumer, is still
// escaped.
func findRoute(path [][]byte) (where *route, name []byte, err error) {
	if len(path) == 0 {
		return &routeRoot, nil, nil
	}
	first := path[0]
	switch string(first) {
	case "collections":
		where = &routeCollections
	case "query":
		where = &routeQuery
	case "batch":
		where = &routeBatch
	case "_schema":
		where = &routeSchema
	}
	if where != nil {
		if len(path) > 1 {
			return nil, nil, nil
		}
		return where, nil, nil
	}
	if first[0] == '_' {
		switch {
		case string(first) == "_stats" && len(path) == 2 && string(path[1]) == "statements":
			return &routeStats, nil, nil
		case string(first) == "_changes" && len(path) == 1:
			return &routeChanges, nil, nil
		case string(first) == "_changes" && len(path) <= 3 && string(path[1]) == "consumers":
			if len(path) == 2 {
				return &routeConsumers, nil, nil
			}
			return &routeConsumer, path[2], nil
		}
		if what, ok := laterPaths[string(first)]; ok {
			return nil, nil, later(what)
		}
		return nil, nil, nil
	}
	switch {
	case len(path) == 1:
		return &routeCollection, first, nil
	case len(path) > 2:
		return nil, nil, nil
	}
	switch string(path[1]) {
	case "all":
		return &routeAll, first, nil
	case "near":
		return &routeNear, first, nil
	case "changes":
		return &routeLive, first, nil
	}
	return nil, nil, nil
}

// serveTenant answers a request below a tenant.
func (n *Node) serveTenant(r *http1.Request, name, below []byte) http1.Answer {
	path := edge.SplitPath(make([][]byte, 0, maxSegments), below)
	if len(path) > 0 && string(path[0]) == "_replication" && n.single == nil {
		return n.serveReplication(r, string(name), path)
	}
	if r.Method != "OPTIONS" && !n.mayRead(r) {
		return n.unauthorized(r)
	}
	where, named, err := findRoute(path)
	fits := err == nil && where != nil && where.methods&edge.MethodOf(r.Method) != 0
	var asked position
	if fits {
		asked, err = readPosition(r.Headers)
	}
	if !fits || err != nil {
		return n.misfit(r, name, where, err)
	}
	c := newCall(n, r)
	defer c.free()
	c.asked, c.scope = asked, scopeOf(&asked)
	if err := c.enter(name, where, named); err != nil {
		return n.answerError(r, err)
	}
	defer n.tenants.Release(c.tenant)
	if err := c.begin(where); err != nil {
		return n.answerError(r, err)
	}
	return c.finish(where.serve(c))
}

// misfit answers OPTIONS, and a request that would be refused whatever its tenant holds. An unknown tenant is reported
// first, as at a router.
func (n *Node) misfit(r *http1.Request, name []byte, where *route, err error) http1.Answer {
	if n.single == nil && n.tenants.Find(name) == nil && n.mayRead(r) {
		if absent := n.tenants.CheckExists(string(name)); absent != nil {
			err = absent
		}
	}
	switch {
	case err != nil:
		return n.answerError(r, err)
	case where == nil:
		return errNoRoute().answer()
	}
	a, _ := where.methods.Check(r)
	return a
}

// enter acquires the tenant of a request. It reads the body first, so that a client that sends it slowly does not block a
// close or delete of the tenant, unless the head alone is enough to refuse the request.
func (c *call) enter(name []byte, where *route, named []byte) error {
	n, r, t := c.node, c.request, c.node.single
	if t == nil {
		if t = n.tenants.Find(name); t == nil {
			if err := n.tenants.CheckExists(string(name)); err != nil {
				return err
			}
		}
	}
	if err := c.readHead(where, named); err != nil {
		return err
	}
	if r.HasBody() {
		if !r.Arrived() {
			if err := c.refusal(name, where, t); err != nil {
				return err
			}
		}
		if _, err := r.Body(http1.MaxBody); err != nil {
			return err
		}
	}
	var err error
	switch {
	case t != nil && t.Enter():
		c.tenant = t
	case n.single != nil:
		err = tenants.ErrStopping
	default:
		c.tenant, err = n.tenants.Acquire(string(name))
	}
	return err
}

// readHead reads the headers of a request.
func (c *call) readHead(where *route, named []byte) (err error) {
	if edge.MethodOf(c.request.Method) != edge.Get {
		err = c.takeKey()
	}
	switch {
	case err != nil || named == nil:
	case where == &routeConsumer:
		c.statement.Name, err = c.statement.Unescape(named, false)
	default:
		err = c.statement.NameCollection(named)
		c.all = where == &routeAll
	}
	if err == nil && c.writes(where) {
		err = c.scope.MayWrite()
	}
	return err
}

// writes reports whether a request writes by its head. The route checks whether a statement does.
func (c *call) writes(where *route) bool {
	return edge.MethodOf(c.request.Method) != edge.Get && where != &routeNear && where != &routeQuery && where != &routeBatch
}

// refusal returns why a request is refused whatever its body is; t is nil if its tenant is not open. A request with a key may
// have run before, and then has its answer.
func (c *call) refusal(name []byte, where *route, t *tenants.Tenant) error {
	n, writes := c.node, c.writes(where) && !c.keyed
	switch {
	case n.stopping.Load():
		return tenants.ErrStopping
	case writes && n.config.ReadOnly:
		return fail.New(fail.ReadOnly, "the node only reads, and the request writes")
	case t == nil:
		return n.tenants.Refusal(string(name))
	case !writes || !t.Enter():
		return nil
	}
	defer t.Leave()
	return t.DB.Writable()
}

// begin holds a request that reads until its position is reached.
func (c *call) begin(where *route) error {
	if where == &routeQuery || where == &routeBatch || c.writes(where) {
		return nil
	}
	return c.await()
}
