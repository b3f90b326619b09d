package syntax

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShapes(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`get books where id = $1`, `get books where id = ?`},
		{`SELECT * FROM books WHERE id = 17`, `get books where id = ?`},
		{`get books where title = 'Emma' or title = "Emma"`, `get books where title = ? or title = ?`},
		{`get books where n > -5 and n - 5 > 1.5 and -n < $2`, `get books where n > ? and n - ? > ? and -n < ?`},
		{`get books where x in [1, -2, 3]`, `get books where x in ?`},
		{`get books where x in [1, n]`, `get books where x in [?, n]`},
		{`get books where a is null and b is not null and c = true`, `get books where a is null and b is not null and c = ?`},
		{`get books where meta.true = 1 limit 5 offset 6`, `get books where meta.true = ? limit ? offset ?`},
		{`get books select title, n + 5, 'secret' as kind`, `get books select title, n + ?, ? as kind`},
		{`put books {title: "Emma", meta: {"a@b.c": 1, k: [1]}, at: now()}`, `put books {title: ?, meta: ?, at: now()}`},
		{`put books [{title: "Emma"}, {title: "Ulysses"}]`, `put books ?`},
		{`put books [{title: "Emma"}, {title: lower("U")}]`, `put books [?, {title: lower(?)}]`},
		{`insert into books $1`, `insert into books ?`},
		{`set books {n: n + 1, "odd key": 2} where id = 4 returning id require 1`, `set books {n: n + ?, ?: ?} where id = ? returning id require ?`},
		{`set books {n: case when n > 3 then 'a' else null end}`, `set books {n: case when n > ? then ? else ? end}`},
		{`get books select year, sum(n) where n > 3 group year having count(*) > 4`, `get books select year, sum(n) where n > ? group year having count(*) > ?`},
		{`get books where id in (get loans select book where late = true)`, `get books where id in (get loans select book where late = ?)`},
		{`get books limit 2 lookup loans on book where n = 5 limit 3`, `get books limit ? lookup loans on book where n = ? limit ?`},
		{`del books limit $1`, `del books limit ?`},
		{`create collection c (n int @unique, t text required)`, `create collection c (n int @unique, t text required)`},
		{`create collection c (at timestamp @ttl(30m), v vector<3> @hnsw(m=8))`, `create collection c (at timestamp @ttl(?), v vector<?> @hnsw(cosine, m=?))`},
		{`insert into c {k: 1} if absent else set {n: n + 1, "odd key": 2} returning id, n + 1`, `insert into c {k: ?} if absent else set {n: n + ?, ?: ?} returning id, n + ?`},
		{`insert c [{k: 1}, {k: 2}] if absent`, `insert into c ? if absent`},
		{`get c select count(distinct n) where a = 3 require 4`, `get c select count(distinct n) where a = ? require ?`},
		{`collections`, `collections`},
		{`get c where t = "` + strings.Repeat("x", 70_000) + `"`, longShape},
	} {
		st, err := Parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := Shape(st); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.text, got, tc.want)
		}
	}
	wide, err := Parse(`get c where ` + strings.Repeat(`é = 1 and `, 1000) + `é = 1`)
	if err != nil {
		t.Fatal(err)
	}
	if got := Shape(wide); len(got) > MaxShape || !strings.HasSuffix(got, "...") || strings.ToValidUTF8(got, "!") != got {
		t.Errorf("a wide statement has the shape %s", got)
	}
}

var valueInShape = regexp.MustCompile(`["'$]|(^|[^\pL\pN_])[0-9]`)

// No value of any statement gets into its shape, and statements that differ in their values have one.
func TestNoValueGetsIntoAShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := drawStatement(t)
		if _, ok := st.(*CreateCollection); ok {
			return // has no values
		}
		if got := Shape(st); got != longShape && valueInShape.MatchString(got) {
			t.Fatalf("%s\nhas the shape %s", st, got)
		}
	})
}
