package node

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const swapNames = "alter collection c rename field n to tmp; alter collection c rename field m to n; alter collection c rename field tmp to m"

// alterCases alter the collection c (n int, m int, s text, j json), which holds the rows {1, 10, "a", {"k": 1}} and
// {2, 20, "b", {"k": 2}}. The last change before is 3.
var alterCases = []struct {
	says   string
	shape  string // the query string of the live query
	alters string // statements with semicolons between them
	event  string // what the stream sends when they are one block
}{
	{"two fields swap names under a filter", "n=gt.5&select=id", swapNames, `seed 6 [{"id":1} {"id":2}]`},
	{"two fields swap names under a select", "select=n", swapNames, `seed 6 [{"id":1,"n":10} {"id":2,"n":20}]`},
	{"two fields swap names under a where", "where=(n%2B0)%3E5&select=id", swapNames, `seed 6 [{"id":1} {"id":2}]`},
	{
		"two fields swap names and all fields are selected", "n=10", swapNames,
		`seed 6 [{"id":1,"m":1,"n":10,"s":"a","j":{"k":1}}]`,
	},
	{
		"a field that is filtered by is dropped and added again", "n=is.null&select=id",
		"alter collection c drop field n; alter collection c add field n int", `seed 5 [{"id":1} {"id":2}]`,
	},
	{
		"a field that is filtered by is dropped and added again with another type", "n=not.is.null&select=id",
		"alter collection c drop field n; alter collection c add field n text", `seed 5 []`,
	},
	{
		"a path is selected of a field that is dropped and added again", "select=j.k",
		"alter collection c drop field j; alter collection c add field j json", `seed 5 [{"id":1,"j.k":null} {"id":2,"j.k":null}]`,
	},
	{
		"a path is filtered by of a field that is dropped and added again", "j.k=is.null&select=m",
		"alter collection c drop field j; alter collection c add field j json", `seed 5 [{"id":1,"m":10} {"id":2,"m":20}]`,
	},
	{
		"a field that is selected is replaced by another", "select=s",
		"alter collection c drop field s; alter collection c rename field m to s", `seed 5 [{"id":1,"s":10} {"id":2,"s":20}]`,
	},
	{
		"a field is added and all fields are selected", "n=1", "alter collection c add field t text collate tr",
		`seed 4 [{"id":1,"n":1,"m":10,"s":"a","j":{"k":1},"t":null}]`,
	},
	{
		"a field is dropped and all fields are selected", "n=1&select=*", "alter collection c drop field s",
		`seed 4 [{"id":1,"n":1,"m":10,"j":{"k":1}}]`,
	},
	{
		"a field is renamed and all fields are selected", "n=1", "alter collection c rename field s to text",
		`seed 4 [{"id":1,"n":1,"m":10,"text":"a","j":{"k":1}}]`,
	},
	{
		"rows are written before and after the swap", "n=gt.15&select=id",
		"put c {n: 16}; " + swapNames + "; put c {m: 17}; put c {n: 18}", `seed 9 [{"id":2} {"id":5}]`,
	},
	{"a field that the shape does not read is dropped", "n=1&select=m", "alter collection c drop field s", `change 4 [] [] true`},
	{"a field that the shape does not read is added", "n=1&select=m", "alter collection c add field t int", `change 4 [] [] true`},
	{"fields that the shape does not read swap names", "s=a&select=id", swapNames, `change 6 [] [] true`},
	{"fields swap names and swap them back", "n=1&select=id", swapNames + ";" + swapNames, `change 9 [] [] true`},
	{"an index is created on a field of the shape", "n=1", "create index on c (n) @sorted", `change 4 [] [] true`},
	{"a field that is filtered by is dropped", "n=1&select=id", "alter collection c drop field n", `error c has no field n`},
	{"a field that is selected is renamed", "select=s", "alter collection c rename field s to t", `error c has no field s`},
	{
		"a field that is filtered by gets a type that the value of the filter does not have", "s=eq.a",
		"alter collection c drop field s; alter collection c add field s int", `error`,
	},
	{
		"a path is selected of a field that becomes a number", "select=j.k",
		"alter collection c drop field j; alter collection c add field j int", `error`,
	},
	{
		"the collection is dropped and created again", "n=1",
		"drop collection c; create collection c (n int, m int, s text, j json)", `error collection c was dropped`,
	},
}

func TestAnAlterSeedsTheLiveQueriesThatReadItsFields(t *testing.T) {
	r := start(t, Config{})
	for i, tc := range alterCases {
		t.Run(tc.says, func(t *testing.T) {
			r := &running{Node: r.Node, t: t, url: r.url, client: r.client}
			tenant := fmt.Sprintf("open%d", i)
			r.fillToAlter(tenant)
			w := r.watch("/t/" + tenant + "/c/changes?" + tc.shape)
			w.next()
			r.block(tenant, tc.alters)
			if got := w.next().String(); got != tc.event && !(strings.HasPrefix(tc.event, "error") && strings.HasPrefix(got, tc.event)) {
				t.Fatalf("got the event\n%s\nexpected\n%s", got, tc.event)
			}
			if !strings.HasPrefix(tc.event, "error") {
				w.same(r, "/t/"+tenant+"/c?"+withID(tc.shape))
			}
		})
	}
}

func TestALiveQueryResumedAfterAltersIsSeededAgain(t *testing.T) {
	r := start(t, Config{})
	for i, tc := range alterCases {
		t.Run(tc.says, func(t *testing.T) {
			r := &running{Node: r.Node, t: t, url: r.url, client: r.client}
			tenant := fmt.Sprintf("away%d", i)
			r.fillToAlter(tenant)
			path := "/t/" + tenant + "/c/changes?" + tc.shape
			w := r.watch(path)
			w.next()
			w.stop()
			for text := range strings.SplitSeq(tc.alters, ";") {
				r.query(tenant, text)
			}
			for _, reopened := range []bool{false, true} {
				if reopened { // the changes are those of the file
					eventually(t, "the streams have ended", func() bool { return r.streaming.Load() == 0 })
					r.closeIdle(tenant)
				}
				if strings.HasPrefix(tc.event, "error") && !strings.Contains(tc.event, "was dropped") {
					if got := r.do("GET", path, "", "Last-Event-ID", w.id); got.status != 404 && got.status != 400 {
						t.Errorf("got %d %s for a shape that is no longer valid, expected 400 or 404", got.status, got.body)
					}
					continue
				}
				again := r.watch(path, "Last-Event-ID", w.id)
				again.rows = w.rows
				got := again.next()
				if want, _, _ := strings.Cut(tc.event, " "); want != "error" && got.name != want || want == "error" && got.name != "seed" {
					t.Fatalf("got %s, expected %s", got, tc.event)
				}
				if seq := again.header.Get("Fenec-Seq"); got.name == "seed" && seq != fmt.Sprint(got.Seq) {
					t.Errorf("got Fenec-Seq %s with a seed of change %d, expected the same change", seq, got.Seq)
				}
				again.same(r, "/t/"+tenant+"/c?"+withID(tc.shape))
				again.stop()
			}
		})
	}
}

// withID returns the query string of a GET that returns the rows of a shape with their ids.
func withID(shape string) string {
	if strings.Contains(shape, "select=id") || strings.Contains(shape, "select=*") {
		return shape
	}
	return strings.Replace(shape, "select=", "select=id,", 1)
}

// fillToAlter creates a tenant with the collection of alterCases.
func (r *running) fillToAlter(tenant string) {
	r.t.Helper()
	r.wantAdmin(201, "PUT", "tenants/"+tenant, "")
	r.query(tenant, "create collection c (n int, m int, s text, j json)")
	r.want(201, "POST", "/t/"+tenant+"/c", `[{"n": 1, "m": 10, "s": "a", "j": {"k": 1}}, {"n": 2, "m": 20, "s": "b", "j": {"k": 2}}]`)
}

// block sends statements with semicolons between them as one block.
func (r *running) block(tenant, statements string) {
	r.t.Helper()
	var lines strings.Builder
	for text := range strings.SplitSeq(statements, ";") {
		fmt.Fprintf(&lines, "{\"query\": %q}\n", text)
	}
	r.want(200, "POST", "/t/"+tenant+"/batch", lines.String())
}

func TestExpiredRowsStayDeletedInALiveQueryAfterTheTTLFieldIsDropped(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.wantAdmin(201, "PUT", "tenants/x", "")
	r.query("x", "create collection c (n int, at timestamp @ttl(1m))")
	r.query("x", "put c [{n: 1, at: now()}, {n: 2, at: now() + 3_600_000}]")
	w, whole := r.watch("/t/x/c/changes?select=n"), r.watch("/t/x/c/changes")
	w.expect(`seed 3 [{"id":1,"n":1} {"id":2,"n":2}]`)
	whole.next()
	clock.Advance(2 * time.Minute) // the sweep has not run yet
	late := r.watch("/t/x/c/changes?n=gt.0&select=n")
	late.expect(`seed 3 [{"id":2,"n":2}]`)
	r.block("x", "alter collection c drop field at")
	w.expect(`change 5 [] [1] true`)
	whole.expect(`seed 5 [{"id":2,"n":2}]`)
	late.expect(`change 5 [] [1] true`)
	r.block("x", "alter collection c add field at timestamp @ttl(1s); put c {n: 3}; alter collection c rename field at to till")
	w.expect(`change 8 [{"id":3,"n":3}] [] true`)
	whole.expect(`seed 8 [{"id":2,"n":2,"till":null} {"id":3,"n":3,"till":null}]`)
	w.same(r, "/t/x/c?select=id,n")
	whole.same(r, "/t/x/c")
}
