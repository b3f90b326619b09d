package router

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"fenec/engine/fail"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/router/directory"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Handle answers one request: it forwards a tenant's to its node and answers the others itself.
func (rt *Router) Handle(r *http1.Request) http1.Answer {
	a := rt.route(r)
	rt.metrics.answered(a.Status)
	return a
}

func (rt *Router) route(r *http1.Request) http1.Answer {
	name, _, ok, bad := http1.SplitTenant(r.Path)
	switch {
	case bad != nil:
		return http1.ErrorAnswer(bad.Status, bad.Message)
	case ok:
		return rt.forward(r, name)
	}
	if string(r.Target) == "*" { // OPTIONS of the server as a whole
		return edge.AllMethods.Options()
	}
	path := edge.SplitPath(nil, r.Path)
	first := ""
	if len(path) > 0 {
		first = string(path[0])
	}
	switch {
	case first == "_health" && len(path) == 1:
		return rt.health(r)
	case first == "_metrics" && len(path) == 1:
		return rt.showMetrics(r)
	case first == "_shard":
		return rt.shard(r, path[1:])
	case first == "_replication":
		return later("a router that follows another")
	}
	return http1.ErrorAnswer(404, "no such route: a tenant's routes begin with /t/<tenant>/, the router's own with /_shard/")
}

func (rt *Router) health(r *http1.Request) http1.Answer {
	return byMethod(r, methods{"GET": func() http1.Answer {
		return jsonAnswer(200, struct {
			Status  string `json:"status"`
			Role    string `json:"role"`
			Version string `json:"version"`
		}{"ok", "router", rt.config.Version})
	}})
}

func (rt *Router) showMetrics(r *http1.Request) http1.Answer {
	if !rt.authorized(r) {
		return edge.Unauthorized(r)
	}
	return byMethod(r, methods{"GET": func() http1.Answer {
		var text bytes.Buffer
		rt.metrics.set.WritePrometheus(&text)
		return http1.Answer{Status: 200, Body: text.Bytes(), Headers: []http1.Header{
			{Name: []byte("Content-Type"), Value: []byte("text/plain; version=0.0.4; charset=utf-8")},
		}}
	}})
}

// authorized reports whether a request carries the router's token. Without a token every request is authorized.
func (rt *Router) authorized(r *http1.Request) bool { return !rt.token.Set() || rt.token.In(r) }

// methods are a route's handlers by method.
type methods map[string]func() http1.Answer

// byMethod runs the route's handler for the request's method. HEAD runs GET's.
func byMethod(r *http1.Request, m methods) http1.Answer {
	var set edge.Methods
	for name := range m {
		set |= edge.MethodOf(name)
	}
	if a, done := set.Check(r); done {
		return a
	}
	if r.Method == "HEAD" {
		return m["GET"]()
	}
	return m[r.Method]()
}

// refusal is an error with its HTTP status.
type refusal struct {
	status  int
	message string
}

func (e *refusal) Error() string { return e.message }

// answerError returns the answer for a change that failed.
func answerError(err error) http1.Answer {
	var refused *refusal
	var node *nodeError
	var missing *directory.NoNode
	var conflict *directory.Conflict
	var busy *directory.Busy
	var held *directory.Held
	var paired *directory.Paired
	switch {
	case errors.As(err, &refused):
		return http1.ErrorAnswer(refused.status, refused.message)
	case errors.As(err, &missing):
		return http1.ErrorAnswer(404, err.Error())
	case errors.As(err, &conflict), errors.As(err, &busy), errors.As(err, &held), errors.As(err, &paired):
		return http1.ErrorAnswer(409, err.Error())
	case errors.As(err, &node):
		return http1.ErrorAnswer(502, err.Error())
	}
	switch fail.KindOf(err) {
	case fail.Full:
		return http1.ErrorAnswer(507, "the directory cannot be written: "+err.Error())
	case fail.Closed:
		return http1.ErrorAnswerRetry(503, "the router is closing", 1)
	}
	return http1.ErrorAnswer(500, "the directory cannot be written: "+err.Error())
}

// jsonAnswer returns an answer with the value as JSON.
func jsonAnswer(status int, value any) http1.Answer {
	body, err := json.Marshal(value)
	if err != nil {
		return http1.ErrorAnswer(500, "the answer cannot be written as JSON")
	}
	return http1.Answer{Status: status, Headers: http1.JSON, Body: body}
}

// readJSON reads a request's body into value: one JSON object without unknown fields, or an empty body.
func readJSON(r *http1.Request, value any) error {
	body, err := r.Body(maxAdminAnswer)
	if err != nil {
		var bad *http1.Error
		if errors.As(err, &bad) {
			return &refusal{bad.Status, bad.Message}
		}
		return &refusal{400, "the body could not be read"}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, value, json.RejectUnknownMembers(true)); err != nil {
		return &refusal{400, "the body is not the expected JSON object" + jsonReason(err)}
	}
	return nil
}

// jsonReason describes an error of the JSON package without that package's terms.
func jsonReason(err error) string {
	var syntax *jsontext.SyntacticError
	var meaning *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		return ": invalid JSON at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	case errors.As(err, &meaning) && errors.Is(meaning.Err, json.ErrUnknownName):
		return ": unknown field " + strings.TrimPrefix(string(meaning.JSONPointer), "/")
	case errors.As(err, &meaning) && meaning.JSONPointer != "":
		return ": " + strings.TrimPrefix(string(meaning.JSONPointer), "/") + " has the wrong type"
	}
	return ""
}
