package node

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// step is a request and its expected response. A want that ends in ... is the beginning of the body.
type step struct {
	says         string
	method, path string
	body         string
	status       int
	want         string
}

// play sends the requests of steps and checks the responses.
func (r *running) play(steps []step) {
	r.t.Helper()
	for _, s := range steps {
		got := r.do(s.method, s.path, s.body)
		begins, open := strings.CutSuffix(s.want, "...")
		if got.status != s.status || !(got.body == s.want || open && strings.HasPrefix(got.body, begins)) {
			r.t.Errorf("%s: %s %s %s:\n got %d %s\nexpected %d %s", s.says, s.method, s.path, s.body, got.status, got.body, s.status, s.want)
		}
	}
}

var books = []step{
	{"a collection", "POST", "/query", `{"query": "create collection books (title text required, year int @sorted, price float, tags [text], meta json, isbn text @unique, seen timestamp)"}`, 200, `{"message":...`},
	{"a list of documents", "POST", "/books", `[
		{"title": "Emma", "year": 1815, "price": 7.5, "tags": ["novel", "irony"], "meta": {"lang": "en", "rank": 2}, "isbn": "1"},
		{"title": "Tutunamayanlar", "year": 1972, "price": 12, "tags": ["novel"], "meta": {"lang": "tr", "rank": 1}, "isbn": "2"},
		{"title": "Ulysses, \"Bloom\"", "year": 1922, "meta": {"lang": "en"}, "isbn": "3", "seen": "2026-01-02T03:04:05Z"}]`, 201, `{"inserted":3}`},
	{"one document", "POST", "/books", `{"title": "Untitled"}`, 201, `{"inserted":1}`},
}

// numbered repeats text followed by the numbers from first to last.
func numbered(text string, first, last int) string {
	var b strings.Builder
	for n := first; n <= last; n++ {
		b.WriteString(text + strconv.Itoa(n))
	}
	return b.String()
}

func TestRESTReads(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(books)
	r.play([]step{
		{"by id", "GET", "/books?id=eq.1", "", 200, `[{"id":1,"title":"Emma","year":1815,"price":7.5,"tags":["novel","irony"],"meta":{"lang":"en","rank":2},"isbn":"1","seen":null}]`},
		{"a bare value", "GET", "/books?id=2&select=title", "", 200, `[{"title":"Tutunamayanlar"}]`},
		{"aggregates", "GET", "/books?select=count(*),min(year),avg(year)&year=gt.1815", "", 200, `[{"count":2,"min(year)":1922,"avg(year)":1947}]`},
		{"distinct values", "GET", "/books?select=count(distinct%20tags),COUNT(DISTINCT++year),count(distinct+meta)&year=gt.0", "", 200, `[{"count(distinct tags)":2,"count(distinct year)":3,"count(distinct meta)":3}]`},
		{"distinct values of groups in order", "GET", "/books?select=title,count(distinct+tags)&group=title&having=count(distinct+tags)%3E0&order=count(distinct+tags).desc,title.desc&limit=1", "", 200, `[{"title":"Tutunamayanlar","count(distinct tags)":1}]`},
		{"distinct values of no field", "GET", "/books?select=count(distinct+nothing)", "", 404, `{"error":"books has no field nothing"}`},
		{"distinct values of a path", "GET", "/books?select=count(distinct+meta.lang)", "", 400, `{"error":...`},
		{"a sum of distinct values", "GET", "/books?select=sum(distinct+year)", "", 400, `{"error":"sum takes every value; only count takes distinct"}`},
		{"groups", "GET", "/books?select=meta,count(*)&group=meta&having=count(*)%3E1", "", 200, `[]`},
		{"groups in order", "GET", "/books?select=year,count(*),max(id)&group=year&having=year+is+not+null+and+max(id)%3C3&order=max(id).desc&limit=1", "", 200, `[{"year":1972,"count":1,"max(id)":2}]`},
		{"group without the field selected", "GET", "/books?select=count(*)&group=year", "", 400, `{"error":"group by year: expected year in the select list"}`},
		{"group beside count", "GET", "/books?select=year&group=year&count", "", 400, `{"error":"count goes with filters and required lookups only, not with select, group, having, order, limit or offset"}`},
		{"a having that is no condition of its own", "GET", "/books?select=year&group=year&having=1%3D1)+limit+(1", "", 400, `{"error":"expected the end of the condition or one of and, or, found \")\""}`},
		{"sum of a text", "GET", "/books?select=sum(title)", "", 400, `{"error":"sum: expected a field of int or float, and title is text"}`},
		{"an aggregate of no field", "GET", "/books?select=sum(nothing)", "", 404, `{"error":"books has no field nothing"}`},
		{"in of another get", "GET", "/books?where=year+in+(get+books+select+max(year))&select=id", "", 200, `[{"id":2}]`},
		{"in of another get under not", "GET", "/books?where=id+not+in+(get+books+select+id+where+id%3E1)&select=id", "", 200, `[{"id":1}]`},
		{"all", "GET", "/books?select=id", "", 200, `[{"id":1},{"id":2},{"id":3},{"id":4}]`},
		{"neq leaves null out", "GET", "/books?year=neq.1815&select=id", "", 200, `[{"id":2},{"id":3}]`},
		{"not eq leaves null out too", "GET", "/books?year=not.eq.1815&select=id", "", 200, `[{"id":2},{"id":3}]`},
		{"lt", "GET", "/books?year=lt.1922&select=id", "", 200, `[{"id":1}]`},
		{"lte", "GET", "/books?year=lte.1922&select=id", "", 200, `[{"id":1},{"id":3}]`},
		{"gt and lt", "GET", "/books?year=gt.1815&year=lt.1972&select=id", "", 200, `[{"id":3}]`},
		{"gte", "GET", "/books?year=gte.1922&select=id", "", 200, `[{"id":2},{"id":3}]`},
		{"has", "GET", "/books?tags=has.irony&select=id", "", 200, `[{"id":1}]`},
		{"not has", "GET", "/books?tags=not.has.irony&select=id", "", 200, `[{"id":2}]`},
		{"in", "GET", "/books?year=in.(1815,1972,5)&select=id", "", 200, `[{"id":1},{"id":2}]`},
		{"in of ids", "GET", "/books?id=in.(3,1)&select=id", "", 200, `[{"id":1},{"id":3}]`},
		{"in with quotes and commas", "GET", `/books?title=in.(%22Ulysses,%20%5C%22Bloom%5C%22%22,Emma)&select=id`, "", 200, `[{"id":1},{"id":3}]`},
		{"in of nothing", "GET", "/books?year=in.()&select=id", "", 200, `[]`},
		{"not in", "GET", "/books?year=not.in.(1815)&select=id", "", 200, `[{"id":2},{"id":3}]`},
		{"is null", "GET", "/books?year=is.null&select=id", "", 200, `[{"id":4}]`},
		{"is not null", "GET", "/books?year=not.is.null&select=id", "", 200, `[{"id":1},{"id":2},{"id":3}]`},
		{"a path", "GET", "/books?meta.lang=en&select=id", "", 200, `[{"id":1},{"id":3}]`},
		{"a path with a number", "GET", "/books?meta.rank=eq.1&select=id,meta.lang", "", 200, `[{"id":2,"meta.lang":"tr"}]`},
		{"a float read from an int", "GET", "/books?price=12&select=id", "", 200, `[{"id":2}]`},
		{"an int read from a float", "GET", "/books?year=1815.0&select=id", "", 200, `[{"id":1}]`},
		{"a timestamp", "GET", "/books?seen=gte.2026-01-01T00:00:00Z&select=id", "", 200, `[{"id":3}]`},
		{"like of a beginning", "GET", "/books?title=like.U*&select=id", "", 200, `[{"id":3},{"id":4}]`},
		{"like of an int is refused", "GET", "/books?year=like.18*", "", 400, `{"error":"like: expected text, got field year, which is int"}`},
		{"like of a path", "GET", "/books?meta.lang=like.t%25&select=id", "", 200, `[{"id":2}]`},
		{"where", "GET", "/books?where=year+%3C+1900+or+year+is+null&select=id", "", 200, `[{"id":1},{"id":4}]`},
		{"where beside a filter", "GET", "/books?id=gt.1&where=year+%3C+1900+or+year+is+null+--+old&select=id", "", 200, `[{"id":4}]`},
		{"order", "GET", "/books?order=year.desc&select=id", "", 200, `[{"id":2},{"id":3},{"id":1},{"id":4}]`},
		{"order by a key twice", "GET", "/books?order=year,title,year.desc", "", 400, `{"error":"order names year twice"}`},
		{"order by a key thousands of times", "GET", "/books?order=year" + strings.Repeat(",year", 12_000), "", 400, `{"error":"order names year twice"}`},
		{"order by a path twice", "GET", "/books?order=meta.lang,meta.lang.und,meta.lang", "", 400, `{"error":"order names meta.lang twice"}`},
		{"order by too many keys", "GET", "/books?order=meta.k0" + numbered(",meta.k", 1, 1024), "", 400, `{"error":"an order has at most 1024 keys"}`},
		{"order given twice", "GET", "/books?order=year&order=title", "", 400, `{"error":"order is given twice"}`},
		{"select a field twice", "GET", "/books?select=year,title,year", "", 400, `{"error":"year is selected twice...`},
		{"select a field thousands of times", "GET", "/books?select=year" + strings.Repeat(",year", 12_000), "", 400, `{"error":"year is selected twice...`},
		{"select too many paths", "GET", "/books?select=meta.k0" + numbered(",meta.k", 1, 1024), "", 400, `{"error":"at most 1024 items are selected"}`},
		{"group by a field twice", "GET", "/books?select=year,count(*)&group=year,year", "", 400, `{"error":"group: expected the name of a field...`},
		{"group given twice", "GET", "/books?select=year,count(*)&group=year&group=year", "", 400, `{"error":"group is given twice"}`},
		{"where given twice", "GET", "/books?where=year=1&where=year=1", "", 400, `{"error":"where is given twice"}`},
		{"order by two", "GET", "/books?order=meta.lang,year.desc&select=id&year=not.is.null", "", 200, `[{"id":3},{"id":1},{"id":2}]`},
		{"a page", "GET", "/books?order=year&limit=2&offset=1&select=id", "", 200, `[{"id":1},{"id":3}]`},
		{"no rows", "GET", "/books?limit=0", "", 200, `[]`},
		{"count", "GET", "/books?count", "", 200, `{"count":4}`},
		{"count with a filter", "GET", "/books?year=gte.1900&count=", "", 200, `{"count":2}`},
		{"count that says true", "GET", "/books?count=true&year=gte.1900", "", 200, `{"count":2}`},
		{"count that says false", "GET", "/books?count=false&year=1815&select=id", "", 200, `[{"id":1}]`},
		{"count and count=true", "GET", "/books?count&count=true", "", 400, `{"error":"count is given twice"}`},
		{"a count of an unknown field", "GET", "/books?count=1", "", 404, `{"error":"books has no field count"}`},
		{"count=true of lookups that are not required", "GET", "/books?lookup=books&count=true", "", 400, `{"error":"...`},
		{"count=true of a write", "DELETE", "/books?count=true&id=9", "", 400, `{"error":"count does not go with this method"}`},
		{"count beside a limit", "GET", "/books?count&limit=1", "", 400, `{"error":"count...`},
		{"an unknown field", "GET", "/books?author=eq.x", "", 404, `{"error":"...`},
		{"an unknown field to order by", "GET", "/books?order=author", "", 404, `{"error":"...`},
		{"an unknown field to select", "GET", "/books?select=author", "", 404, `{"error":"...`},
		{"an unknown collection", "GET", "/films", "", 404, `{"error":"...`},
		{"an invalid collection name", "GET", "/a-b", "", 404, `{"error":"...`},
		{"a where that is no condition", "GET", "/books?where=year+%3C", "", 400, `{"error":"...`},
		{"a where that would end its parentheses", "GET", "/books?where=year=1)+or+(year=2", "", 400, `{"error":"...`},
		{"a where with a parameter", "GET", "/books?where=year=$1&id=1", "", 400, `{"error":"...`},
		{"nothing below a collection", "GET", "/books/1", "", 404, `{"error":"...`},
		{"empty segments are skipped", "GET", "//books//?id=1&select=id", "", 200, `[{"id":1}]`},
		{"an escaped letter of the name", "GET", "/%62ooks?id=1&select=id", "", 200, `[{"id":1}]`},
		{"a bad escape in the path", "GET", "/bo%zzks", "", 400, `{"error":"...`},
		{"a NUL in the path", "GET", "/bo%00ks", "", 400, `{"error":"...`},
	})
	got := r.want(400, "GET", "/books?year=eq.abc", "")
	if !strings.Contains(got.body, "year") || strings.Contains(got.body, "line") {
		t.Errorf("a bad value must be named by its field, without a position in a statement that the client did not write: %s", got.body)
	}
}

func TestFieldsCanBeNamedLikeKeywords(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"a collection too", "POST", "/query", `{"query": "create collection all (not int, case int, order int, select int, limit int, count int, desc int, where text, in [text], by int, from int)"}`, 200, `{"message":...`},
		{"a document", "POST", "/all", `{"not": 2, "case": 3, "order": 4, "select": 5, "limit": 6, "count": 7, "desc": 8, "where": "x", "in": ["y"]}`, 201, `{"inserted":1}`},
		{"filters", "GET", "/all?not=2&case=3&count=7&desc=8&in=has.y&select=id", "", 200, `[{"id":1}]`},
		{"like of a field called where", "GET", "/all?where=like(where,'X*')&count=gt.6&count=true", "", 200, `{"count":1}`},
		{"not before operators", "GET", "/all?not=not.eq.1&case=not.in.(4)&desc=not.is.null&select=id", "", 200, `[{"id":1}]`},
		{"selected", "GET", "/all?select=order,select,limit,count,desc,not,case,where,in,by,from", "", 200, `[{"order":4,"select":5,"limit":6,"count":7,"desc":8,"not":2,"case":3,"where":"x","in":["y"],"by":null,"from":null}]`},
		{"ordered by", "GET", "/all?order=order.desc,select,limit,count.asc,desc.desc,not,case,where,by,from&limit=1&offset=0&select=id", "", 200, `[{"id":1}]`},
		{"in where", "GET", "/all?where=limit=6+and+where='x'+and+not=2&select=id", "", 200, `[{"id":1}]`},
		{"changed", "PATCH", "/all?not=2", `{"not": 3, "limit": 4, "select": 5, "where": "y"}`, 200, `{"updated":1}`},
		{"deleted", "DELETE", "/all?not=3", ``, 200, `{"deleted":1}`},
		{"all of it", "DELETE", "/all/all", ``, 200, `{"deleted":0}`},
		{"a word that is a value is no field", "GET", "/all?true=1", ``, 404, `{"error":"there is no field true: the word is a value"}`},
	})
}

func TestRESTWrites(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(books)
	r.play([]step{
		{"a taken id", "POST", "/books", `{"id": 1, "title": "x"}`, 409, `{"error":"...`},
		{"a taken unique value", "POST", "/books", `[{"title": "x"}, {"title": "y", "isbn": "1"}]`, 409, `{"error":"...`},
		{"which wrote nothing", "GET", "/books?count", "", 200, `{"count":4}`},
		{"a missing required field", "POST", "/books", `{"year": 1}`, 400, `{"error":"...`},
		{"an unknown field", "POST", "/books", `{"title": "x", "author": "y"}`, 404, `{"error":"...`},
		{"a wrong type", "POST", "/books", `{"title": "x", "year": "abc"}`, 400, `{"error":"...`},
		{"text is no int", "POST", "/books", `{"title": "x", "year": "5"}`, 400, `{"error":"...`},
		{"no object", "POST", "/books", `5`, 400, `{"error":"insert: expected...`},
		{"no body", "POST", "/books", ``, 400, `{"error":"...`},
		{"no JSON", "POST", "/books", `{"title"`, 400, `{"error":"...`},
		{"a key twice", "POST", "/books", `{"title": "x", "title": "y"}`, 400, `{"error":"...`},
		{"a query string", "POST", "/books?id=1", `{"title": "x"}`, 400, `{"error":"an insert takes no...`},
		{"if absent, taken", "POST", "/books?if=absent", `[{"id": 1, "title": "x"}, {"title": "y", "isbn": "1"}]`, 201, `{"inserted":0}`},
		{"if absent twice", "POST", "/books?if=absent&if=absent", `{"title": "x"}`, 400, `{"error":"if is given twice"}`},
		{"if of something else", "POST", "/books?if=present", `{"title": "x"}`, 400, `{"error":"if: expected absent, got \"present\""}`},
		{"if of nothing", "POST", "/books?if", `{"title": "x"}`, 400, `{"error":"if: expected absent, got \"\""}`},
		{"if absent beside a filter", "POST", "/books?if=absent&id=1", `{"title": "x"}`, 400, `{"error":"an insert takes no...`},
		{"an update", "PATCH", "/books?id=1", `{"year": 1816, "meta.lang": "fr"}`, 200, `{"updated":1}`},
		{"is there", "GET", "/books?id=1&select=year,meta", "", 200, `[{"year":1816,"meta":{"lang":"fr","rank":2}}]`},
		{"an update to null", "PATCH", "/books?id=1", `{"year": null}`, 200, `{"updated":1}`},
		{"of several", "PATCH", "/books?year=gt.1900", `{"price": 1}`, 200, `{"updated":2}`},
		{"of none", "PATCH", "/books?id=99", `{"price": 1}`, 200, `{"updated":0}`},
		{"by where", "PATCH", "/books?where=id=2", `{"price": 2}`, 200, `{"updated":1}`},
		{"of an unknown field", "PATCH", "/books?id=1", `{"author": 1}`, 404, `{"error":"...`},
		{"of an invalid name", "PATCH", "/books?id=1", `{"a b": 1}`, 400, `{"error":"update: expected the names...`},
		{"of a path that would be a statement", "PATCH", "/books?id=1", `{"price: 1} where id = 2 --": 1}`, 400, `{"error":"...`},
		{"of the id", "PATCH", "/books?id=1", `{"id": 7}`, 400, `{"error":"...`},
		{"of nothing", "PATCH", "/books?id=1", `{}`, 400, `{"error":"update: expected an object...`},
		{"with a list", "PATCH", "/books?id=1", `[{"price": 1}]`, 400, `{"error":"update: expected an object...`},
		{"without a filter", "PATCH", "/books", `{"price": 1}`, 400, `{"error":"a filter is missing...`},
		{"with a limit", "PATCH", "/books?id=1&limit=1", `{"price": 1}`, 400, `{"error":"limit does not go...`},
		{"all with a filter", "PATCH", "/books/all?id=1", `{"price": 1}`, 400, `{"error":"books/all is the whole...`},
		{"all", "PATCH", "/books/all", `{"price": 3}`, 200, `{"updated":4}`},
		{"a delete without a filter", "DELETE", "/books", ``, 400, `{"error":"a filter is missing...`},
		{"a delete", "DELETE", "/books?year=gt.1950", ``, 200, `{"deleted":1}`},
		{"a delete with select", "DELETE", "/books?id=1&select=id", ``, 400, `{"error":"select does not go...`},
		{"all with a filter", "DELETE", "/books/all?id=1", ``, 400, `{"error":"books/all is the whole...`},
		{"all", "DELETE", "/books/all", ``, 200, `{"deleted":3}`},
		{"all of nothing", "DELETE", "/films/all", ``, 404, `{"error":"...`},
		{"an empty list", "POST", "/books", `[]`, 201, `{"inserted":0}`},
		{"ids go on", "POST", "/books", `{"title": "x"}`, 201, `{"inserted":1}`},
		{"after the last", "GET", "/books?select=id", ``, 200, `[{"id":5}]`},
	})
}

func TestQueryAndBatch(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play(books)
	r.play([]step{
		{"rows", "POST", "/query", `{"query": "get books select id where year < $1 and title = $2", "params": [1900, "Emma"]}`, 200, `[{"id":1}]`},
		{"a count", "POST", "/query", `{"query": "set books {price: 1} where id = 1"}`, 200, `{"affected":1}`},
		{"returning", "POST", "/query", `{"query": "set books {price: price + 1} where id = 1 returning price"}`, 200, `[{"price":2}]`},
		{"a document as parameter", "POST", "/query", `{"params": [{"title": "ü", "meta": {"a": [1.5, null]}}], "query": "put books $1"}`, 200, `{"affected":1}`},
		{"no statement", "POST", "/query", `{"query": "gett books"}`, 400, `{"error":"...`},
		{"an unknown collection", "POST", "/query", `{"query": "get films"}`, 404, `{"error":"...`},
		{"require", "POST", "/query", `{"query": "del books where id = 99 require 1"}`, 412, `{"error":"...`},
		{"near without a vector field", "POST", "/query", `{"query": "get books near v [1,2]"}`, 404, `{"error":"books has no field v line 1 column 16"}`},
		{"too few parameters", "POST", "/query", `{"query": "get books where id = $1"}`, 400, `{"error":"...`},
		{"an unknown key", "POST", "/query", `{"query": "collections", "parms": []}`, 400, `{"error":"\"parms\" is no key...`},
		{"a query that is no text", "POST", "/query", `{"query": 5}`, 400, `{"error":"expected an object...`},
		{"no query", "POST", "/query", `{"params": []}`, 400, `{"error":"expected an object...`},
		{"parameters that are no list", "POST", "/query", `{"query": "collections", "params": {}}`, 400, `{"error":"expected an object...`},
		{"no object", "POST", "/query", `["collections"]`, 400, `{"error":"expected an object...`},
		{"text after it", "POST", "/query", `{"query": "collections"} x`, 400, `{"error":"the JSON...`},
		{"two of them", "POST", "/query", `{"query": "collections"}{"query": "collections"}`, 400, `{"error":"...`},
		{"a key twice", "POST", "/query", `{"query": "collections", "query": "collections"}`, 400, `{"error":"...`},
		{"a lone surrogate", "POST", "/query", `{"query": "collections", "params": ["\ud800"]}`, 400, `{"error":"...`},
		{"bytes that are no UTF-8", "POST", "/query", "{\"query\": \"get books where title = '\xff'\"}", 400, `{"error":"...`},
		{"no body", "POST", "/query", ``, 400, `{"error":"...`},
		{"a parameter as deep as json goes", "POST", "/query", `{"query": "set books {meta: $1} where id = 1", "params": [` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `]}`, 200, `{"affected":1}`},
		{"a parameter deeper than that", "POST", "/query", `{"query": "set books {meta: $1} where id = 1", "params": [` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `]}`, 400, `{"error":"...`},
		{"a batch", "POST", "/batch", `{"query": "put books {title: \"b\"}"}` + "\n\r\n" + `{"query": "get books select title where title = $1", "params": ["b"]}` + "\n" + `{"query": "create collection d (n int)"}`, 200, `{"ok":3,"results":[{"affected":1},{"rows":[{"title":"b"}]},{"message":"...`},
		{"a batch of every kind of read", "POST", "/batch", `{"query": "set books {price: 3} where title = \"b\" returning price"}` + "\n" + `{"query": "get books where id = 99"}` + "\n" + `{"query": "get books where title = \"b\" count"}` + "\n" + `{"query": "del books where id = 99"}`, 200, `{"ok":4,"results":[{"rows":[{"price":3}]},{"rows":[]},{"rows":[{"count":1}]},{"affected":0}]}`},
		{"a batch with compact answers the same", "POST", "/batch", `{"query": "get books where id = 99"}` + "\n" + `{"query": "compact"}`, 200, `{"ok":2,"results":[{"rows":[]},{"message":"...`},
		{"a batch of blank lines", "POST", "/batch", "\n \r\n\t\n", 400, `{"error":"the batch is empty: expected a statement a line, {\"query\": \"...\", \"params\": [...]}"}`},
		{"a batch without a body", "POST", "/batch", "", 400, `{"error":"the batch is empty...`},
		{"a failing batch", "POST", "/batch", `{"query": "put books {title: \"c\"}"}` + "\n" + `{"query": "del books where id = 99 require 1"}`, 412, `{"error":"...`},
		{"wrote nothing", "GET", "/books?title=c&count", "", 200, `{"count":0}`},
		{"a batch with an invalid line", "POST", "/batch", `{"query": "put books {title: \"c\"}"}` + "\n" + `{"query"`, 400, `{"error":"...`},
		{"wrote nothing either", "GET", "/books?title=c&count", "", 200, `{"count":0}`},
		{"a compact in a batch", "POST", "/batch", `{"query": "put books {title: \"c\"}"}` + "\n" + `{"query": "compact"}` + "\n" + `{"query": "get films"}`, 404, `{"error":"...`},
		{"keeps what ran", "GET", "/books?title=c&count", "", 200, `{"count":1}`},
	})
	for body, want := range map[string]string{
		`{"query": "get books"}` + "\n\n" + `{"query": "get films"}`:                               `,"completed":0,"at":1}`,
		`{"query": "get books"}` + "\n" + `{}`:                                                     `,"completed":0,"at":1}`,
		`{"query": "compact"}` + "\n" + `{"query": "get books"}` + "\n" + `{"query": "get films"}`: `,"completed":2,"at":2}`,
	} {
		if got := r.do("POST", "/batch", body); !strings.HasPrefix(got.body, `{"error":"`) || !strings.HasSuffix(got.body, want) {
			t.Errorf("%s: got %s, expected it to end in %s", body, got.body, want)
		}
	}
	got := r.want(400, "POST", "/query", `{"query": "get books\nwhere year <"}`)
	if !strings.Contains(got.body, "line 2 column") {
		t.Errorf("got %s, expected the position in the statement", got.body)
	}
}

func TestRootCollectionsAndSchema(t *testing.T) {
	r := start(t, Config{Version: "1.2.3"})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.url += "/t/x"
	r.play([]step{
		{"an empty tenant", "GET", "", "", 200, `{"fenec":"1.2.3","collections":[]}`},
		{"no collections", "GET", "/collections", "", 200, `[]`},
	})
	r.play(books)
	r.play([]step{
		{"an index on a path", "POST", "/query", `{"query": "create index on books (meta.lang) @hash"}`, 200, `{"message":...`},
		{"another collection", "POST", "/query", `{"query": "create collection Äpfel (n int)"}`, 200, `{"message":...`},
		{"the root", "GET", "/", "", 200, `{"fenec":"1.2.3","collections":["books","Äpfel"]}`},
		{"the schemas", "GET", "/collections", "", 200, `[{"name":"books","fields":[{"name":"title","type":"text","required":true,"collate":null,"index":null},{"name":"year","type":"int","required":false,"collate":null,"index":"@sorted"},{"name":"price","type":"float","required":false,"collate":null,"index":null},{"name":"tags","type":"[text]","required":false,"collate":null,"index":null},{"name":"meta","type":"json","required":false,"collate":null,"index":null},{"name":"isbn","type":"text","required":false,"collate":null,"index":"@unique"},{"name":"seen","type":"timestamp","required":false,"collate":null,"index":null}],"paths":[{"path":"meta.lang","index":"@hash"}],"documents":4},{"name":"Äpfel","fields":[{"name":"n","type":"int","required":false,"collate":null,"index":null}],"paths":[],"documents":0}]`},
		{"the schema", "GET", "/_schema", "", 200, `[{"name":"books","fields":[...`},
		{"the schema as something else", "GET", "/_schema?as=sql", "", 400, `{"error":...`},
		{"no statistics of other things", "GET", "/_stats", "", 404, `{"error":...`},
		{"whoami", "GET", "/_whoami", "", 501, `{"error":...`},
		{"a reserved name", "GET", "/_nothing", "", 404, `{"error":...`},
	})
	statements := r.want(200, "GET", "/_schema?as=fenecql", "").body
	r.url = strings.TrimSuffix(r.url, "/t/x")
	r.wantAdmin(201, "PUT", "tenants/y", "")
	for _, statement := range strings.Split(strings.TrimSuffix(statements, "\n"), "\n") {
		r.query("y", statement)
	}
	if got := r.want(200, "GET", "/t/y/_schema?as=fenecql", "").body; got != statements {
		t.Errorf("the statements create another schema: got\n%s\nexpected\n%s", got, statements)
	}
}

func TestMethodsAndHeaders(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 2)
	for _, tc := range []struct{ path, allow string }{
		{"/t/x/", "GET, HEAD, OPTIONS"},
		{"/t/x/collections", "GET, HEAD, OPTIONS"},
		{"/t/x/c", "GET, HEAD, POST, PATCH, DELETE, OPTIONS"},
		{"/t/x/c/all", "PATCH, DELETE, OPTIONS"},
		{"/t/x/query", "POST, OPTIONS"},
		{"/t/x/batch", "POST, OPTIONS"},
		{"/t/x/_schema", "GET, HEAD, OPTIONS"},
		{"/t/x/_changes", "GET, HEAD, OPTIONS"},
		{"/t/x/_changes/consumers", "GET, HEAD, OPTIONS"},
		{"/t/x/_changes/consumers/k", "POST, DELETE, OPTIONS"},
		{"/t/x/_stats/statements", "GET, HEAD, DELETE, OPTIONS"},
		{"/_health", "GET, HEAD, OPTIONS"},
		{"/_metrics", "GET, HEAD, OPTIONS"},
	} {
		if got := r.want(405, "TRACE", tc.path, ""); got.header.Get("Allow") != tc.allow {
			t.Errorf("%s: got Allow %q, expected %q", tc.path, got.header.Get("Allow"), tc.allow)
		}
		if got := r.want(204, "OPTIONS", tc.path, ""); got.header.Get("Allow") != tc.allow || got.body != "" {
			t.Errorf("OPTIONS %s: got Allow %q, expected %q", tc.path, got.header.Get("Allow"), tc.allow)
		}
	}
	get, head := r.want(200, "GET", "/t/x/c", ""), r.want(200, "HEAD", "/t/x/c", "")
	if head.body != "" || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
		t.Errorf("HEAD: got the body %q and the length %s, expected none and %s", head.body, head.header.Get("Content-Length"), get.header.Get("Content-Length"))
	}
	if got := get.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got Content-Type %q, expected application/json", got)
	}
	wrote := r.want(201, "POST", "/t/x/c", `{"n": 1}`)
	if wrote.header.Get("Fenec-Seq") != "4" || wrote.header.Get("Fenec-History") == "" {
		t.Errorf("got %v for an insert, expected change 4 and its history", wrote.header)
	}
	if got := r.want(200, "DELETE", "/t/x/c?id=99", ""); got.header.Get("Fenec-Seq") != "4" {
		t.Errorf("got %v for a delete of no row, expected change 4", got.header)
	}
	if got := r.want(200, "POST", "/t/x/query", `{"query": "put c {n: 2}"}`); got.header.Get("Fenec-Seq") != "5" {
		t.Errorf("got %v for a statement, expected change 5", got.header)
	}
	if got := r.want(200, "POST", "/t/x/batch", `{"query": "put c {n: 2}"}`); got.header.Get("Fenec-Seq") != "6" {
		t.Errorf("got %v for a batch, expected change 6", got.header)
	}
	if get.header.Get("Fenec-Seq") != "" {
		t.Errorf("got %v for a plain read, expected no position", get.header)
	}
	if got := r.want(200, "GET", "/t/x/c", "", "X-Request-Id", "abc"); got.header.Get("X-Request-Id") != "abc" {
		t.Errorf("got %v, expected the X-Request-Id of the request", got.header)
	}
	for _, tc := range []struct {
		method, name, value string
		status              int
	}{
		{"PATCH", "Fenec-Wait", "100", 200},
		{"GET", "Fenec-Router", "1.2.3.4 00", 200},
	} {
		body := ""
		if tc.method != "GET" {
			body = `{"n": 1}`
		}
		if got := r.do(tc.method, "/t/x/c?id=gt.0", body, tc.name, tc.value); got.status != tc.status {
			t.Errorf("%s with %s: got %d %s, expected %d", tc.method, tc.name, got.status, got.body, tc.status)
		}
	}
}

func TestPathsOutsideATenant(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	r.play([]step{
		{"the root of a node", "GET", "/", "", 404, `{"error":...`},
		{"anything else", "GET", "/c", "", 404, `{"error":...`},
		{"no tenant's name", "GET", "/t", "", 404, `{"error":...`},
		{"an upper-case letter", "GET", "/t/X/c", "", 400, `{"error":...`},
		{"a dot", "GET", "/t/x.y/c", "", 400, `{"error":...`},
		{"an escaped tenant", "GET", "/t/%78/c", "", 400, `{"error":...`},
		{"dots that leave the tenant", "GET", "/t/x/%2e%2e/c", "", 400, `{"error":...`},
		{"empty segments", "GET", "/t//x//c?count", "", 200, `{"count":1}`},
		{"health", "GET", "/_health", "", 200, `{"status":"ok"}`},
		{"nothing below it", "GET", "/_health/x", "", 404, `{"error":...`},
	})
}

func TestMetricsCountTenantsAndRequests(t *testing.T) {
	r := start(t, Config{})
	r.fill("secret-name", 1)
	r.want(404, "GET", "/t/nobody/", "")
	got := r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken)
	for _, line := range []string{
		"fenec_tenants 1\n", "fenec_tenants_open 1\n", "fenec_storage_failed 0\n", `fenec_requests_total{class="4xx"} 1` + "\n",
		"fenec_tenants_frozen 0\n", `fenec_requests_total{class="5xx"} 0` + "\n",
	} {
		if !strings.Contains(got.body, line) {
			t.Errorf("expected %q in\n%s", line, got.body)
		}
	}
	if strings.Contains(got.body, "secret-name") {
		t.Error("a metric names a tenant")
	}
	names := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(got.body), "\n") {
		name, _, _ := strings.Cut(line, " ")
		if names[name] && !strings.HasPrefix(line, "#") {
			t.Errorf("got the series %s twice, expected once", name)
		}
		names[name] = true
	}
}

func TestAFileIsServedAtTheRoot(t *testing.T) {
	file := t.TempDir() + "/data.fenec"
	r := start(t, Config{File: file})
	r.play([]step{
		{"a file that did not exist", "GET", "/", "", 200, `{"fenec":"test","collections":[]}`},
		{"a collection", "POST", "/query", `{"query": "create collection t (n int)"}`, 200, `{"message":...`},
		{"a collection named like the tenants' path", "POST", "/t", `{"n": 1}`, 201, `{"inserted":1}`},
		{"is one", "GET", "/t?n=1", ``, 200, `[{"id":1,"n":1}]`},
		{"and no tenant is below it", "GET", "/t/x/", ``, 404, `{"error":...`},
		{"health", "GET", "/_health", "", 200, `{"status":"ok"}`},
		{"there are no tenants to manage", "GET", "/_admin/tenants", "", 404, `{"error":...`},
	})
	r.tenants.Sweep()
	r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken)
	r.stop()
	r = start(t, Config{File: file, ReadOnly: true})
	r.play([]step{
		{"reads of a read-only node", "GET", "/t?count", ``, 200, `{"count":1}`},
		{"writes of one", "POST", "/t", `{"n": 1}`, 403, `{"error":...`},
	})
}

func TestABodyPastTheLimitIsRefused(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 0)
	req, err := http.NewRequest("POST", r.url+"/t/x/c", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Body, req.ContentLength = http.NoBody, 64<<20+1
	req.Body = struct{ *zeroes }{&zeroes{}}
	req.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 1 << 40}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("got %d, expected 413", resp.StatusCode)
	}
}

// zeroes is an endless body, which the client must not send.
type zeroes struct{}

func (*zeroes) Read(p []byte) (int, error) { return len(p), nil }
func (*zeroes) Close() error               { return nil }
