package node

import "testing"

func TestRESTLookups(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"parents", "POST", "/query", `{"query": "create collection products (name text, sku text, meta json)"}`, 200, `{"message":...`},
		{"children", "POST", "/query", `{"query": "create collection reviews (product_id int @hash, sku text @unique, stars int, user_id int, meta json)"}`, 200, `{"message":...`},
		{"theirs", "POST", "/query", `{"query": "create collection users (name text)"}`, 200, `{"message":...`},
		{"products", "POST", "/products", `[{"name": "pen", "sku": "p"}, {"name": "ink", "sku": "i"}, {"name": "pad"}]`, 201, `{"inserted":3}`},
		{"users", "POST", "/users", `[{"name": "Ayse"}, {"name": "Ben"}]`, 201, `{"inserted":2}`},
		{"reviews", "POST", "/reviews", `[{"product_id": 1, "stars": 5, "user_id": 1, "sku": "p"}, {"product_id": 1, "stars": 3, "user_id": 2, "meta": {"lang": "en"}},
			{"product_id": 1, "stars": 4}, {"product_id": 2, "stars": 2, "user_id": 2}]`, 201, `{"inserted":4}`},
		{"children nested", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.stars=gte.4&reviews.limit=3&select=name&reviews.select=stars", "", 200, `[{"name":"pen","reviews":[{"stars":5},{"stars":4}]},{"name":"ink","reviews":[]},{"name":"pad","reviews":[]}]`},
		{"keys in any order", "GET", "/products?reviews.select=stars&reviews.order=stars.desc&reviews.limit=1&reviews.offset=1&select=name&name=pen&reviews.on=product_id&lookup=reviews", "", 200, `[{"name":"pen","reviews":[{"stars":4}]}]`},
		{"a parent's field", "GET", "/products?lookup=reviews&reviews.on=sku&reviews.parent=sku&select=id&reviews.select=id", "", 200, `[{"id":1,"reviews":[{"id":1}]},{"id":2,"reviews":[]},{"id":3,"reviews":[]}]`},
		{"required", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.required&reviews.where=stars%3C3&select=name&reviews.select=id", "", 200, `[{"name":"ink","reviews":[{"id":4}]}]`},
		{"required before the page", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.required=true&limit=1&offset=1&select=name&reviews.select=id", "", 200, `[{"name":"ink","reviews":[{"id":4}]}]`},
		{"not required", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.required=false&id=3&select=name", "", 200, `[{"name":"pad","reviews":[]}]`},
		{"a path of the children", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.meta.lang=en&id=1&select=id&reviews.select=id", "", 200, `[{"id":1,"reviews":[{"id":2}]}]`},
		{
			"a chain", "GET", "/products?lookup=reviews,users&reviews.on=product_id&users.on=id&users.parent=user_id&select=name&reviews.select=stars&users.select=name&name=neq.pad&users.name=not.is.null", "", 200,
			`[{"name":"pen","reviews":[{"stars":5,"users":[{"name":"Ayse"}]},{"stars":3,"users":[{"name":"Ben"}]},{"stars":4,"users":[]}]},{"name":"ink","reviews":[{"stars":2,"users":[{"name":"Ben"}]}]}]`,
		},
		{"count", "GET", "/products?count&lookup=reviews&reviews.on=product_id&reviews.required&reviews.stars=gt.2", "", 200, `{"count":1}`},
		{"count without required", "GET", "/products?count&lookup=reviews&reviews.on=product_id", "", 400, `{"error":"count with lookup reviews needs it to be required: otherwise every row counts"}`},
		{"no on", "GET", "/products?lookup=reviews", "", 400, `{"error":"reviews.on is missing: it names the field of reviews that says whose it is"}`},
		{"no such collection", "GET", "/products?lookup=nothing&nothing.on=id", "", 404, `{"error":"there is no collection nothing"}`},
		{"no such field", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.nothing=1", "", 404, `{"error":"reviews has no field nothing"}`},
		{"no index", "GET", "/products?lookup=reviews&reviews.on=stars", "", 400, `{"error":"lookup: expected an index @hash or @unique on stars of reviews: create index on reviews (stars) @hash"}`},
		{"a value of the wrong type", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.stars=x", "", 400, `{"error":"field stars: expected int, got text \"x\""}`},
		{"a level that is not looked up", "GET", "/products?lookup=reviews&reviews.on=product_id&users.name=Ben", "", 404, `{"error":"products has no field users"}`},
		{"twice in a chain", "GET", "/products?lookup=reviews,reviews&reviews.on=product_id", "", 400, `{"error":"reviews is looked up twice in one chain"}`},
		{"beside itself", "GET", "/products?lookup=products&products.on=id", "", 400, `{"error":"a collection can occur only once in a chain of lookups, and products is in it already"}`},
		{"beside aggregates", "GET", "/products?lookup=reviews&reviews.on=product_id&select=count(*)", "", 400, `{"error":"lookup adds to documents, and aggregates return groups of them"}`},
		{"an aggregate of the children", "GET", "/products?lookup=reviews&reviews.on=product_id&reviews.select=count(*)", "", 400, `{"error":"a lookup answers documents and takes no aggregate"}`},
		{"too many levels", "GET", "/products?lookup=a,b,c,d,e,f,g,h,i", "", 400, `{"error":"a chain of lookups has at most 8 levels"}`},
		{"with a write", "DELETE", "/products?lookup=reviews&reviews.on=product_id&id=1", "", 400, `{"error":"lookup does not go with this method"}`},
	})
}
