package rest

import (
	"fmt"
	"strings"
	"testing"

	"fenec/engine/doc"

	"github.com/cockroachdb/datadriven"
)

// TestRequestsBecomeStatements translates the requests of testdata/statements. Each has its route and its collection, and
// then the query string and the body, a line each; -rewrite records what they become.
func TestRequestsBecomeStatements(t *testing.T) {
	datadriven.RunTest(t, "testdata/statements", func(t *testing.T, d *datadriven.TestData) string {
		query, text, _ := strings.Cut(d.Input, "\n")
		if query == "-" {
			query = ""
		}
		s := &Statement{}
		if err := s.NameCollection([]byte(d.CmdArgs[0].Key)); err != nil {
			return err.Error()
		}
		var body doc.Raw
		if text != "" {
			parsed, err := doc.ParseDocuments(nil, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			body = parsed
		}
		if err := translateTo(s, d.Cmd, d.HasArg("all"), []byte(query), body); err != nil {
			return err.Error()
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", s.Text)
		for i, p := range s.Params {
			fmt.Fprintf(&b, "$%d %s\n", i+1, doc.Describe(p))
		}
		return b.String()
	})
}

// schema is that of the collection in requests of a near that leave fields out.
var schema = &doc.Schema{Name: "c", Fields: []doc.Field{
	{Name: "v", Type: doc.Type{Kind: doc.TypeVector, Dim: 2}},
	{Name: "t", Type: doc.Type{Kind: doc.TypeText}, Index: doc.Index{Kind: doc.IndexText}},
}}

func translateTo(s *Statement, route string, all bool, query []byte, body doc.Raw) error {
	switch route {
	case "rows":
		return s.Rows(query)
	case "insert":
		absent, err := s.InsertKeys(query)
		if err != nil {
			return err
		}
		return s.Insert(body, absent)
	case "update":
		return s.Update(body, query, all)
	case "delete":
		return s.Delete(query, all)
	case "near":
		if err := s.NearFilters(query); err != nil {
			return err
		}
		return s.Near(body, func() (*doc.Schema, error) { return schema, nil })
	case "live":
		_, err := s.LiveRows(query)
		return err
	case "live-row":
		_, err := s.LiveRows(query)
		s.LiveRow()
		return err
	}
	return fmt.Errorf("no route %s", route)
}

func TestAResetStatementIsEmptyAndKeepsSmallBuffers(t *testing.T) {
	s := &Statement{Name: []byte("c")}
	if err := s.Rows([]byte("a=1&lookup=r&r.on=c&select=a&limit=1")); err != nil {
		t.Fatal(err)
	}
	text := cap(s.Text)
	s.Values = make([]byte, keptBuffer+1)
	s.Reset()
	if len(s.Text)+len(s.Params)+len(s.Name)+len(s.levels)+len(s.condition)+len(s.selected) > 0 || s.given != 0 {
		t.Errorf("left over: %+v", s)
	}
	if cap(s.Text) != text || cap(s.Values) > 0 {
		t.Errorf("buffers of %d and %d bytes are kept", cap(s.Text), cap(s.Values))
	}
}
