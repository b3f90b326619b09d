package node

import "testing"

func TestRESTOrdersByCollations(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", "create collection c (name text collate und @sorted, city text, meta json)")
	r.want(201, "POST", "/t/acme/c", `[
		{"name": "anna", "city": "ız", "meta": {"s": "b"}}, {"name": "Ann", "city": "Iz", "meta": {"s": "A"}},
		{"name": "Ånn", "city": "iz", "meta": {"s": "a"}}, {"name": "Zoë", "city": "ça", "meta": {}}, {"name": "ANNA", "city": "cz"}]`)
	for target, want := range map[string]string{
		"order=name&select=name":                            `[{"name":"Ann"},{"name":"Ånn"},{"name":"anna"},{"name":"ANNA"},{"name":"Zoë"}]`,
		"order=name.desc&limit=2&select=name":               `[{"name":"Zoë"},{"name":"ANNA"}]`,
		"order=city.tr.desc&limit=3&select=city":            `[{"city":"iz"},{"city":"Iz"},{"city":"ız"}]`,
		"order=city.und&limit=2&select=city":                `[{"city":"ça"},{"city":"cz"}]`,
		"order=meta.s.und.asc&meta.s=not.is.null&select=id": `[{"id":3},{"id":2},{"id":1}]`,
		"name=gte.Ann&name=lt.anna&select=name&order=name":  `[{"name":"Ann"},{"name":"Ånn"}]`,
		// A pattern ignores case and the field's collation.
		"name=like.A*&select=name":                                   `[{"name":"anna"},{"name":"Ann"},{"name":"ANNA"}]`,
		"name=not.like.A*&select=name":                               `[{"name":"Ånn"},{"name":"Zoë"}]`,
		"name=like.Zo*&count":                                        `{"count":1}`,
		"select=name,count(*)&group=name&order=name.tr.desc&limit=1": `[{"name":"Zoë","count":1}]`,
	} {
		if got := r.want(200, "GET", "/t/acme/c?"+target, "").body; got != want {
			t.Errorf("%s\n got %s\nwant %s", target, got, want)
		}
	}
	if got := r.want(400, "GET", "/t/acme/c?order=id.und", "").body; got != `{"error":"collate orders texts, and id is int"}` {
		t.Error(got)
	}
}
