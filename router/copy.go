package router

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"fenec/router/directory"

	"github.com/go-json-experiment/json"
)

// copyState is the state of a tenant's copy on a node at a revision. Each change that the router asks for names that
// revision, and the node refuses it once anything else has changed the copy: see DESIGN.md.
type copyState struct {
	Frozen bool   `json:"frozen"` // refuses writes
	Token  string `json:"token"`  // of the freeze, or of the move that installed the copy
	Held   bool   `json:"held"`   // an image that is not in service yet
	Seq    uint64 `json:"seq"`

	exists     bool
	unreadable bool // the node has a file that it cannot open; the fields above are unknown
	revision   string
	place      position // of a copy whose role was asked for and that can be read
}

// empty reports whether the copy accepts writes and never got one.
func (s copyState) empty() bool { return s.exists && !s.unreadable && !s.Frozen && s.Seq == 0 }

// copyOn is a tenant's copy on a node. The copy need not exist.
type copyOn struct {
	api    nodeAPI
	tenant string
	roles  bool // state asks for the role too
}

func (n *node) copyOf(tenant string) copyOn { return copyOn{api: n.api(), tenant: tenant} }

// copyAt is copyOf for a node that the tenant's row names, which is recorded as long as the row does.
func (rt *Router) copyAt(node, tenant string) copyOn {
	_, n := rt.dir.Node(node)
	return n.copyOf(tenant)
}

// isLeftover reports whether a copy is the leftover l: it carries the token of the move that superseded or made it, or was
// never written to, or is of the lineage of a tenant that was deleted. A frozen copy is not enough: an operator may have frozen
// it. A replica that has never reached its primary has a lineage of its own.
func isLeftover(l directory.Leftover, s copyState) bool {
	switch {
	case l.Kind == directory.Dead:
		return s.exists && l.Token != "" && (s.place.Lineage == l.Token || s.replica() && s.Seq == 0)
	case l.Kind != directory.Copied:
		return false
	case l.Token == "":
		return s.empty()
	}
	return s.exists && s.Frozen && s.Token == l.Token
}

// decisions bounds how often a change is decided again because something else changed the copy first.
const decisions = 6

// errUnsettled is the error for a copy that others changed before each attempt.
func (c copyOn) errUnsettled() error {
	return &refusal{409, fmt.Sprintf("tenant %s on node %s is being changed by others, send the request again", c.tenant, c.api.name)}
}

// until reads the copy's state and calls step to decide on a request, until step returns no request: then the copy is in
// the wanted state. The request names the revision of the state that step was given, so the node applies it to that state
// or refuses it; after a refusal step decides again. An error of step or of its request ends the loop. The node may still
// carry out a request that was not answered, until the copy is fenced.
func (c copyOn) until(ctx context.Context, step func(s copyState) (do func() error, err error)) (copyState, error) {
	for range decisions {
		s, err := c.state(ctx)
		if err != nil {
			return s, err
		}
		do, err := step(s)
		if do == nil || err != nil {
			return s, err
		}
		var failed *nodeError
		if err := do(); err != nil && !(errors.As(err, &failed) && failed.status == 409) {
			return s, err
		}
	}
	return copyState{}, c.errUnsettled()
}

// state asks the node for the copy's state.
func (c copyOn) state(ctx context.Context) (s copyState, err error) {
	r, err := c.api.call(ctx, "GET", c.path("/frozen"), "", nil)
	if err != nil {
		return s, err
	}
	s.revision = r.revision
	switch {
	case s.revision == "" && (r.status == 200 || r.status == 404):
		return s, c.api.fails(r.status, "does not report the tenant's revision: it has no /_admin/, or is older than this router")
	case r.status == 404:
		return s, nil
	case r.status == 500 && s.revision != "":
		s.exists, s.unreadable = true, true
		return s, nil
	case r.status != 200:
		return s, c.api.refuses(r, "report the tenant's state")
	}
	if err := json.Unmarshal(r.body, &s); err != nil {
		return s, c.api.fails(r.status, "reports the tenant's state in a form that cannot be read")
	}
	s.exists = true
	if c.roles { // after the revision, so that a change decided on an older role is refused
		s.place, err = c.position(ctx)
	}
	return s, err
}

func (c copyOn) path(below string) string { return "/_admin/tenants/" + c.tenant + below }

// change asks the node for a change that was decided on s.
func (c copyOn) change(ctx context.Context, s copyState, method, below string, body any, want int) error {
	return c.api.ask(ctx, method, c.path(below), revisionField(s), body, nil, want)
}

func revisionField(s copyState) string { return "Fenec-Revision: " + s.revision + "\r\n" }

// fence ends the copy's revision, so that no earlier request of this router, or of one before it, takes effect any more.
func (c copyOn) fence(ctx context.Context) error {
	return c.api.ask(ctx, "POST", c.path("/revision"), "", nil, nil, 200)
}

// errMissing is the error for a node that lacks the copy that the directory records.
func (c copyOn) errMissing() error { return c.api.fails(404, "does not hold tenant "+c.tenant) }

// freeze freezes the copy under a token and returns the last change before the freeze.
func (c copyOn) freeze(ctx context.Context, token string) (seq uint64, err error) {
	s, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case !s.exists:
			return nil, c.errMissing()
		case s.unreadable:
			return nil, c.api.fails(500, "cannot open the file of tenant "+c.tenant)
		case s.Frozen && s.Token == token && !s.Held:
			return nil, nil
		case s.Frozen:
			return nil, &refusal{409, fmt.Sprintf("tenant %s is frozen on node %s, but not by this router: thaw it there first", c.tenant, c.api.name)}
		}
		return func() error {
			return c.change(ctx, s, "POST", "/freeze", map[string]string{"token": token}, 200)
		}, nil
	})
	return s.Seq, err
}

// release ends a freeze under the token, also one whose request has not arrived yet. A copy that an operator froze stays
// frozen.
func (c copyOn) release(ctx context.Context, token string) error {
	if err := c.fence(ctx); err != nil {
		return err
	}
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case !s.exists:
			return nil, c.errMissing()
		case !s.Frozen || s.Token != token:
			return nil, nil
		}
		return c.thaw(ctx, s, token), nil
	})
	return err
}

// serve puts an image that was installed under the token into service.
func (c copyOn) serve(ctx context.Context, token string) error {
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case !s.exists:
			return nil, c.errMissing()
		case s.unreadable:
			return nil, c.api.fails(500, "cannot open the file of tenant "+c.tenant)
		case !s.Held:
			return nil, nil // if it is frozen, an operator froze it
		case s.Token != token:
			return nil, &refusal{409, fmt.Sprintf("node %s holds an image of tenant %s that this move did not install", c.api.name, c.tenant)}
		}
		return c.thaw(ctx, s, token), nil
	})
	return err
}

func (c copyOn) thaw(ctx context.Context, s copyState, token string) func() error {
	body := map[string]string{}
	if token != "" {
		body["token"] = token
	}
	return func() error { return c.change(ctx, s, "POST", "/thaw", body, 200) }
}

// create creates an empty copy and returns its lineage, empty from a node that does not report it. It replaces a copy that was
// never written to, which is left of an earlier attempt.
func (c copyOn) create(ctx context.Context) (lineage string, err error) {
	made := false
	_, err = c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case s.exists && made:
			return nil, nil
		case !s.exists:
			return func() error {
				r, err := c.api.call(ctx, "PUT", c.path(""), revisionField(s), nil)
				if err == nil && r.status != 201 {
					err = c.api.refuses(r, "create the tenant")
				}
				if made = err == nil; made {
					lineage = lineageIn(r.body)
				}
				return err
			}, nil
		case s.empty():
			return c.remove(ctx, s), nil
		}
		return nil, &refusal{409, fmt.Sprintf("node %s holds a file for tenant %s that the directory does not know", c.api.name, c.tenant)}
	})
	return lineage, err
}

// remove returns the request that deletes the copy in state s, for an empty one only if nothing was written to it since.
func (c copyOn) remove(ctx context.Context, s copyState) func() error {
	fields := revisionField(s)
	if s.empty() {
		fields += "Fenec-Seq: 0\r\n"
	}
	return func() error {
		r, err := c.api.call(ctx, "DELETE", c.path(""), fields, nil)
		if err == nil && r.status != 204 {
			err = c.api.refuses(r, "delete the tenant")
		}
		return err
	}
}

// erase deletes the copy that clients use. It freezes the copy under the token first, so that no write is acknowledged
// between the decision and the delete, however late the delete is carried out. A copy that cannot be frozen, for example
// because the disk is full, is deleted as it is: it accepts no writes either.
func (c copyOn) erase(ctx context.Context, token string) error {
	stuck := false
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch {
		case !s.exists:
			return nil, nil
		case s.Frozen || s.unreadable || stuck:
			return c.remove(ctx, s), nil
		}
		return func() error {
			err := c.change(ctx, s, "POST", "/freeze", map[string]string{"token": token}, 200)
			var refused *nodeError
			if errors.As(err, &refused) && (refused.status == 500 || refused.status == 507) {
				stuck, err = true, nil
			}
			return err
		}, nil
	})
	return err
}

// install copies an image from another node to this one, which has no copy in state s, and has it held under the token.
func (c copyOn) install(ctx context.Context, s copyState, from copyOn, token string) (bytes int64, err error) {
	return copyImage(ctx, from.api, c.api, from.path("/file"), c.path("/file?token="+url.QueryEscape(token)), revisionField(s))
}
