package engine

import (
	"fmt"
	"strings"
	"testing"

	"fenec/engine/doc"
	"fenec/internal/vfs/crashfs"
)

// fill puts rows of `fields` into a collection, a thousand in each statement.
func fill(b *testing.B, db *DB, collection string, rows int, row func(i int) string) {
	for at := 0; at < rows; at += 1000 {
		var text strings.Builder
		for i := at; i < min(at+1000, rows); i++ {
			fmt.Fprintf(&text, "%s{%s}", map[bool]string{true: "", false: ","}[i == at], row(i))
		}
		if _, err := db.Exec(b.Context(), Everything(), Statement{Text: "put " + collection + " [" + text.String() + "]"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	db, err := Create("/b", Options{FS: crashfs.New(1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	for _, text := range []string{"create collection products (name text, price int)", "create collection reviews (product_id int @hash, stars int, created timestamp, text text)"} {
		if _, err := db.Exec(b.Context(), Everything(), Statement{Text: text}, nil); err != nil {
			b.Fatal(err)
		}
	}
	fill(b, db, "products", 20_000, func(i int) string { return fmt.Sprintf(`name: "product %d", price: %d`, i, i%100) })
	fill(b, db, "reviews", 100_000, func(i int) string {
		return fmt.Sprintf(`product_id: %d, stars: %d, created: %d, text: "review number %d of a product"`, i*7919%20_000+1, i%5, i*31%100_000, i)
	})
	for name, text := range map[string]string{
		"newest": "get products where id > $1 limit 20 lookup reviews on product_id order created desc limit 3",
		"first":  "get products where id > $1 limit 20 lookup reviews on product_id limit 3",
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			n := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				n = (n + 20) % 19_000
				r, err := db.Exec(b.Context(), Everything(), Statement{Text: text, Params: []doc.Value{doc.IntValue(n)}}, dst[:0])
				if err != nil || r.Rows != 20 {
					b.Fatal(r, err)
				}
				dst = r.Body
			}
		})
	}
}

func BenchmarkGroup(b *testing.B) {
	const rows = 1_000_000
	db, err := Create("/b", Options{FS: crashfs.New(1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(b.Context(), Everything(), Statement{Text: "create collection orders (status text, kind int, total int, price float)"}, nil); err != nil {
		b.Fatal(err)
	}
	fill(b, db, "orders", rows, func(i int) string {
		return fmt.Sprintf(`status: "status %d", kind: %d, total: %d, price: %d.5`, i*31%100, i*31%100, i%1000, i%777)
	})
	for name, text := range map[string]string{
		"by text":   "get orders select status, count(*), sum(total) group status",
		"by int":    "get orders select kind, count(*), sum(total) group kind",
		"averages":  "get orders select status, avg(price), min(total), max(total) group status",
		"no groups": "get orders select count(*), sum(total)",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Exec(b.Context(), Everything(), Statement{Text: text}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
