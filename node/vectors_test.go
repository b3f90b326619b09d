package node

import (
	"strings"
	"testing"
)

func TestVectorsOverREST(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"a collection", "POST", "/query", `{"query": "create collection c (v vector<3>, h vector<2, f16>, s sparse<9>)"}`, 200, `{"message":...`},
		{"a list and texts", "POST", "/c", `{"v": [0.1, 2e-3, 0.10000000149011612], "h": "[1, 65504]", "s": "{9:1,2:0.25}/9"}`, 201, `{"inserted":...`},
		{"a list of documents", "POST", "/c", `[{"v": [1, 2, 3]}, {"v": null}]`, 201, `{"inserted":...`},
		{"the rows", "GET", "/c", "", 200, `[{"id":1,"v":[0.1,0.002,0.1],"h":[1,65504],"s":"{2:0.25,9:1}/9"},{"id":2,"v":[1,2,3],"h":null,"s":null},{"id":3,"v":null,"h":null,"s":null}]`},
		{"a filter", "GET", "/c?v=[1,2,3]&select=id", "", 200, `[{"id":2}]`},
		{"a filter on a sparse vector", "GET", "/c?s={9:1,2:0.25}/9&select=id", "", 200, `[{"id":1}]`},
		{"a filter by null", "GET", "/c?v=is.null&select=id", "", 200, `[{"id":3}]`},
		{"a filter by several", "GET", `/c?v=in.("[1,2,3]","[3,2,1]")&select=id`, "", 200, `[{"id":2}]`},
		{"an update", "PATCH", "/c?id=3", `{"v": [4, 5, 6], "s": "{1:1}/9"}`, 200, `{"updated":...`},
		{"the row", "GET", "/c?id=3", "", 200, `[{"id":3,"v":[4,5,6],"h":null,"s":"{1:1}/9"}]`},
		{"parameters", "POST", "/query", `{"query": "get c where cosine(v, $1) > 0.99 and dot(s, $2) = 1 select id", "params": [[4, 5, 6], "{1:1}/9"]}`, 200, `[{"id":3}]`},
		{"a wrong length", "POST", "/c", `{"v": [1, 2]}`, 400, `{"error":"field v: expected vector<3>, got a list of 2 numbers"}`},
		{"a text in a vector", "POST", "/c", `{"v": [1, 2, "3"]}`, 400, `{"error":"field v: expected vector<3>, got text \"3\" as number 3"}`},
		{"past f16", "PATCH", "/c?id=1", `{"h": [1e5, 0]}`, 400, `{"error":"field h: expected vector<2, f16>, got 100000 as number 1, which is past the range of f16"}`},
		{"an index out of range", "POST", "/c", `{"s": "{10:1}/9"}`, 400, `{"error":"field s: expected sparse<9>, got index 10, which is not from 1 to 9"}`},
		{"an order", "GET", "/c?order=v", "", 400, `{"error":"order: expected values that have an order, and v is vector<3>: near answers the nearest first"}`},
		{"less than", "GET", "/c?v=lt.[1,2,3]", "", 400, `{"error":"<: expected values...`},
	})
}

func TestASchemaWithVectorsRoundTrips(t *testing.T) {
	const created = "create collection c (t text collate tr @sorted, u text required collate und @text(k1=2, prefix=4, chars), " +
		"v vector<3> @hnsw(l2, m=8, quant=int8), h vector<2, f16> @hnsw(cosine), s sparse<100> @inverted, at timestamp @ttl(1h));\n"
	const schema = `[{"name":"c","fields":[{"name":"t","type":"text","required":false,"collate":"tr","index":"@sorted"},` +
		`{"name":"u","type":"text","required":true,"collate":"und","index":"@text(k1=2, prefix=4, chars)"},` +
		`{"name":"v","type":"vector<3>","required":false,"collate":null,"index":"@hnsw(l2, m=8, quant=int8)"},` +
		`{"name":"h","type":"vector<2, f16>","required":false,"collate":null,"index":"@hnsw(cosine)"},` +
		`{"name":"s","type":"sparse<100>","required":false,"collate":null,"index":"@inverted"},` +
		`{"name":"at","type":"timestamp","required":false,"collate":null,"index":"@ttl(1h)"}],"paths":[]}]`
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", strings.TrimSuffix(created, "\n"))
	if got := r.want(200, "GET", "/t/x/_schema?as=fenecql", "").body; got != created {
		t.Errorf("got the statement\n%s, expected\n%s", got, created)
	}
	if got := r.want(200, "GET", "/t/x/_schema", "").body; got != schema {
		t.Errorf("got the schema\n%s, expected\n%s", got, schema)
	}
}
