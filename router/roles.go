package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// position is what a node reports of a copy's role and of its place in the tenant's history.
type position struct {
	Role     string         `json:"role"`
	Seq      uint64         `json:"seq"`
	Durable  uint64         `json:"durable"`
	History  jsontext.Value `json:"history,omitzero"`
	Lineage  string         `json:"lineage"`
	Writable bool           `json:"writable"`

	// Of a replica:
	From      string  `json:"from,omitzero"` // the node that it follows, empty for none
	Connected bool    `json:"connected,omitzero"`
	CaughtUp  bool    `json:"caught_up,omitzero"` // it has been, since it was last told to follow
	Behind    *uint64 `json:"behind,omitzero"`    // changes on the primary's disk that it lacks, nil if that is not known
	Error     string  `json:"error,omitzero"`     // why it does not follow
}

// replica reports whether the copy follows another and accepts no writes.
func (s copyState) replica() bool { return s.place.Role == "replica" }

// follows reports whether the copy is a replica that follows the node at a URL.
func (s copyState) follows(url string) bool {
	return s.replica() && strings.TrimSuffix(s.place.From, "/") == url
}

// withRole returns the copy with its role asked for whenever its state is.
func (c copyOn) withRole() copyOn {
	c.roles = true
	return c
}

// position asks the node for the copy's role and place.
func (c copyOn) position(ctx context.Context) (p position, err error) {
	err = c.api.ask(ctx, "GET", c.path("/position"), "", nil, &p, 200)
	if err == nil && p.Role != "primary" && p.Role != "replica" {
		err = c.api.fails(200, "does not report the role of tenant "+c.tenant)
	}
	return p, err
}

// lineageIn returns the lineage in a node's answer, empty if there is none.
func lineageIn(body []byte) string {
	var said struct {
		Lineage string `json:"lineage"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	return said.Lineage
}

// refusals counts the refusals of a change of a copy's role. A refusal may be of the revision, or of the change itself, for which
// the node ends the revision too: so one refusal has the change decided again, and two are final.
type refusals struct {
	count int
	err   error
}

// final returns why the node refuses the change, nil if it has not done so twice.
func (r *refusals) final() error {
	if r.count < 2 {
		return nil
	}
	return r.err
}

func (r *refusals) note(err error) error {
	if r.err = err; err != nil {
		r.count++
	}
	return err
}

// follow has the copy follow the node at a URL, which makes it a replica: it accepts no writes from then on. A node without
// the tenant creates the copy. allowed returns why a copy in state s must stay as it is. A copy that follows the node already
// is left as it is, since it is not promoted before it has caught up with the node it was last told to follow.
func (c copyOn) follow(ctx context.Context, url, lineage string, allowed func(s copyState) error) error {
	c = c.withRole()
	var refused refusals
	made := false
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch err := refused.final(); {
		case err != nil:
			return nil, err
		case s.exists && s.follows(url) && (made || s.place.Lineage == lineage), made && s.replica():
			return nil, nil
		}
		if err := allowed(s); err != nil {
			return nil, err
		}
		return func() error {
			body := map[string]string{"from": url, "lineage": lineage}
			err := c.change(ctx, s, "POST", "/follow", body, 200)
			made = err == nil
			return refused.note(err)
		}, nil
	})
	return err
}

// promote has the copy, a replica of the lineage, accept writes. It never forces that: a copy that has not caught up, or is of
// another lineage, stays as it is.
func (c copyOn) promote(ctx context.Context, lineage string) error {
	c = c.withRole()
	var refused refusals
	_, err := c.until(ctx, func(s copyState) (func() error, error) {
		switch err := refused.final(); {
		case err != nil:
			return nil, err
		case !s.exists:
			return nil, c.errMissing()
		case s.unreadable:
			return nil, c.api.fails(500, "cannot open the file of tenant "+c.tenant)
		case s.place.Lineage != lineage && !(s.replica() && s.Seq == 0): // which has not reached its primary yet
			return nil, &refusal{409, fmt.Sprintf("node %s holds another tenant of the name %s", c.api.name, c.tenant)}
		case !s.replica():
			return nil, nil
		}
		return func() error {
			return refused.note(c.change(ctx, s, "POST", "/promote", map[string]string{}, 200))
		}, nil
	})
	return err
}

// stop freezes a copy under a token, if it accepts writes, and returns the last change in it. A copy whose operator has frozen
// it is stopped as well. known is false if the copy has no last change that can be relied on. takesWrites reports, with an
// error, that the node has shown the copy to accept writes and has answered that it does not freeze it.
func (c copyOn) stop(ctx context.Context, token string) (seq uint64, known, takesWrites bool, err error) {
	c = c.withRole()
	s, err := c.until(ctx, func(s copyState) (func() error, error) {
		if takesWrites = s.exists && !s.unreadable && !s.Frozen && !s.replica(); !takesWrites {
			return nil, nil
		}
		return func() error {
			err := c.change(ctx, s, "POST", "/freeze", map[string]string{"token": token}, 200)
			var failed *nodeError
			if errors.As(err, &failed) && (failed.status == 0 || failed.status == 500 || failed.status == 507) {
				takesWrites = false // it is lost, or its disk fails or is full
			}
			return err
		}, nil
	})
	known = err == nil && s.exists && !s.unreadable && s.Frozen && !s.replica()
	return s.Seq, known, takesWrites && err != nil, err
}

// pollEvery is how often a node is asked for a position that is waited for.
const pollEvery = 20 * time.Millisecond

// await waits until the copy's position satisfies a condition or ctx ends, and reports whether it does. It returns the error
// of the node if that does not answer.
func (c copyOn) await(ctx context.Context, holds func(p position) bool) (bool, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		p, err := c.position(ctx)
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if err == nil && holds(p) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}

// leftTails reports whether the node keeps changes of the copy that a failover left behind, which are deleted with the copy.
// A node that has no such route keeps none.
func (c copyOn) leftTails(ctx context.Context) (bool, error) {
	var tails []jsontext.Value
	err := c.api.ask(ctx, "GET", c.path("/forked"), "", nil, &tails, 200)
	if refused := (*nodeError)(nil); errors.As(err, &refused) && (refused.status == 404 || refused.status == 501) {
		return false, nil
	}
	return len(tails) > 0, err
}

// unanswered reports whether an error is that of a node that did not answer: what it was asked for may still happen.
func unanswered(err error) bool {
	var failed *nodeError
	return errors.As(err, &failed) && failed.status == 0
}
