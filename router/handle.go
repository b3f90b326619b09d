package router

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"

	"fenec/engine/fail"
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
		return http1.Answer{Status: 204, Headers: []http1.Header{{Name: []byte("Allow"), Value: []byte("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")}}}
	}
	switch path := segments(r.Path); {
	case len(path) == 1 && path[0] == "_health":
		return rt.health(r)
	case len(path) == 1 && path[0] == "_metrics":
		return rt.showMetrics(r)
	case len(path) >= 1 && path[0] == "_shard":
		return rt.shard(r, path[1:])
	case len(path) >= 1 && path[0] == "_replication":
		return later("a router that follows another")
	}
	return http1.ErrorAnswer(404, "no such route: a tenant's routes begin with /t/<tenant>/, the router's own with /_shard/")
}

// segments returns a path's segments without the empty ones.
func segments(path []byte) []string {
	return strings.FieldsFunc(string(path), func(c rune) bool { return c == '/' })
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
		return unauthorized()
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
func (rt *Router) authorized(r *http1.Request) bool {
	if rt.config.Token == "" {
		return true
	}
	scheme, token, _ := bytes.Cut(r.Get("Authorization"), []byte{' '})
	sum := sha256.Sum256(bytes.TrimLeft(token, " "))
	return subtle.ConstantTimeCompare(sum[:], rt.token[:]) == 1 && fold(scheme, "bearer")
}

func unauthorized() http1.Answer {
	a := http1.ErrorAnswer(401, "this route requires the router's token: Authorization: Bearer <token>")
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)],
		http1.Header{Name: []byte("WWW-Authenticate"), Value: []byte("Bearer")})
	return a
}

// methods are a route's handlers by method.
type methods map[string]func() http1.Answer

// byMethod runs the route's handler for the request's method. HEAD runs GET's. OPTIONS and unknown methods get the list of
// methods.
func byMethod(r *http1.Request, m methods) http1.Answer {
	method := r.Method
	if method == "HEAD" {
		method = "GET"
	}
	if do := m[method]; do != nil {
		return do()
	}
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
		if m[method] != nil || method == "HEAD" && m["GET"] != nil {
			allowed = append(allowed, method)
		}
	}
	allowed = append(allowed, "OPTIONS")
	allow := http1.Header{Name: []byte("Allow"), Value: []byte(strings.Join(allowed, ", "))}
	if r.Method == "OPTIONS" {
		return http1.Answer{Status: 204, Headers: []http1.Header{allow}}
	}
	a := http1.ErrorAnswer(405, "this route takes "+strings.Join(allowed, ", ")+", not "+r.Method)
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], allow)
	return a
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
	switch {
	case errors.As(err, &refused):
		return http1.ErrorAnswer(refused.status, refused.message)
	case errors.As(err, &missing):
		return http1.ErrorAnswer(404, err.Error())
	case errors.As(err, &conflict), errors.As(err, &busy), errors.As(err, &held):
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
