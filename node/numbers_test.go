package node

import "testing"

func TestRESTComparesNumbersExactly(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"a collection", "POST", "/query", `{"query": "create collection c (n int, x float, l [int], t timestamp, j json)"}`, 200, `{"message":...`},
		{"one with indexes", "POST", "/query", `{"query": "create collection s (n int @sorted, x float @hash)"}`, 200, `{"message":...`},
		{"documents", "POST", "/c", `[{"n": 1, "x": 9007199254740992.0, "l": [1, 2], "t": 1000, "j": {"v": 9007199254740993}}, {"n": 2, "x": 0.5, "t": 2000, "j": {"v": 1.5}}, {}]`, 201, `{"inserted":3}`},
		{"the same", "POST", "/s", `[{"n": 1, "x": 9007199254740992.0}, {"n": 2, "x": 0.5}, {}]`, 201, `{"inserted":3}`},
		{"an int equals no fraction", "GET", "/c?n=1.5", "", 200, `[]`},
		{"by an index too", "GET", "/s?n=eq.1.5", "", 200, `[]`},
		{"and differs from it", "GET", "/c?n=neq.1.5&select=id", "", 200, `[{"id":1},{"id":2}]`},
		{"it is more", "GET", "/c?n=gt.1.5&select=id", "", 200, `[{"id":2}]`},
		{"or less", "GET", "/s?n=lte.1.5&select=id", "", 200, `[{"id":1}]`},
		{"or among others", "GET", "/c?n=in.(1.5,2.0,1e30)&select=id", "", 200, `[{"id":2}]`},
		{"or not", "GET", "/s?n=not.in.(1.5,2.0)&select=id", "", 200, `[{"id":1}]`},
		{"a list has no fraction", "GET", "/c?l=has.1.5", "", 200, `[]`},
		{"a number past 64 bits", "GET", "/c?n=lt.99999999999999999999&select=id", "", 200, `[{"id":1},{"id":2}]`},
		{"an id of none", "GET", "/c?id=1.5", "", 200, `[]`},
		{"ids from one on", "GET", "/c?id=gte.1.5&select=id", "", 200, `[{"id":2},{"id":3}]`},
		{"an int that no float is", "GET", "/c?x=9007199254740993", "", 200, `[]`},
		{"by an index too", "GET", "/s?x=in.(9007199254740993,0.50)&select=id", "", 200, `[{"id":2}]`},
		{"and a float below it", "GET", "/c?x=lt.9007199254740993&select=id", "", 200, `[{"id":1},{"id":2}]`},
		{"a path", "GET", "/c?j.v=gt.9007199254740992&select=id", "", 200, `[{"id":1}]`},
		{"a timestamp and a part of a millisecond", "GET", "/c?t=gt.1000.5&select=id", "", 200, `[{"id":2}]`},
		{"which none equals", "GET", "/c?t=1000.5", "", 400, `{"error":"field t: expected timestamp...`},
		{"a text that is not a number", "GET", "/c?n=1.5.2", "", 400, `{"error":"field n: expected int...`},
		{"where", "GET", "/c?where=n+in+[1.5,2]+and+x+!%3D+9007199254740993&select=id", "", 200, `[{"id":2}]`},
		{"having", "GET", "/c?select=max(x)&having=max(x)%3C9007199254740993&where=x+is+not+null", "", 200, `[{"max(x)":9007199254740992}]`},
		{"changes", "PATCH", "/c?n=gt.1.5", `{"x": 0.25}`, 200, `{"updated":1}`},
		{"nothing", "DELETE", "/c?n=1.5", "", 200, `{"deleted":0}`},
		{"a parameter", "POST", "/query", `{"query": "get c where n = $1 or x = $2 select id", "params": [1.5, 9007199254740993]}`, 200, `[]`},
		{"a list of them", "POST", "/query", `{"query": "get c where n in $1 select id", "params": [[1.5, 2]]}`, 200, `[{"id":2}]`},
	})
}

func TestAnEmptyListHasNoMembers(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(books)
	r.play([]step{
		{"in", "GET", "/books?year=in.()&select=id", "", 200, `[]`},
		{"not in, with nulls", "GET", "/books?year=not.in.()&select=id", "", 200, `[{"id":1},{"id":2},{"id":3},{"id":4}]`},
		{"a null is unknown of a list with members", "GET", "/books?year=not.in.(5)&select=id", "", 200, `[{"id":1},{"id":2},{"id":3}]`},
		{"a get of nothing", "GET", "/books?where=year+not+in+(get+books+select+year+where+id+%3E+9)&select=id", "", 200, `[{"id":1},{"id":2},{"id":3},{"id":4}]`},
		{"a parameter", "POST", "/query", `{"query": "get books where year not in $1 count", "params": [[]]}`, 200, `[{"count":4}]`},
	})
}
