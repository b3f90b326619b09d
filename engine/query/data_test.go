package query

import (
	"fmt"
	"strings"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"

	"github.com/cockroachdb/datadriven"
)

// TestStatements runs the files in testdata: each `run` is one statement with the answer below the dashes,
// a row a line. A line `-- params: [1, "a"]` gives its parameters as JSON, `-- text: 1 | a` as the untyped
// text of a request's query. `new` begins with an empty database.
func TestStatements(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		db := newMemory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				db = newMemory()
				return ""
			case "run":
				r, err := db.exec(d.Input, params(t, d.Input)...)
				return answerText(r, err)
			}
			t.Fatalf("%s: no command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func params(t *testing.T, text string) []doc.Value {
	var out []doc.Value
	for _, line := range strings.Split(text, "\n") {
		if list, ok := strings.CutPrefix(line, "-- params: "); ok {
			raw, err := doc.ParseJSON(nil, []byte(list))
			if err != nil {
				t.Fatal(err)
			}
			doc.Raw(raw).Elements(func(r doc.Raw) bool {
				out = append(out, r.Value())
				return true
			})
		}
		if list, ok := strings.CutPrefix(line, "-- text: "); ok {
			for _, s := range strings.Split(list, " | ") {
				out = append(out, doc.Value{Kind: doc.Untyped, B: []byte(s)})
			}
		}
	}
	return out
}

func answerText(r Result, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %s\n", fail.KindOf(err), err)
	}
	switch r.Kind {
	case Affected:
		return fmt.Sprintf("affected %d\n", r.Affected)
	case Message:
		return r.Message + "\n"
	}
	body := strings.ReplaceAll(string(r.Body), "},{", "}\n{")
	body = strings.TrimSuffix(strings.TrimPrefix(body, "["), "]")
	out := fmt.Sprintf("%s\n", count(r.Rows, "row"))
	if r.Affected > 0 {
		out = fmt.Sprintf("%s, affected %d\n", count(r.Rows, "row"), r.Affected)
	}
	if body != "" {
		out += body + "\n"
	}
	return out
}
