package client_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"fenec/client"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

type everything struct {
	ID   int64          `json:"id,omitzero"`
	I    int64          `json:"i"`
	F    float64        `json:"f"`
	B    bool           `json:"b"`
	T    string         `json:"t"`
	At   time.Time      `json:"at"`
	Raw  []byte         `json:"raw"`
	V    []float32      `json:"v"`
	Tags []string       `json:"tags"`
	Meta map[string]any `json:"meta"`
	None *int64         `json:"none"`
}

func TestValuesRoundTrip(t *testing.T) {
	t.Parallel()
	c := newClient(t, serveTenant(t), client.Options{})
	exec(t, c, "create collection things (i int, f float, b bool, t text, at timestamp, raw bytes, v vector<3>, tags [text], meta json, none int)")
	for name, want := range map[string]everything{
		"the largest": {
			I: math.MaxInt64, F: math.MaxFloat64, B: true, T: "İnce \"Memed\" $1\n\x00", At: time.UnixMilli(1767323045006).UTC(),
			Raw: []byte{0, 255, '"'}, V: []float32{0.1, -3e38, 1e-40}, Tags: []string{"", "a,b"},
			Meta: map[string]any{"n": int64(math.MaxInt64), "f": 0.5, "l": []any{int64(1), "x", nil}},
		},
		"the smallest": {I: math.MinInt64, F: -math.SmallestNonzeroFloat64, At: time.UnixMilli(0).UTC()},
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, c, "del things")
			exec(t, c, "put things $1", want)
			got, err := client.One[everything](t.Context(), c, "get things where i = $1 and at = $2 and f = $3", want.I, want.At, want.F)
			if err != nil {
				t.Fatal(err)
			}
			want.ID = got.ID
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANilSliceIsNull(t *testing.T) {
	t.Parallel()
	c := newClient(t, serveTenant(t), client.Options{})
	exec(t, c, "create collection things (tags [text], raw bytes, n int)")
	exec(t, c, "put things {tags: $1, raw: $2, n: $3}", []string(nil), []byte(nil), nil)
	exec(t, c, "put things {tags: $1, raw: $2, n: 1}", []string{}, []byte{})
	got, err := client.Query[jsontext.Value](t.Context(), c, "get things select tags, raw, n")
	if want := `[{"tags":null,"raw":null,"n":null} {"tags":[],"raw":"","n":1}]`; err != nil || strings.ReplaceAll(sprint(got), " ,", ",") != want {
		t.Errorf("got the rows %s, expected %s, error %v", got, want, err)
	}
}

// sprint returns rows as text.
func sprint(rows []jsontext.Value) string {
	parts := make([]string, len(rows))
	for i, row := range rows {
		parts[i] = string(row)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func TestStatementsReturnTheirRowsOrCounts(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	if n := exec(t, c, "put books $1", []book{{Title: "Emma", Year: 1815}, {Title: "Momo", Year: 1973}}); n != 2 {
		t.Errorf("got %d rows affected by put, expected 2", n)
	}
	if n := exec(t, c, "set books {year: 1816} where title = $1 returning id", "Emma"); n != 1 {
		t.Errorf("got %d rows affected by set with returning, expected 1", n)
	}
	rows, err := client.Query[map[string]any](t.Context(), c, "get books where year < $1 select title, year", 1900)
	if diff := cmp.Diff([]map[string]any{{"title": "Emma", "year": int64(1816)}}, rows); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := client.One[book](t.Context(), c, "get books where year > $1", 3000); !errors.Is(err, client.ErrNoRow) {
		t.Errorf("got %v without a row, expected ErrNoRow", err)
	}
	if _, err := client.Query[book](t.Context(), c, "set books {year: 1} where id = 1"); err == nil || !strings.Contains(err.Error(), `the statement ran; expected rows, got {"affected":1}`) {
		t.Errorf("got %v for a statement without rows, expected an error that names its result", err)
	}
	if _, err := client.Query[struct{ Title int }](t.Context(), c, "get books select title as Title"); err == nil {
		t.Error("got a number from a title, expected an error")
	}
}

func TestABatchRunsWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	var b client.Batch
	b.Add("put books $1", book{Title: "Emma", Year: 1815})
	b.Add("set books {year: $1} where title = $2", 1816, "Emma")
	b.Add("get books select title, year")
	b.Add("set books {year: year} returning title")
	b.Add("create collection films (title text)")
	results, err := c.Run(t.Context(), &b)
	if err != nil || len(results) != b.Len() {
		t.Fatalf("got %d results, %v", len(results), err)
	}
	if n, err := results[1].Affected(); n != 1 || err != nil {
		t.Errorf("got %d, %v for the second statement, expected 1", n, err)
	}
	rows, err := client.Rows[book](results[2])
	if diff := cmp.Diff([]book{{Title: "Emma", Year: 1816}}, rows); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := client.Rows[book](results[1]); err == nil || !strings.Contains(err.Error(), `the statement ran; expected rows, got {"affected":1}`) {
		t.Errorf("got %v for a statement of the batch without rows, expected an error that names its result", err)
	}
	titles, err := client.Rows[book](results[3])
	if n, countErr := results[3].Affected(); len(titles) != 1 || titles[0].Title != "Emma" || n != 1 || err != nil || countErr != nil {
		t.Errorf("got %v and %d, %v, %v for returning in a batch, expected Emma and 1", titles, n, err, countErr)
	}
	if n, err := results[4].Affected(); n != 0 || err != nil {
		t.Errorf("got %d, %v for a create in a batch, expected 0", n, err)
	}
	var failing client.Batch
	failing.Add("put books $1", book{Title: "Momo"})
	failing.Add("put books $1", book{Title: "Emma"})
	_, err = c.Run(t.Context(), &failing)
	var e *client.Error
	if !errors.As(err, &e) || e.At != 1 || e.Completed != 0 || !errors.Is(err, client.ErrConflict) {
		t.Errorf("got %+v for the failing batch, expected a conflict of statement 1", e)
	}
	if rows, err := client.Query[book](t.Context(), c, "get books"); len(rows) != 1 || err != nil {
		t.Errorf("got %d books, expected 1, %v", len(rows), err)
	}
	var unwritable client.Batch
	unwritable.Add("get books")
	unwritable.Add("put books {title: $1, year: $2}", "x", math.NaN())
	if _, err := c.Run(t.Context(), &unwritable); err == nil || !strings.HasPrefix(err.Error(), "statement 1 of the batch: parameter $2: ") {
		t.Errorf("got %v for a batch with a NaN, expected an error that names its parameter", err)
	}
	if results, err := c.Run(t.Context(), &client.Batch{}); results != nil || err != nil {
		t.Errorf("got %v, %v for an empty batch, expected nil", results, err)
	}
}

func TestErrorsHaveAKindAndAPosition(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	exec(t, c, "put books $1", book{Title: "Emma"})
	long := c.WithKey("one")
	exec(t, long, "put books $1", book{Title: "Momo"})
	for name, x := range map[string]struct {
		of           *client.Client
		statement    string
		kind         error
		status       int
		line, column int
	}{
		"an invalid statement":      {c, "get books\n  wehre id = 1", client.ErrInvalid, 400, 2, 3},
		"an unknown collection":     {c, "get films", client.ErrNotFound, 404, 1, 5},
		"a taken title":             {c, `put books {title: "Emma"}`, client.ErrConflict, 409, 0, 0},
		"a require not met":         {c, `del books where id = 9 require 1`, client.ErrRequire, 412, 0, 0},
		"a write that only reads":   {c.Read(), `put books {title: "Ulysses"}`, client.ErrForbidden, 403, 0, 0},
		"another write under a key": {long, `put books {title: "Ulysses"}`, client.ErrKeyReused, 422, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := x.of.Exec(t.Context(), x.statement)
			var e *client.Error
			if !errors.As(err, &e) || !errors.Is(err, x.kind) || e.Status != x.status || e.At != -1 || e.Request == "" {
				t.Fatalf("got the error %#v, expected status %d", err, x.status)
			}
			if x.line != 0 && (e.Line != x.line || e.Column != x.column) {
				t.Errorf("%s: got line %d column %d, expected %d, %d", e, e.Line, e.Column, x.line, x.column)
			}
		})
	}
}

func TestRefusalsOfAnotherFormBecomeErrors(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		answer turn
		want   string
	}{
		"a page of a proxy":   {says(403, "<html>"), "the response was 403 Forbidden"},
		"a redirect":          {says(307, "", "Location", "/elsewhere"), "the response was 307 Temporary Redirect"},
		"a place in the text": {says(400, `{"error":"a line 3 column x line 1 column 5 of it"}`), "a line 3 column x line 1 column 5 of it"},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := scripted(t, x.answer)
			_, err := newClient(t, url, client.Options{}).Exec(t.Context(), "get books")
			var e *client.Error
			if !errors.As(err, &e) || e.Message != x.want || e.Line != 0 || asked.Load() != 1 {
				t.Errorf("got %#v after %d requests, expected %q after 1", err, asked.Load(), x.want)
			}
		})
	}
}

func TestAResponsePastTheLimitIsAnError(t *testing.T) {
	t.Parallel()
	url, asked := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for range 66 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	_, err := client.Query[book](t.Context(), newClient(t, url, client.Options{}), "get books")
	if err == nil || err.Error() != "response longer than 64 MiB" || asked.Load() != 1 {
		t.Errorf("got %v after %d requests, expected an error that names the limit after 1", err, asked.Load())
	}
}

// TestRawJSONIsSentOnOneLine sends batches, in which each statement is one line.
func TestRawJSONIsSentOnOneLine(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	var b client.Batch
	b.Add("put books $1", jsontext.Value("{\"title\": \"Emma\",\n\"year\": 1815}"))
	b.Add("put books $1", jsontext.Value(`{"title": "Momo", "year": 1973}`))
	b.Add("get books select title, year order year")
	results, err := c.Run(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := client.Rows[jsontext.Value](results[2])
	if got := sprint(rows); err != nil || got != `[{"title":"Emma","year":1815} {"title":"Momo","year":1973}]` {
		t.Errorf("got the rows %s, %v, expected Emma and Momo", got, err)
	}
	for _, text := range []string{`{"title": "a"}], "x": [1`, `{"a": 1, "a": 2}`, "{\"a\": \"\xff\"}", ""} {
		if _, err := c.Exec(t.Context(), "put books $1", jsontext.Value(text)); err == nil || !strings.HasPrefix(err.Error(), "parameter $1: ") {
			t.Errorf("%q: got %v, expected an error before the request", text, err)
		}
	}
}
