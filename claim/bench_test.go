package claim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"fenec/engine"
	"fenec/internal/vfs/crashfs"
)

// BenchmarkPutBesideHeldClaims puts documents that nobody waits for, in another collection and in the claims' own.
func BenchmarkPutBesideHeldClaims(b *testing.B) {
	for _, held := range []struct{ lines, of int }{{0, 0}, {1, 1000}, {1000, 1}} {
		for _, put := range []string{`put other {state: "new", run_at: now()}`, `put jobs {state: "new", run_at: now()}`} {
			b.Run(fmt.Sprintf("%d lines of %d/%.9s", held.lines, held.of, put), func(b *testing.B) {
				db, err := engine.Create("/t.fenec", engine.Options{FS: crashfs.New(1)})
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				ctx := context.Background()
				for _, name := range []string{"jobs", "other"} {
					if _, err := db.Exec(ctx, engine.Statement{Text: "create collection " + name + " (state text, run_at timestamp)"}, nil); err != nil {
						b.Fatal(err)
					}
				}
				hall := New(db, time.Now)
				for line := range held.lines {
					for range held.of {
						c, _, err := db.Claim([]engine.Statement{{Text: fmt.Sprintf(`del jobs where state = "%d" and run_at <= now()`, line)}})
						if err != nil {
							b.Fatal(err)
						}
						w := hall.Join(c)
						defer w.Leave()
						if len(w.called) == 1 {
							<-w.Called()
							if _, err := w.Turn(ctx, func() error { return engine.ErrNothing }); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
				for b.Loop() {
					if _, err := db.Exec(ctx, engine.Statement{Text: put}, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
