package rest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// translate reads a query string as GET does, except where=.
func translate(query string) (s *Statement, err error) {
	s = new(Statement)
	return s, s.readQuery([]byte(query), keySelect|keyOrder|keyLimit|keyOffset|keyCount|keyWhere|keyGroup|keyLookup)
}

func (s *Statement) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", s.condition)
	for _, p := range s.Params {
		fmt.Fprintf(&b, " %s:%s", p.Kind, p.B)
	}
	if len(s.selected) > 0 {
		fmt.Fprintf(&b, " select %s", s.selected)
	}
	if len(s.grouped) > 0 {
		fmt.Fprintf(&b, " group %s", s.grouped)
	}
	if len(s.ordered) > 0 {
		fmt.Fprintf(&b, " order %s", s.ordered)
	}
	if s.limit.Kind == doc.Int {
		fmt.Fprintf(&b, " limit %d", s.limit.Int())
	}
	if s.offset.Kind == doc.Int {
		fmt.Fprintf(&b, " offset %d", s.offset.Int())
	}
	return b.String()
}

func TestAQueryStringBecomesConditions(t *testing.T) {
	u := doc.Untyped.String()
	x := doc.Text.String()
	for name, tc := range map[string]struct{ query, want string }{
		"an operator and a value":                  {"a=eq.5", "a = $1 " + u + ":5"},
		"a bare value is equality":                 {"a=5", "a = $1 " + u + ":5"},
		"a value with a dot is a bare value":       {"a=3.5", "a = $1 " + u + ":3.5"},
		"what is no operator is part of the value": {"a=equal.5", "a = $1 " + u + ":equal.5"},
		"not before no operator too":               {"a=not.five", "a = $1 " + u + ":not.five"},
		"an empty value is an empty text":          {"a=", "a = $1 " + u + ":"},
		"an operator's value may be empty":         {"a=neq.", "a != $1 " + u + ":"},
		"a value may hold operators":               {"a=eq.eq.5", "a = $1 " + u + ":eq.5"},
		"every comparison":                         {"a=neq.1&a=lt.2&a=lte.3&a=gt.4&a=gte.5", "a != $1 and a < $2 and a <= $3 and a > $4 and a >= $5 " + u + ":1 " + u + ":2 " + u + ":3 " + u + ":4 " + u + ":5"},
		"has":                                      {"tags=has.x", "tags has $1 " + u + ":x"},
		"not before an operator":                   {"a=not.gt.5", "not (a > $1) " + u + ":5"},
		"is":                                       {"a=is.null&b=is.not_null&c=is.true&d=is.false", "a is null and b is not null and c = true and d = false"},
		"not before is":                            {"a=not.is.null", "not (a is null)"},
		"in":                                       {"a=in.(1,2)", "a in [$1,$2] " + u + ":1 " + u + ":2"},
		"in of nothing":                            {"a=in.()", "a in []"},
		"in of one empty value":                    {`a=in.("")`, "a in [$1] " + u + ":"},
		"in with an empty value behind a comma":    {"a=in.(x,)", "a in [$1,$2] " + u + ":x " + u + ":"},
		"in with quotes":                           {`a=in.("b,c","d\"e\\f",g)`, "a in [$1,$2,$3] " + u + ":b,c " + u + `:d"e\f ` + u + ":g"},
		"in under not":                             {"a=not.in.(1)", "not (a in [$1]) " + u + ":1"},
		"a path":                                   {"meta.source.rank=gt.5", "meta.source.rank > $1 " + u + ":5"},
		"a name of letters of any script":          {"größe=eq.5", "größe = $1 " + u + ":5"},
		"escapes in key and value":                 {"%61=eq.%C3%A4%20%26%3D", "a = $1 " + u + ":ä &="},
		"a plus is a space":                        {"a=eq.b+c%2B", "a = $1 " + u + ":b c+"},
		"empty pairs are skipped":                  {"&&a=1&&", "a = $1 " + u + ":1"},
		"select, order, limit, offset":             {"select=a,b.c&order=a.desc,b,c.asc&limit=10&offset=5", " select a,b.c order a desc,b ,c asc limit 10 offset 5"},
		"aggregates and groups":                    {"select=a,count(*),sum(b)&group=a&order=sum(b).desc,count", " select a,count(*),sum(b) group a order sum(b) desc,count "},
		"select of everything":                     {"select=*", ""},
		"an order by a collation":                  {"order=a.und.desc,b.c.tr,min(b).und.asc", " order a collate und desc,b.c collate tr ,min(b) collate und asc"},
		"an order by a field called desc":          {"order=desc", " order desc "},
		"a field called count":                     {"count=eq.5", "count = $1 " + u + ":5"},
		"a field named like a keyword":             {"not=5&case=6", "not = $1 and case = $2 " + u + ":5 " + u + ":6"},
		"like":                                     {"a=like.*b_c*", "like(a, $1) " + x + ":*b_c*"},
		"like of a path under not":                 {`a.b=not.like.5\%25`, "not (like(a.b, $1)) " + x + `:5\%`},
		"like of nothing":                          {"a=like.", "like(a, $1) " + x + ":"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := translate(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.describe(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestAQueryStringThatMakesNoSenseIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		kind  fail.Kind
		want  string
	}{
		"a key that is no name":              {"a-b=5", fail.Invalid, `"a-b"`},
		"a key that would be a statement":    {"a%20or%20b=5", fail.Invalid, `"a or b"`},
		"a key with an empty part":           {"a..b=5", fail.Invalid, `"a..b"`},
		"a key that begins with a digit":     {"1a=5", fail.Invalid, `"1a"`},
		"an empty key":                       {"=5", fail.Invalid, `""`},
		"a constant of the language":         {"True=5", fail.NotFound, "no field True"},
		"a key without a value":              {"a", fail.Invalid, "no value"},
		"a bad escape":                       {"a=%4", fail.Invalid, "percent"},
		"an escape that is no hexadecimal":   {"a=%zz", fail.Invalid, "percent"},
		"a NUL":                              {"a=%00", fail.Invalid, "NUL"},
		"bytes that are no UTF-8":            {"a=%ff", fail.Invalid, "UTF-8"},
		"a surrogate":                        {"a=%ED%A0%80", fail.Invalid, "UTF-8"},
		"is with something else":             {"a=is.5", fail.Invalid, "a=is."},
		"in without parentheses":             {"a=in.1,2", fail.Invalid, "parentheses"},
		"in with an open quote":              {`a=in.("b)`, fail.Invalid, "quote"},
		"in with more behind a quote":        {`a=in.("b"c)`, fail.Invalid, "comma"},
		"select twice":                       {"select=a&select=b", fail.Invalid, "twice"},
		"select of nothing":                  {"select=", fail.Invalid, "select"},
		"select of a statement":              {"select=a+from+b", fail.Invalid, "select"},
		"a call that is no aggregate":        {"select=lower(a)", fail.Invalid, "aggregates"},
		"an aggregate of a path":             {"select=sum(a.b)", fail.Invalid, "field"},
		"an aggregate that is not closed":    {"select=sum(a", fail.Invalid, "aggregates"},
		"an aggregate of nothing":            {"select=sum()", fail.Invalid, "sum"},
		"an aggregate of a statement":        {"select=sum(a) from b--)", fail.Invalid, "field"},
		"a group by a path":                  {"group=a.b", fail.Invalid, "group"},
		"a group by two fields":              {"group=a,b", fail.Invalid, "group"},
		"group given twice":                  {"group=a&group=b", fail.Invalid, "twice"},
		"an order by a statement":            {"order=a+limit+1", fail.Invalid, "order"},
		"an order that is nothing but desc.": {"order=.desc", fail.Invalid, "order"},
		"an order by no aggregate":           {"order=lower(total).desc", fail.Invalid, "aggregates"},
		"a limit that is no number":          {"limit=x", fail.Invalid, "limit"},
		"a limit below zero":                 {"limit=-1", fail.Invalid, "limit"},
		"an empty limit":                     {"limit=", fail.Invalid, "limit"},
		"a limit past 64 bits":               {"limit=9223372036854775808", fail.Invalid, "limit"},
		"a lookup of no name":                {"lookup=a,", fail.Invalid, "lookup"},
		"a lookup of a statement":            {"lookup=a+on+b", fail.Invalid, "lookup"},
		"lookup given twice":                 {"lookup=a&lookup=b", fail.Invalid, "twice"},
		"a lookup on a path":                 {"lookup=r&r.on=a.b", fail.Invalid, "on"},
		"a lookup on a statement":            {"lookup=r&r.on=a+limit+1", fail.Invalid, "on"},
		"a lookup with a parent of no name":  {"lookup=r&r.parent=1", fail.Invalid, "parent"},
		"a level's key without a value":      {"lookup=r&r.stars", fail.Invalid, "r.stars"},
		"a level's key given twice":          {"r.limit=1&r.limit=2&lookup=r", fail.Invalid, "twice"},
		"a level's limit that is no number":  {"lookup=r&r.limit=x", fail.Invalid, "limit"},
		"a level's required that is no bool": {"lookup=r&r.required=x", fail.Invalid, "r.required"},
		"a level's filter by no field":       {"lookup=r&r.a-b=1", fail.Invalid, "a-b"},
		"a path that is too long":            {strings.Repeat("a.", 65) + "a=5", fail.Invalid, "path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := translate(tc.query)
			if fail.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v (%v), want %v with %q", err, fail.KindOf(err), tc.kind, tc.want)
			}
		})
	}
}

func TestUnescapeAgreesWithNetURL(t *testing.T) {
	for _, raw := range []string{"", "a", "a+b", "%41%c3%a4", "%", "%4", "%g0", "a%2Fb", "+%2B", "100%25"} {
		want, wantErr := url.QueryUnescape(raw)
		got, _, err := Unescape(nil, []byte(raw), true)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != want {
			t.Errorf("%q: got %q, %v, want %q, %v", raw, got, err, want, wantErr)
		}
	}
}
