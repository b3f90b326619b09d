package syntax

import (
	"errors"
	"strings"
	"testing"

	"fenec/engine/fail"

	"github.com/cockroachdb/datadriven"
)

// TestData runs the files of testdata; testdata/README.md says how they read.
func TestData(t *testing.T) {
	datadriven.Walk(t, "testdata/data", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			read := map[string]func(string) (string, error){
				"parse": func(text string) (string, error) {
					st, err := Parse(text)
					if err != nil {
						return "", err
					}
					return st.String(), nil
				},
				"tree": func(text string) (string, error) {
					x, err := Parse("get c where " + text)
					if err != nil {
						return "", err
					}
					return dump(x.(*Get).Where), nil
				},
				"condition": func(text string) (string, error) {
					x, err := ParseCondition(text)
					if err != nil {
						return "", err
					}
					return dump(x), nil
				},
			}[d.Cmd]
			if read == nil {
				d.Fatalf(t, "there is no command %s", d.Cmd)
			}
			texts := []string{d.Input}
			if !d.HasArg("whole") {
				texts = strings.Split(d.Input, "\n")
			}
			var out strings.Builder
			for _, text := range texts {
				got, err := read(text)
				if err != nil {
					before := ""
					if d.Cmd == "tree" {
						before = "get c where "
					}
					got = caret(t, before+text, err)
				}
				out.WriteString(got + "\n")
			}
			return out.String()
		})
	})
}

// caret shows the line that an error names, and the error under its column.
func caret(t *testing.T, text string, err error) string {
	var e *fail.Error
	if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
		t.Fatalf("%q: an error without a place: %v", text, err)
	}
	if e.Kind != fail.Invalid {
		t.Fatalf("%q: the kind of %v is %v", text, err, e.Kind)
	}
	lines := strings.Split(text, "\n")
	if e.Line > len(lines) {
		t.Fatalf("%q: %v is past the text", text, err)
	}
	return strings.ToValidUTF8(lines[e.Line-1], "?") + "\n" + strings.Repeat(" ", e.Column-1) + "^ " + e.Message
}
