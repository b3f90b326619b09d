package claim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"fenec/engine"
	"fenec/internal/vfs/crashfs"
)

// BenchmarkPutBesideHeldClaims puts documents that match no claim, in another collection and in the one that the claims watch.
func BenchmarkPutBesideHeldClaims(b *testing.B) {
	for _, held := range []struct{ queues, of int }{{0, 0}, {1, 1000}, {1000, 1}} {
		for _, put := range []string{`put other {state: "new", run_at: now()}`, `put jobs {state: "new", run_at: now()}`} {
			b.Run(fmt.Sprintf("%d queues of %d/%.9s", held.queues, held.of, put), func(b *testing.B) {
				db, err := engine.Create("/t.fenec", engine.Options{FS: crashfs.New(1)})
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				ctx := context.Background()
				for _, name := range []string{"jobs", "other"} {
					if _, err := db.Exec(ctx, engine.Everything(), engine.Statement{Text: "create collection " + name + " (state text, run_at timestamp)"}, nil); err != nil {
						b.Fatal(err)
					}
				}
				queues := New(db, time.Now)
				for queue := range held.queues {
					for range held.of {
						c, _, err := db.Claim(engine.Everything(), []engine.Statement{{Text: fmt.Sprintf(`del jobs where state = "%d" and run_at <= now()`, queue)}})
						if err != nil {
							b.Fatal(err)
						}
						w := queues.Join(c)
						defer w.Leave()
						if len(w.ready) == 1 {
							<-w.Ready()
							if _, err := w.Retry(ctx, func() error { return engine.ErrNothing }); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
				for b.Loop() {
					if _, err := db.Exec(ctx, engine.Everything(), engine.Statement{Text: put}, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
