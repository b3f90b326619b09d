package node

import "testing"

func TestSumsOfFloatsAreCompensated(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"a collection", "POST", "/query", `{"query": "create collection c (k text, x float)"}`, 200, `{"message":...`},
		{"tenths", "POST", "/c", `[{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1},{"k":"a","x":0.1}]`, 201, `{"inserted":10}`},
		{"large ones", "POST", "/c", `[{"k":"b","x":1e308},{"k":"b","x":1e308},{"k":"b","x":-1e308}]`, 201, `{"inserted":3}`},
		{"one sum", "GET", "/c?k=a&select=sum(x),avg(x)", "", 200, `[{"sum(x)":1,"avg(x)":0.1}]`},
		{"groups", "GET", "/c?select=k,sum(x)&group=k", "", 200, `[{"k":"a","sum(x)":1},{"k":"b","sum(x)":1e+308}]`},
		{"having", "GET", "/c?select=k&group=k&having=sum(x)+%3D+1", "", 200, `[{"k":"a"}]`},
		{"in order", "GET", "/c?select=k,sum(x)&group=k&order=sum(x).desc&limit=1", "", 200, `[{"k":"b","sum(x)":1e+308}]`},
		{"one more", "POST", "/c", `{"k":"b","x":1e308}`, 201, `{"inserted":1}`},
		{"a sum past the range", "GET", "/c?select=k,sum(x)&group=k", "", 400, `{"error":"sum(x) does not fit a float...`},
	})
}
