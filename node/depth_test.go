package node

import (
	"fmt"
	"strings"
	"testing"
)

// deep returns a value of n nested objects.
func deep(n int) string { return strings.Repeat(`{"k":`, n) + "1" + strings.Repeat("}", n) }

// lists returns a value of n nested lists.
func lists(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// below returns a path of n keys below a field.
func below(field string, n int) string { return field + strings.Repeat(".k", n) }

// TestEachRouteAcceptsValuesOfUpTo64Levels sends values of 64 levels and of more on each route.
func TestEachRouteAcceptsValuesOfUpTo64Levels(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.want(200, "POST", "/query", `{"query": "create collection c (j json, l [json])"}`)
	r.want(201, "POST", "/c", `{"id": 1}`)
	statement := func(query, params string) string {
		return fmt.Sprintf(`{"query": %q, "params": %s}`, query, params)
	}
	for name, send := range map[string]func(v string) (method, path, body string){
		"a literal":          func(v string) (string, string, string) { return "POST", "/query", statement("put c {j: "+v+"}", "[]") },
		"a literal of a set": func(v string) (string, string, string) { return "POST", "/query", statement("set c {j: "+v+"}", "[]") },
		"a parameter": func(v string) (string, string, string) {
			return "POST", "/query", statement("put c {j: $1}", "["+v+"]")
		},
		"a document as a parameter": func(v string) (string, string, string) {
			return "POST", "/query", statement("put c $1", `[{"j":`+v+`}]`)
		},
		"documents as a parameter": func(v string) (string, string, string) {
			return "POST", "/query", statement("put c $1", `[[{"j":`+v+`}]]`)
		},
		"a line of a batch": func(v string) (string, string, string) {
			return "POST", "/batch", statement("insert into c $1", `[[{"j":`+v+`}]]`)
		},
		"a document":          func(v string) (string, string, string) { return "POST", "/c", `{"j":` + v + `}` },
		"a list of documents": func(v string) (string, string, string) { return "POST", "/c", `[{"j":` + v + `}]` },
		"a change":            func(v string) (string, string, string) { return "PATCH", "/c?id=1", `{"j":` + v + `}` },
		"a list field": func(v string) (string, string, string) {
			return "POST", "/c", `[{"l":[` + strings.TrimSuffix(strings.TrimPrefix(v, "["), "]") + `]}]`
		},
		"a comparison with a parameter": func(v string) (string, string, string) {
			return "POST", "/query", statement("get c where j = $1 limit 0", "["+v+"]")
		},
		"a comparison with a literal": func(v string) (string, string, string) {
			return "POST", "/query", statement("get c where j = "+v+" limit 0", "[]")
		},
		"a value put around another one": func(v string) (string, string, string) {
			return "POST", "/query", statement("put c {j: {k: $1}}", "["+strings.TrimSuffix(strings.TrimPrefix(v, `{"k":`), "}")+"]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			make := deep
			if name == "a list field" {
				make = lists
			}
			for depth, want := range map[int]bool{64: true, 65: false, 66: false, 67: false, 200: false, 9000: false} {
				method, path, body := send(make(depth))
				if got := r.do(method, path, body); (got.status < 300) != want || !want && got.status != 400 {
					t.Errorf("%d levels: got %d %.200s, want accepted %v", depth, got.status, got.body, want)
				}
			}
		})
	}
}

func TestAPathWithItsValueHasUpTo64Levels(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.want(200, "POST", "/query", `{"query": "create collection c (j json, l [json])"}`)
	statement := func(query, params string) string {
		return fmt.Sprintf(`{"query": %q, "params": %s}`, query, params)
	}
	for name, write := range map[string]func(path, v string) (method, target, body string){
		"put": func(path, v string) (string, string, string) {
			return "POST", "/query", statement("put c {id: 1, "+path+": "+v+"}", "[]")
		},
		"a text as key": func(path, v string) (string, string, string) {
			return "POST", "/query", statement("put c {id: 1, '"+path+"': "+v+"}", "[]")
		},
		"a document as parameter": func(path, v string) (string, string, string) {
			return "POST", "/query", statement("put c $1", `[{"id": 1, "`+path+`": `+v+`}]`)
		},
		"set": func(path, v string) (string, string, string) {
			return "POST", "/query", statement("set c {"+path+": "+v+"} where id = 1", "[]")
		},
		"a change": func(path, v string) (string, string, string) {
			return "PATCH", "/c?id=1", `{"` + path + `": ` + v + `}`
		},
		"insert": func(path, v string) (string, string, string) { return "POST", "/c", `{"` + path + `": ` + v + `}` },
		"a path and a value below it": func(path, v string) (string, string, string) {
			return "PATCH", "/c?id=1", `{"` + strings.TrimSuffix(path, ".k.k") + `": {"k": {"k": ` + v + `}}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tc := range []struct {
				keys  int
				value string
				takes bool
			}{{64, "1", true}, {63, "{}", true}, {62, "[[]]", true}, {64, "{}", false}, {63, "[[]]", false}, {65, "1", false}, {300, "1", false}} {
				r.want(200, "POST", "/query", `{"query": "put c {id: 1}"}`)
				method, target, body := write(below("j", tc.keys), tc.value)
				got := r.do(method, target, body)
				if (got.status < 300) != tc.takes || !tc.takes && got.status != 400 {
					t.Errorf("%d keys and %s: got %d %.200s, want accepted %v", tc.keys, tc.value, got.status, got.body, tc.takes)
				}
			}
		})
	}
	r.want(200, "DELETE", "/c/all", "")
	r.want(200, "POST", "/query", `{"query": "put c {id: 1, j: `+strings.ReplaceAll(deep(64), `"`, "")+`}"}`)
	path := below("j", 64)
	r.play([]step{
		{"read", "GET", "/c?id=1&select=" + path, "", 200, `[{"` + path + `":1}]`},
		{"filtered by", "GET", "/c?id=1&" + path + "=gt.0&count", "", 200, `{"count":1}`},
		{"ordered by", "GET", "/c?id=1&order=" + path + "&select=id", "", 200, `[{"id":1}]`},
		{"indexed", "POST", "/query", statement("create index on c ("+path+") @sorted", "[]"), 200, `{"message":...`},
		{"found by the index", "POST", "/query", statement("get c where "+path+" = 1 count", "[]"), 200, `[{"count":1}]`},
		{"one key too deep", "GET", "/c?" + path + ".k=1", "", 400, `{"error":"...`},
	})
}

// TestTheAnswerOfAGetCanBePosted posts the documents of a GET to another collection.
func TestTheAnswerOfAGetCanBePosted(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	for _, c := range []string{"a", "b"} {
		r.want(200, "POST", "/query", `{"query": "create collection `+c+` (j json, l [json])"}`)
	}
	r.want(201, "POST", "/a", `[{"j": `+deep(64)+`, "l": `+lists(64)+`}, {"j": `+lists(64)+`}]`)
	read := r.want(200, "GET", "/a", "").body
	r.want(201, "POST", "/b", read)
	if got := r.want(200, "GET", "/b", "").body; got != read {
		t.Errorf("got  %.300s\nwant %.300s", got, read)
	}
	r.want(200, "POST", "/query", `{"query": "put b $1", "params": [`+read+`]}`)
	r.want(200, "POST", "/batch", `{"query": "put b $1", "params": [`+read+`]}`)
	changes := r.want(200, "GET", "/_changes?since=0", "").body
	if !strings.Contains(changes, deep(64)) {
		t.Errorf("got no value of 64 levels in the changes, want one")
	}
}
