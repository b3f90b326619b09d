package node

import "testing"

func TestMoreParametersThanAStatementUsesAreFine(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(books)
	r.play([]step{
		{"a read", "POST", "/query", `{"query": "get books where id = $1 select id", "params": [1, "more", {"a": []}]}`, 200, `[{"id":1}]`},
		{"one without any", "POST", "/query", `{"query": "get books count", "params": [1]}`, 200, `[{"count":4}]`},
		{"one that leaves some out", "POST", "/query", `{"query": "get books where id = $2 select id", "params": [1, 2, 3]}`, 200, `[{"id":2}]`},
		{"a write", "POST", "/query", `{"query": "put books $1", "params": [{"title": "x"}, 2]}`, 200, `{"affected":1}`},
		{"a schema", "POST", "/query", `{"query": "create collection c (n int)", "params": [1]}`, 200, `{"message":...`},
		{"a batch", "POST", "/batch", "{\"query\": \"put c {n: $1}\", \"params\": [1, 2]}\n{\"query\": \"get c count\", \"params\": [3]}\n", 200, `{"ok":2,...`},
		{"fewer", "POST", "/query", `{"query": "get books where id = $2", "params": [1]}`, 400, `{"error":"the statement takes 2 parameters, got 1"}`},
		{"fewer in a batch", "POST", "/batch", "{\"query\": \"put c {n: $1}\", \"params\": []}\n", 400, `{"error":"the statement takes 1 parameter, got 0"...`},
	})
}
