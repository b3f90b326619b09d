package router

import (
	"fmt"
	"slices"
	"sync"

	"fenec/internal/http1"
	"fenec/router/directory"
)

// paired is the answer to a node that is recorded as a standby.
type paired struct {
	Node         string   `json:"node"`
	Unreplicated []string `json:"unreplicated"` // tenants of its primary that have no replica on it
}

// pairUp has every tenant of a node with a standby follow there. A replica elsewhere is deleted once the one on the standby has
// caught up. It returns the tenants for which that failed.
func (rt *Router) pairUp(standby, primary string) paired {
	_, n := rt.dir.Node(standby)
	var names []string
	rt.dir.Each(func(t *directory.Tenant, _ *node) {
		if t.Routed() && t.Node == primary && t.Replica != standby {
			names = append(names, t.Name)
		}
	})
	slices.Sort(names)
	said := paired{standby, []string{}}
	var mu sync.Mutex
	eachOf(names, func(name string) {
		if err := rt.moveReplica(name, primary, n); err != nil {
			rt.log.Warn().Str("tenant", name).Str("standby", standby).Err(err).Msg("a tenant does not follow on the standby of its node")
			mu.Lock()
			defer mu.Unlock()
			said.Unreplicated = append(said.Unreplicated, name)
		}
	})
	slices.Sort(said.Unreplicated)
	return said
}

// moveReplica gives a tenant of a node its replica on another.
func (rt *Router) moveReplica(name, primary string, to *node) error {
	end, err := rt.begin(name, directory.Replicate)
	if err != nil {
		return err
	}
	defer end()
	t := rt.dir.Tenant(name)
	switch {
	case !t.Routed() || t.Node != primary || t.Replica == to.name:
		return nil // deleted or moved meanwhile
	case t.State != directory.Active:
		return &refusal{409, fmt.Sprintf("tenant %s is being moved", name)}
	}
	_, err = rt.replace(rt.ctx, t, to)
	return err
}

// putNode records a node once it has answered with its token, alone or as the standby of another.
func (rt *Router) putNode(r *http1.Request, name string) http1.Answer {
	var wanted struct {
		Addr    string  `json:"addr"`
		Token   string  `json:"token"`
		Standby *string `json:"standby"`
		Passive *bool   `json:"passive"`
		Region  *string `json:"region"`
	}
	if err := readJSON(r, &wanted); err != nil {
		return answerError(err)
	}
	switch {
	case wanted.Region != nil:
		return later("a node's region")
	case wanted.Addr == "" || wanted.Token == "":
		return http1.ErrorAnswer(400, "a node requires addr and token, its admin token: {\"addr\": \"127.0.0.1:8081\", \"token\": \"...\"}")
	}
	l, err := newLink(wanted.Addr, wanted.Token, &rt.transport)
	if err != nil {
		return http1.ErrorAnswer(400, err.Error())
	}
	known, _ := rt.dir.Node(name)
	row := &directory.Node{Name: name, Addr: wanted.Addr, Token: wanted.Token}
	if known != nil {
		row.Standby, row.Passive = known.Standby, known.Passive
	}
	if wanted.Standby != nil {
		row.Standby = *wanted.Standby
	}
	if wanted.Passive != nil {
		row.Passive = *wanted.Passive
	}
	_, err = nodeAPI{name: name, link: l}.stats(rt.ctx)
	l.pool.close()
	if err == nil {
		err = rt.dir.ChangeNode(known, row)
	}
	if err != nil {
		return answerError(err)
	}
	rt.log.Info().Bytes("request", r.ID).Str("node", name).Str("addr", wanted.Addr).Str("standby", row.Standby).
		Bool("new", known == nil).Msg("a node is recorded")
	status := 200
	if known == nil {
		status = 201
	}
	if row.Standby != "" {
		return jsonAnswer(status, rt.pairUp(name, row.Standby))
	}
	return jsonAnswer(status, struct {
		Node string `json:"node"`
		Addr string `json:"addr"`
	}{name, wanted.Addr})
}
