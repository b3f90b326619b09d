package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// surface are requests and their answers, in order: what users of such a system expect of its routes.
var surface = []struct {
	method, path, body string
	status             int
	want               string
}{
	{"POST", "query", queryBody("create collection films (title text, year int, code text @unique, v vector<2>)"), 200, `{"message":"collection films created"}`},
	{"POST", "films", `[{"title":"The Haunting","year":1963,"code":"a","v":[1,0]},{"title":"the fog","year":1980,"code":"b","v":[0,1]},{"title":"Alien","year":1979,"code":"c","v":[1,1]}]`, 201, `{"inserted":3}`},

	{"GET", "films?title=like.THE*&select=id&order=id", "", 200, `[{"id":1},{"id":2}]`},
	{"GET", "films?title=like.*G&select=id&order=id", "", 200, `[{"id":1},{"id":2}]`},
	{"GET", "films?title=like.LIE&select=id", "", 200, `[{"id":3}]`},
	{"GET", "films?count=true", "", 200, `{"count":3}`},
	{"GET", "films?count=true&year=gt.1970", "", 200, `{"count":2}`},
	{"GET", "films?year=gt.1978.5&count", "", 200, `{"count":2}`},
	{"POST", "films/near?year=lt.1980&title=like.*n*", `{"vector":[1,0],"select":"id","where":"id > 1"}`, 200, `[{"id":3,"_score":0.70710677}]`},
	{"POST", "query", `{"query":"get films select id where year = $1","params":[1979,"more","than",{"it":"uses"}]}`, 200, `[{"id":3}]`},
	{"POST", "query", `{"query":"get films where year = $1","params":[]}`, 400, ""},

	{
		"POST", "batch", queryBody("get films select id limit 1") + "\n" + queryBody("set films {year: 1964} where id = 1") + "\n" + queryBody("drop collection if exists none"), 200,
		`{"ok":3,"results":[{"rows":[{"id":1}]},{"affected":1},{"message":"there is no collection none"}]}`,
	},
	{
		"POST", "batch", queryBody("del films where id = 3 returning id") + "\n" + queryBody("put films {id: 3, title: \"Alien\", year: 1979, code: \"c\", v: [1,1]}"), 200,
		`{"ok":2,"results":[{"rows":[{"id":3}]},{"affected":1}]}`,
	},
	{"POST", "batch", "", 400, ""},
	{"POST", "batch", queryBody("get films where year > 1970 require 2") + "\n" + queryBody("set films {year: 0}"), 200, ""},
	{"POST", "batch", queryBody("get films where year > 1970 require 2") + "\n" + queryBody("set films {year: 1}"), 412, ""},
	{"POST", "query", queryBody("get films where year = 0 require 3"), 200, ""},

	{"POST", "films?if=absent", `{"title":"Again","code":"a"}`, 201, `{"inserted":0}`},
	{"POST", "films?if=absent", `[{"title":"Again","code":"a"},{"title":"New","code":"d"}]`, 201, `{"inserted":1}`},
	{"POST", "query", queryBody(`insert films {code: "d", year: 1} if absent`), 200, `{"affected":0}`},
	{"POST", "query", queryBody(`insert films {code: "d", year: 1} if absent else set {year: coalesce(year, 6) + 1} returning code, year`), 200, `[{"code":"d","year":7}]`},
	{"POST", "query", queryBody(`insert films [{code: "d"}, {code: "e"}] if absent else set {year: year + 1}`), 200, `{"affected":2}`},
	{"POST", "query", queryBody("get films select count(distinct year) as years, count(*) as films"), 200, `[{"years":2,"films":5}]`},
}

// TestWhatUsersExpectIsThereStraightAndThroughTheRouter sends each request to a node and to another one through a router.
func TestWhatUsersExpectIsThereStraightAndThroughTheRouter(t *testing.T) {
	tw := startTwins(t)
	for _, tc := range surface {
		text := tc.method + " /t/acme/" + tc.path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + strconv.Itoa(len(tc.body)) + "\r\n\r\n" + tc.body
		for way, addr := range map[string]string{"straight": tw.straight, "through the router": tw.through} {
			got := say(t, addr, []byte(text))
			if body := strings.TrimSpace(got.body); got.status != tc.status || tc.want != "" && body != tc.want {
				t.Errorf("%s %s %s %s is answered %d %s\nwant %d %s", tc.method, tc.path, tc.body, way, got.status, body, tc.status, tc.want)
			}
		}
	}
}
