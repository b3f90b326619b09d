package node

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json"
)

var updateDocs = flag.Bool("update", false, "write the answers into the documentation")

// example is a statement of the documentation and the answer printed under it.
var example = regexp.MustCompile("(?s)```fenecql\n(.*?)\n```\n```json\n(.*?)\n```\n")

// TestEachExampleOfTheReferenceReturnsThePrintedAnswer runs the examples in order in one new tenant.
func TestEachExampleOfTheReferenceReturnsThePrintedAnswer(t *testing.T) {
	const page = "../docs/fenecql.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{Clock: newClock().Now})
	r.wantAdmin(201, "PUT", "tenants/docs", "")
	found := 0
	updated := example.ReplaceAllFunc(text, func(match []byte) []byte {
		found++
		parts := example.FindSubmatch(match)
		body, err := json.Marshal(map[string]string{"query": string(parts[1])})
		if err != nil {
			t.Fatal(err)
		}
		got := r.do("POST", "/t/docs/query", string(body)).body
		if want := string(parts[2]); got != want && !*updateDocs {
			t.Errorf("%s\n got %s\nwant %s", parts[1], got, want)
		}
		return []byte("```fenecql\n" + string(parts[1]) + "\n```\n```json\n" + got + "\n```\n")
	})
	if found < 40 {
		t.Errorf("got %d examples, want at least 40: the format of the page has changed", found)
	}
	if *updateDocs {
		if err := os.WriteFile(page, updated, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
