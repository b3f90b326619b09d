package node

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/http1"
	"fenec/internal/vfs/crashfs"
)

// manyParams are requests whose parameters take many times the bytes of their text.
var manyParams = map[string]struct{ path, body string }{
	"a statement":                 {"query", `{"query": "get c", "params": [1` + strings.Repeat(",1", 200_000) + `]}`},
	"a list":                      {"query", `{"query": "get c where n in $1", "params": [[1` + strings.Repeat(",1", 1_500_000) + `]]}`},
	"many statements of a batch":  {"batch", strings.Repeat(`{"query": "get c where n = 7", "params": [1,1,1,1,1,1,1,1]}`+"\n", 25_000)},
	"few statements of a batch":   {"batch", strings.Repeat(`{"query": "get c where n = 7", "params": [1`+strings.Repeat(",1", 40_000)+`]}`+"\n", 5)},
	"parameters before the query": {"query", `{"params": [1` + strings.Repeat(",1", 200_000) + `], "query": "get c"}`},
}

func TestParametersAreCounted(t *testing.T) {
	for what, c := range manyParams {
		t.Run(what, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.fill("x", 1)
				answers := http1.NewBudget(512 << 20)
				r.budget.answers = answers
				r.want(200, "POST", "/t/x/"+c.path, c.body)
				synctest.Wait()
				if used := answers.Used(); used != 0 {
					t.Errorf("%d bytes stay in use", used)
				}

				began := time.Now()
				answers.Take(answers.Max(), 0)
				r.want(503, "POST", "/t/x/"+c.path, c.body)
				if took := time.Since(began); took != roomWait {
					t.Errorf("the wait for room took %s", took)
				}
				r.want(200, "POST", "/t/x/query", `{"query": "get c where n = $1", "params": [1]}`)
				answers.Give(answers.Max())

				r.budget.answers = http1.NewBudget(12 << 20)
				got := r.want(413, "POST", "/t/x/"+c.path, c.body)
				if !strings.Contains(got.body, "the parameters take more than the 12 MiB of memory") {
					t.Error(got.body)
				}
			})
		})
	}
}

// A statement without room after its own parameters is not asked to retry.
func TestAStatementDoesNotWaitForItsOwnParameters(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 0)
		r.budget.answers = http1.NewBudget(32 << 20)
		body := strings.Repeat(`{"query": "get c where n = 7", "params": [1,1,1,1]}`+"\n", 80_000)
		began := time.Now()
		got := r.want(413, "POST", "/t/x/batch", body)
		if strings.Contains(got.body, "the parameters take") {
			t.Error(got.body)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// The statements of a batch share what their parameters are in.
func TestTheParametersOfABatchStayApart(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 0)
		var body, want strings.Builder
		for i := range 3000 {
			unused := strings.Repeat(",0", i%20)
			fmt.Fprintf(&body, `{"query": "insert c {n: $1, s: $2}", "params": [%d,"%d"%s]}`+"\n", i, i, unused)
			fmt.Fprintf(&want, `,{"id":%d,"n":%d,"s":"%d"}`, i+1, i, i)
		}
		r.want(200, "POST", "/t/x/batch", body.String())
		if got := r.want(200, "GET", "/t/x/c?order=id", "").body; got != "["+want.String()[1:]+"]" {
			t.Errorf("got %.300s", got)
		}
	})
}
