package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parsed is a record as the tests compare it.
type parsed struct {
	Line, Lines, End int64
	Text             string
	Bad              string
}

func readAll(t *testing.T, in *input) []parsed {
	t.Helper()
	var all []parsed
	for {
		r, err := in.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		one := parsed{Line: r.line, Lines: r.lines, End: r.end, Text: string(r.json)}
		if r.cells != nil {
			one.Text = strings.Join(r.cells, "|")
		}
		if r.bad != nil {
			one.Bad = r.bad.Error()
		}
		all = append(all, one)
	}
}

func TestRecordsAreReadWithTheirPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []parsed
	}{
		"an object a line, the last without a line's end": {
			"a.ndjson", "{\"a\": 1}\n{\"a\": 2}",
			[]parsed{{1, 1, 9, `{"a": 1}`, ""}, {2, 1, 17, `{"a": 2}`, ""}},
		},
		"empty lines count and are no records": {
			"a.ndjson", "\n{}\r\n  \n{}\n",
			[]parsed{{2, 1, 5, `{}`, ""}, {4, 1, 11, `{}`, ""}},
		},
		"a byte order mark is skipped": {
			"-", "\xef\xbb\xbf{}\n",
			[]parsed{{1, 1, 6, `{}`, ""}},
		},
		"a line that is no object is bad, and the next one is read": {
			"a.jsonl", "[1]\nnot json\n{\"a\":\n{} {}\n{\"a\":1,\"a\":2}\n{}\n",
			[]parsed{
				{1, 1, 4, "", "expected a JSON object, got a list"},
				{2, 1, 13, "", "invalid JSON: invalid character 'o' in literal null (expecting 'u') at column 2"},
				{3, 1, 19, "", "invalid JSON: unexpected end at column 6"},
				{4, 1, 25, "", "expected one JSON object, got more data at column 3"},
				{5, 1, 39, "", `invalid JSON: duplicate object member name at column 8`},
				{6, 1, 42, "{}", ""},
			},
		},
		"invalid UTF-8 is bad": {
			"a.ndjson", "{\"a\": \"\xff\"}\n",
			[]parsed{{1, 1, 11, "", "invalid JSON: invalid UTF-8 at column 8"}},
		},
		"a quoted cell holds commas, quotes and line ends": {
			"a.csv", "n,text\n1,\"a, \"\"b\"\"\nc\"\n2,d\n",
			[]parsed{{2, 2, 22, "1|a, \"b\"\nc", ""}, {4, 1, 26, "2|d", ""}},
		},
		"a row of another width is bad, and the next one is read": {
			"a.csv", "a,b\n1\n1,2\n1,2,3\n",
			[]parsed{
				{2, 1, 6, "1", "expected 2 columns as in the first row, got 1"},
				{3, 1, 10, "1|2", ""},
				{4, 1, 16, "1|2|3", "expected 2 columns as in the first row, got 3"},
			},
		},
		"a quote inside a bare cell makes its row bad alone": {
			"a.csv", "a,b\n5\" disk,x\n1,2\n",
			[]parsed{{2, 1, 14, "", errBareQuote.Error()}, {3, 1, 18, "1|2", ""}},
		},
		"what follows a closing quote is bad": {
			"a.csv", "a,b\n\"1\"x,2\n1,2\n",
			[]parsed{{2, 1, 11, "", errAfter.Error()}, {3, 1, 15, "1|2", ""}},
		},
		"a quoted cell without an end is bad": {
			"a.csv", "a,b\n1,\"2\n3,4\n",
			[]parsed{{2, 2, 13, "", errUnclosed.Error()}},
		},
		"CRLF ends rows, quoted ones too": {
			"a.csv", "a,b\r\n\"1\",\"2\"\r\n3,4\r\n",
			[]parsed{{2, 1, 14, "1|2", ""}, {3, 1, 19, "3|4", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := openInput(strings.NewReader(c.text), c.file, Guess)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, readAll(t, in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALineTooLongIsBadAndTheNextOneIsRead(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", maxRecord) + `"}` + "\n"
	in, err := openInput(strings.NewReader("{}\n"+long+"{}\n"), "a.ndjson", Guess)
	if err != nil {
		t.Fatal(err)
	}
	got := readAll(t, in)
	if len(got) != 3 || got[1].Bad != errTooLong.Error() || got[2].Line != 3 || got[2].Bad != "" {
		t.Errorf("records %v, want the second of three too long", got)
	}
}

func TestAnInputThatIsNoneIsRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"a JSON array":          {"a.json", " [{}]", "a.json: expected one JSON object per line, got an array; jq -c '.[]' converts it"},
		"a CSV without a row":   {"a.csv", "", "a.csv: expected a first row with the field names, got an empty file"},
		"a column without name": {"a.csv", "a,,b\n", `a.csv: first row: expected a different field name in each column, got "" in column 2`},
		"a name given twice":    {"a.csv", "a,b,a\n", `a.csv: first row: expected a different field name in each column, got "a" in column 3`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openInput(strings.NewReader(c.text), c.file, Guess)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestSkippingGoesOnWhereAnEarlierRunStopped(t *testing.T) {
	for _, text := range []string{
		"{\"n\": 1}\n\n{\"n\": 2}\nbad\n{\"n\": 3}",
		"\xef\xbb\xbfa,b\n1,\"x\ny\"\n2,z\n",
	} {
		open := func() *input {
			in, err := openInput(strings.NewReader(text), "-", Guess)
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		want := readAll(t, open())
		for i := range want {
			first := open()
			var last record
			for range i + 1 {
				var err error
				if last, err = first.next(); err != nil {
					t.Fatal(err)
				}
			}
			at := position{Offset: last.end, Line: last.line + last.lines - 1, Sum: int64(last.sum)}
			in := open()
			if err := in.skip(at); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[i+1:], readAll(t, in), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after record %d of %q: %s", i, text, diff)
			}
			other := open()
			at.Sum++
			if err := other.skip(at); err == nil || !strings.Contains(err.Error(), "have changed since they were imported") {
				t.Errorf("an input that begins otherwise: %v", err)
			}
		}
	}
}

func TestSkippingPastTheEndSaysSo(t *testing.T) {
	in, err := openInput(strings.NewReader("{}\n"), "stdin", Guess)
	if err != nil {
		t.Fatal(err)
	}
	err = in.skip(position{Offset: 100, Line: 7})
	if err == nil || err.Error() != "stdin: expected at least 100 bytes, which were imported before, got 3" {
		t.Errorf("error %v", err)
	}
}

// FuzzCSV reads arbitrary bytes as CSV. It checks that nothing panics, that every byte belongs to exactly one record,
// and that the cells match those of the standard library if that can read the whole input.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a\n\"x\ny\"\n", "a,b\n\"\"\"\",\n", "a\n\"x\"y\n", "a\n\r\n\"1\r\n2\"\r\n", "a,b\n1\n\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := &input{name: "x", format: CSV, line: 1, sum: xxhash.New()}
		in.r = bufio.NewReader(bytes.NewReader(text))
		var rows [][]string
		allGood := true
		end := int64(0)
		for {
			r, err := in.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.end <= end || r.lines < 1 {
				t.Fatalf("a record ends at %d after one that ended at %d, taking %d lines", r.end, end, r.lines)
			}
			end = r.end
			allGood = allGood && r.bad == nil
			rows = append(rows, r.cells)
		}
		if in.offset != int64(len(text)) {
			t.Fatalf("read to offset %d of %d", in.offset, len(text))
		}
		// The library drops carriage returns at line ends inside quotes and has other
		// rules for empty lines: compare only inputs without either.
		if !allGood || bytes.ContainsAny(text, "\r \t\v\f\u0085\u00a0") {
			return
		}
		r := csv.NewReader(bytes.NewReader(text))
		r.FieldsPerRecord = -1
		want, err := r.ReadAll()
		if err != nil {
			t.Fatalf("read %q, which the library refuses: %v", rows, err)
		}
		if len(rows) != len(want) || len(rows) > 0 && !reflect.DeepEqual(rows, want) {
			t.Fatalf("cells %q, the library reads %q", rows, want)
		}
	})
}

// FuzzObject reads arbitrary lines as JSON objects. It checks that an accepted line is one object whose members can be
// read and joined again.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,{"b":null}],"c":"\u00e9"}`, `{"a":1,"a":2}`, `[1]`, `{"a":1}x`, "{\"\xff\":1}", `{"id":3,"k":1e400}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		text, err := object(line)
		if err != nil {
			return
		}
		fields, err := members(text)
		if err != nil {
			t.Fatalf("%q was taken and its members are not read: %v", text, err)
		}
		again := []byte{'{'}
		for _, m := range fields {
			again = appendMember(again, m.name, m.value)
		}
		if _, err := object(append(again, '}')); err != nil {
			t.Fatalf("%q put together again is %q: %v", text, again, err)
		}
		if statement, err := infer("c", identity{}, nil, []record{{json: text}}); err == nil && !utf8.ValidString(statement) {
			t.Fatalf("%q makes the statement %q", text, statement)
		}
	})
}
