package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// row is a document of the model: an int and a text, each of which may be null.
type row struct {
	ID int     `json:"id"`
	N  *int    `json:"n"`
	S  *string `json:"s"`
}

// model is a tenant as a list of rows, ordered by id.
type model struct {
	rows []row
	last int
}

// filter is a condition on a row and its query string.
type filter struct {
	query string
	holds func(row) bool
}

var (
	smallInt = rapid.IntRange(-3, 3)
	word     = rapid.SampledFrom([]string{"", "a", "ab", "b", "ä", "%_", "a,b", `q"`, "eq.x", "12", "AB", "Ä"})
)

func drawFilter(t *rapid.T) filter {
	n := smallInt.Draw(t, "n")
	s := word.Draw(t, "s")
	onN := func(holds func(int) bool) func(row) bool {
		return func(r row) bool { return r.N != nil && holds(*r.N) }
	}
	onS := func(holds func(string) bool) func(row) bool {
		return func(r row) bool { return r.S != nil && holds(*r.S) }
	}
	e := escape(s)
	return rapid.SampledFrom([]filter{
		{fmt.Sprintf("n=%d", n), onN(func(v int) bool { return v == n })},
		{fmt.Sprintf("n=neq.%d", n), onN(func(v int) bool { return v != n })},
		{fmt.Sprintf("n=lt.%d", n), onN(func(v int) bool { return v < n })},
		{fmt.Sprintf("n=not.lte.%d", n), onN(func(v int) bool { return v > n })},
		{fmt.Sprintf("n=gte.%d", n), onN(func(v int) bool { return v >= n })},
		{fmt.Sprintf("n=in.(%d,2)", n), onN(func(v int) bool { return v == n || v == 2 })},
		{"n=is.null", func(r row) bool { return r.N == nil }},
		{"s=not.is.null", func(r row) bool { return r.S != nil }},
		{"s=eq." + e, onS(func(v string) bool { return v == s })},
		{"s=neq." + e, onS(func(v string) bool { return v != s })},
		{"s=gt." + e, onS(func(v string) bool { return v > s })},
		{"s=in.(" + escape(quoteMember(s)) + ",b)", onS(func(v string) bool { return v == s || v == "b" })},
		{"s=like." + escape(strings.ReplaceAll(s, "%", `\%`)), onS(func(v string) bool { return strings.Contains(strings.ToLower(v), strings.ToLower(s)) })},
		{"s=like." + escape(strings.ReplaceAll(s, "%", `\%`)) + "%25", onS(func(v string) bool { return strings.HasPrefix(strings.ToLower(v), strings.ToLower(s)) })},
		{"s=like.*" + escape(strings.ReplaceAll(s, "%", `\%`)), onS(func(v string) bool { return strings.HasSuffix(strings.ToLower(v), strings.ToLower(s)) })},
		{"s=not.like.*12*", onS(func(v string) bool { return !strings.Contains(v, "12") })},
		{fmt.Sprintf("where=n+%%3E+%d+or+s+is+null", n), func(r row) bool { return r.N != nil && *r.N > n || r.S == nil }},
		{fmt.Sprintf("id=gt.%d", n), func(r row) bool { return r.ID > n }},
	}).Draw(t, "filter")
}

func quoteMember(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// escape percent-encodes every byte.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

func drawRow(t *rapid.T) row {
	var r row
	if rapid.Bool().Draw(t, "has n") {
		n := smallInt.Draw(t, "n")
		r.N = &n
	}
	if rapid.Bool().Draw(t, "has s") {
		s := word.Draw(t, "s")
		r.S = &s
	}
	return r
}

func compareN(a, b row) int {
	switch {
	case a.N == nil && b.N == nil:
		return 0
	case a.N == nil:
		return -1
	case b.N == nil:
		return 1
	}
	return cmp.Compare(*a.N, *b.N)
}

func holdsAll(filters []filter, r row) bool {
	return !slices.ContainsFunc(filters, func(f filter) bool { return !f.holds(r) })
}

func (m *model) matching(filters []filter) []row {
	out := []row{}
	for _, r := range m.rows {
		if holdsAll(filters, r) {
			out = append(out, r)
		}
	}
	return out
}

func text(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestATenantReturnsTheRowsOfItsModel compares the responses of a tenant with a list of rows in memory, while the tenant is
// closed and compacted.
func TestATenantReturnsTheRowsOfItsModel(t *testing.T) {
	r := start(t, Config{})
	tenant := 0
	rapid.Check(t, func(t *rapid.T) {
		tenant++
		name := fmt.Sprintf("m%d", tenant)
		declared := rapid.SampledFrom([]string{"n int, s text", "n int @sorted, s text @hash", "n int @hash, s text @sorted"}).Draw(t, "schema")
		r.wantAdmin(201, "PUT", "tenants/"+name, "")
		r.query(name, "create collection c ("+declared+")")
		m := &model{}
		base := "/t/" + name + "/c"
		expect := func(status int, want, method, path, body string) {
			t.Helper()
			got, err := r.send(method, path, body)
			if err != nil || got.status != status || got.body != want {
				t.Fatalf("%s %s %s:\n got %d %s %v\nexpected %d %s", method, path, body, got.status, got.body, err, status, want)
			}
		}
		draw := func() (filters []filter, query string) {
			where := false // used once at most
			var parts []string
			for _, f := range rapid.SliceOfN(rapid.Custom(drawFilter), 1, 3).Draw(t, "filters") {
				is := strings.HasPrefix(f.query, "where=")
				if !is || !where {
					filters, parts = append(filters, f), append(parts, f.query)
				}
				where = where || is
			}
			return filters, strings.Join(parts, "&")
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 4).Draw(t, "rows")
				docs := make([]map[string]any, len(rows))
				for i := range rows {
					m.last++
					rows[i].ID = m.last
					docs[i] = map[string]any{"n": rows[i].N, "s": rows[i].S}
				}
				m.rows = append(m.rows, rows...)
				expect(201, fmt.Sprintf(`{"inserted":%d}`, len(rows)), "POST", base, text(t, docs))
			},
			"update": func(t *rapid.T) {
				filters, query := draw()
				to := drawRow(t)
				n := 0
				for i, row := range m.rows {
					if holdsAll(filters, row) {
						m.rows[i].N, m.rows[i].S = to.N, to.S
						n++
					}
				}
				expect(200, fmt.Sprintf(`{"updated":%d}`, n), "PATCH", base+"?"+query, text(t, map[string]any{"n": to.N, "s": to.S}))
			},
			"delete": func(t *rapid.T) {
				filters, query := draw()
				before := len(m.rows)
				m.rows = slices.DeleteFunc(m.rows, func(r row) bool { return holdsAll(filters, r) })
				expect(200, fmt.Sprintf(`{"deleted":%d}`, before-len(m.rows)), "DELETE", base+"?"+query, "")
			},
			"read": func(t *rapid.T) {
				filters, query := draw()
				rows := m.matching(filters)
				expect(200, text(t, rows), "GET", base+"?"+query, "")
				expect(200, fmt.Sprintf(`{"count":%d}`, len(rows)), "GET", base+"?count&"+query, "")
			},
			"page": func(t *rapid.T) {
				rows := slices.Clone(m.rows)
				desc := rapid.Bool().Draw(t, "descending")
				slices.SortStableFunc(rows, func(a, b row) int {
					if desc {
						return compareN(b, a)
					}
					return compareN(a, b)
				})
				offset := rapid.IntRange(0, 5).Draw(t, "offset")
				limit := rapid.IntRange(0, 5).Draw(t, "limit")
				rows = rows[min(offset, len(rows)):]
				rows = rows[:min(limit, len(rows))]
				direction := [...]string{"asc", "desc"}[b2i(desc)]
				page := []row{}
				page = append(page, rows...)
				expect(200, text(t, page), "GET", fmt.Sprintf("%s?order=n.%s&limit=%d&offset=%d", base, direction, limit, offset), "")
			},
			"close": func(t *rapid.T) {
				r.closeIdle(name)
			},
			"compact": func(t *rapid.T) {
				if got, err := r.send("POST", "/t/"+name+"/query", `{"query": "compact"}`); err != nil || got.status != 200 {
					t.Fatal(got, err)
				}
			},
		})
	})
}
