package node

import "testing"

var poems = []step{
	{"a collection", "POST", "/query", `{"query": "create collection poems (title text @text, year int @sorted, v vector<2> @hnsw, near text)"}`, 200, `{"message":...`},
	{"documents", "POST", "/poems", `[{"title": "The Raven", "year": 1845, "v": [1, 0]}, {"title": "The Sick Rose", "year": 1794, "v": [0, 1]},
		{"title": "Raven and Rose", "year": 1900, "v": [1, 1]}, {"title": "Rose", "year": 1901}]`, 201, `{"inserted":4}`},
}

func TestNearOverREST(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(poems)
	r.play([]step{
		{"the one vector field", "POST", "/poems/near", `{"vector": [1, 0], "select": "id"}`, 200, `[{"id":1,"_score":1},{"id":3,"_score":0.70710677},{"id":2,"_score":0}]`},
		{"whole rows", "POST", "/poems/near", `{"vector": [1, 0], "limit": 1}`, 200, `[{"id":1,"title":"The Raven","year":1845,"v":[1,0],"near":null,"_score":1}]`},
		{"every key", "POST", "/poems/near", `{"vector": [1, 0], "field": "v", "limit": 1, "offset": 1, "ef": 50, "exact": false, "select": ["id", "year"], "where": "year > 1800 -- or so", "match": null}`, 200, `[{"id":3,"year":1900,"_score":0.70710677}]`},
		{"exact", "POST", "/poems/near", `{"vector": [1, 0], "exact": true, "select": "id", "limit": 1}`, 200, `[{"id":1,"_score":1}]`},
		{"a vector as text", "POST", "/poems/near", `{"vector": "[0,2]", "select": "id", "limit": 1}`, 200, `[{"id":2,"_score":1}]`},
		{"with a match", "POST", "/poems/near", `{"vector": [1, 0], "match": "rose", "select": "id"}`, 200, `[{"id":2,"_score":0.032002047},{"id":3,"_score":0.032002047},{"id":1,"_score":0.016393442},{"id":4,"_score":0.016393442}]`},
		{"with every key of a match", "POST", "/poems/near", `{"vector": [1, 0], "match": "rose", "match_field": "title", "fuse_k": 1, "candidates": 1, "where": "year < 1901", "select": "id"}`, 200, `[{"id":1,"_score":0.5},{"id":2,"_score":0.5}]`},
		{"a filter", "POST", "/poems/near?year=gt.1800", `{"vector": [1, 0], "select": "id"}`, 200, `[{"id":1,"_score":1},{"id":3,"_score":0.70710677}]`},
		{"filters and where", "POST", "/poems/near?year=gt.1700&title=like.*rose", `{"vector": [1, 0], "select": "id", "where": "year < 1900 or id = 3"}`, 200, `[{"id":3,"_score":0.70710677},{"id":2,"_score":0}]`},
		{"an or in where stays in it", "POST", "/poems/near?id=2", `{"vector": [1, 0], "select": "id", "where": "id = 1 or id = 2"}`, 200, `[{"id":2,"_score":0}]`},
		{"where on both sides", "POST", "/poems/near?where=id+%3D+1+or+id+%3D+3", `{"vector": [1, 0], "select": "id", "where": "id = 2 or id = 3"}`, 200, `[{"id":3,"_score":0.70710677}]`},
		{"a filter of a match", "POST", "/poems/near?year=neq.1794", `{"vector": [1, 0], "match": "rose", "select": "id"}`, 200, `[{"id":3,"_score":...`},
		{"a filter by a field called near", "POST", "/poems/near?near=is.null", `{"vector": [0, 1], "select": "id", "limit": 1}`, 200, `[{"id":2,"_score":1}]`},
		{"no row is near", "POST", "/poems/near", `{"vector": [1, 0], "where": "year > 3000"}`, 200, `[]`},
		{"no page", "POST", "/poems/near", `{"vector": [1, 0], "limit": 0}`, 200, `[]`},
	})
	r.play([]step{
		{"no vector", "POST", "/poems/near", `{}`, 400, `{"error":"vector is missing: it is what the rows are near to"}`},
		{"a vector of another length", "POST", "/poems/near", `{"vector": [1]}`, 400, `{"error":"near v: expected vector<2>, got a list of 1 number"}`},
		{"an invalid vector", "POST", "/poems/near", `{"vector": 3}`, 400, `{"error":"vector: expected a list of numbers or a text, got number 3"}`},
		{"a vector of texts", "POST", "/poems/near", `{"vector": ["a", "b"]}`, 400, `{"error":"near v: expected vector<2>, got text \"a\" as number 1"}`},
		{"an unknown key", "POST", "/poems/near", `{"vector": [1, 0], "k": 3}`, 400, `{"error":"\"k\" is no key of a near, which has vector...`},
		{"a key twice", "POST", "/poems/near", `{"vector": [1, 0], "vector": [1, 0]}`, 400, `{"error":"...`},
		{"no object", "POST", "/poems/near", `[1, 0]`, 400, `{"error":"near: expected an object with vector...`},
		{"no JSON", "POST", "/poems/near", `{"vector": [1,`, 400, `{"error":"...`},
		{"no body", "POST", "/poems/near", ``, 400, `{"error":"...`},
		{"a limit in the query string", "POST", "/poems/near?limit=3", `{"vector": [1, 0]}`, 400, `{"error":"limit goes into the body of a near, whose query string takes filters and where"}`},
		{"a select in the query string", "POST", "/poems/near?year=1900&select=id", `{"vector": [1, 0]}`, 400, `{"error":"select goes into the body of a near, whose query string takes filters and where"}`},
		{"a count", "POST", "/poems/near?count=true", `{"vector": [1, 0]}`, 400, `{"error":"count goes into the body...`},
		{"a filter by an unknown field", "POST", "/poems/near?author=x", `{"vector": [1, 0]}`, 404, `{"error":"poems has no field author"}`},
		{"a filter by a bad value", "POST", "/poems/near?year=gt.x", `{"vector": [1, 0]}`, 400, `{"error":"field year: expected int, got text \"x\""}`},
		{"where twice in the query string", "POST", "/poems/near?where=1%3D1&where=1%3D1", `{"vector": [1, 0]}`, 400, `{"error":"where is given twice"}`},
		{"a limit that is no number", "POST", "/poems/near", `{"vector": [1, 0], "limit": "3"}`, 400, `{"error":"limit: expected a whole number of 0 or more, got text \"3\""}`},
		{"an offset below 0", "POST", "/poems/near", `{"vector": [1, 0], "offset": -1}`, 400, `{"error":"offset: expected a whole number of 0 or more, got number -1"}`},
		{"a page past the ceiling", "POST", "/poems/near", `{"vector": [1, 0], "limit": 10001}`, 400, `{"error":"near answers the first 10000 rows at most, limit and offset together, got 10001"}`},
		{"an ef of 0", "POST", "/poems/near", `{"vector": [1, 0], "ef": 0}`, 400, `{"error":"ef goes from 1 to 10000, got 0"}`},
		{"exact that is no bool", "POST", "/poems/near", `{"vector": [1, 0], "exact": 1}`, 400, `{"error":"exact: expected true or false, got number 1"}`},
		{"an unknown field", "POST", "/poems/near", `{"vector": [1, 0], "field": "w"}`, 404, `{"error":"poems has no field w"}`},
		{"an invalid field name", "POST", "/poems/near", `{"vector": [1, 0], "field": "v exact"}`, 400, `{"error":"field: expected the name of a field, got \"v exact\""}`},
		{"a field without vectors", "POST", "/poems/near", `{"vector": [1, 0], "field": "year"}`, 400, `{"error":"near: expected a vector or sparse field, and year is int"}`},
		{"a select of numbers", "POST", "/poems/near", `{"vector": [1, 0], "select": [1]}`, 400, `{"error":"select: expected fields...`},
		{"a select that is no field", "POST", "/poems/near", `{"vector": [1, 0], "select": "id near"}`, 400, `{"error":"select: expected...`},
		{"an aggregate", "POST", "/poems/near", `{"vector": [1, 0], "select": "count(*)"}`, 400, `{"error":"near answers documents...`},
		{"a where that would end its parentheses", "POST", "/poems/near", `{"vector": [1, 0], "where": "id = 1) or (id = 2"}`, 400, `{"error":"...`},
		{"a where that is no text", "POST", "/poems/near", `{"vector": [1, 0], "where": true}`, 400, `{"error":"where: expected a condition as text, got bool true"}`},
		{"a match that is no text", "POST", "/poems/near", `{"vector": [1, 0], "match": ["a"]}`, 400, `{"error":"match: expected a text, got a list"}`},
		{"a match of a field without @text", "POST", "/poems/near", `{"vector": [1, 0], "match": "a", "match_field": "near"}`, 400, `{"error":"match: expected an index @text on near: create index on poems (near) @text"}`},
		{"k without a match", "POST", "/poems/near", `{"vector": [1, 0], "fuse_k": 3}`, 400, `{"error":"fuse_k goes with match, which is missing"}`},
		{"candidates past the ceiling", "POST", "/poems/near", `{"vector": [1, 0], "match": "a", "candidates": 10001}`, 400, `{"error":"candidates goes from 1 to 10000, got 10001"}`},
		{"an unknown collection", "POST", "/films/near", `{"vector": [1, 0]}`, 404, `{"error":"there is no collection films"}`},
		{"another method", "GET", "/poems/near", ``, 405, `{"error":"...`},
		{"a longer path", "POST", "/poems/near/v", `{"vector": [1, 0]}`, 404, `{"error":"...`},
	})
	r.play([]step{
		{"two vector fields", "POST", "/query", `{"query": "alter collection poems add field s sparse<9> @inverted"}`, 200, `{"message":...`},
		{"the field is missing", "POST", "/poems/near", `{"vector": [1, 0]}`, 400, `{"error":"field is missing: poems has more than one vector or sparse field"}`},
		{"a sparse vector", "PATCH", "/poems?id=1", `{"s": "{3:2}/9"}`, 200, `{"updated":1}`},
		{"a sparse near", "POST", "/poems/near", `{"vector": "{3:0.5}/9", "field": "s", "select": "id"}`, 200, `[{"id":1,"_score":1}]`},
		{"a collection without a vector field", "POST", "/query", `{"query": "create collection plain (n int)"}`, 200, `{"message":...`},
		{"a near in it", "POST", "/plain/near", `{"vector": [1, 0]}`, 400, `{"error":"plain has no vector or sparse field"}`},
	})
}

func TestNearIsAllowedOnAReadOnlyNode(t *testing.T) {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(poems)
	r.stop()
	r = start(t, Config{Dir: dir, ReadOnly: true})
	r.url += "/t/x"
	r.play([]step{
		{"a near", "POST", "/poems/near", `{"vector": [1, 0], "select": "id", "limit": 1}`, 200, `[{"id":1,"_score":1}]`},
		{"a write", "POST", "/poems", `{"title": "x"}`, 403, `{"error":"...`},
	})
}
