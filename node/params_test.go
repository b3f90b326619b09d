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

// manyParams are requests whose parsed parameters need many times the bytes of their text.
var manyParams = map[string]struct{ path, body string }{
	"a statement":                 {"query", `{"query": "get c", "params": [1` + strings.Repeat(",1", 200_000) + `]}`},
	"a list":                      {"query", `{"query": "get c where n in $1", "params": [[1` + strings.Repeat(",1", 1_500_000) + `]]}`},
	"many statements of a batch":  {"batch", strings.Repeat(`{"query": "get c where n = 7", "params": [1,1,1,1,1,1,1,1]}`+"\n", 25_000)},
	"few statements of a batch":   {"batch", strings.Repeat(`{"query": "get c where n = 7", "params": [1`+strings.Repeat(",1", 40_000)+`]}`+"\n", 5)},
	"parameters before the query": {"query", `{"params": [1` + strings.Repeat(",1", 200_000) + `], "query": "get c"}`},
}

func TestParametersCountAgainstTheMemoryForAnswers(t *testing.T) {
	for what, c := range manyParams {
		t.Run(what, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.fill("x", 1)
				answers := http1.NewBudget(512 << 20)
				r.budget.answers = answers
				r.want(200, "POST", "/t/x/"+c.path, c.body)
				synctest.Wait()
				if used := answers.Used(); used != 0 {
					t.Errorf("%d bytes are in use after the request, expected 0", used)
				}

				began := time.Now()
				answers.Take(answers.Max(), 0)
				r.want(503, "POST", "/t/x/"+c.path, c.body)
				if took := time.Since(began); took != roomWait {
					t.Errorf("the wait for memory took %s, expected %s", took, roomWait)
				}
				r.want(200, "POST", "/t/x/query", `{"query": "get c where n = $1", "params": [1]}`)
				answers.Give(answers.Max())

				r.budget.answers = http1.NewBudget(12 << 20)
				got := r.want(413, "POST", "/t/x/"+c.path, c.body)
				if !strings.Contains(got.body, "the values of the request take more than the 12 MiB of memory") {
					t.Error(got.body)
				}
			})
		})
	}
}

// documentsToInsert are bodies of POST /C of many documents, or of one that needs many times the bytes of its text.
var documentsToInsert = map[string]string{
	"many documents":       "[{}" + strings.Repeat(",{}", 200_000) + "]",
	"a list in a document": `{"v": [1` + strings.Repeat(",1", 1_500_000) + `]}`,
	"many keys":            `{"v": {"k0":1` + manyKeys(200_000) + `}}`,
}

// manyKeys returns n members of a JSON object, each after a comma.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":1`, i+1)
	}
	return b.String()
}

func TestDocumentsToInsertCountAgainstTheMemoryForAnswers(t *testing.T) {
	for what, body := range documentsToInsert {
		t.Run(what, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.fill("x", 1)
				r.query("x", "create collection d (v json)")
				answers := http1.NewBudget(512 << 20)
				r.budget.answers = answers
				answers.Take(answers.Max(), 0)
				began := time.Now()
				r.want(503, "POST", "/t/x/d", body)
				if took := time.Since(began); took != roomWait {
					t.Errorf("the wait for memory took %s, expected %s", took, roomWait)
				}
				r.want(201, "POST", "/t/x/d", "{}")
				answers.Give(answers.Max())

				r.budget.answers = http1.NewBudget(2 << 20)
				if got := r.want(413, "POST", "/t/x/d", body); !strings.Contains(got.body, "2 MiB of memory") {
					t.Error(got.body)
				}
				r.budget.answers = answers
				r.want(201, "POST", "/t/x/d", body)
				synctest.Wait()
				if used := answers.Used(); used != 0 {
					t.Errorf("%d bytes are in use after the request, expected 0", used)
				}
			})
		})
	}
}

// The memory of a block counts until the block has landed, even if its statement is short.
func TestAWriteOfManyRowsCountsAgainstTheMemoryForAnswers(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 100_000)
		for _, write := range []string{"set c {n: 7}", "del c", "set c {n: 7} where n < 90000"} {
			r.budget.answers = http1.NewBudget(2 << 20)
			got := r.want(413, "POST", "/t/x/query", fmt.Sprintf(`{"query": %q}`, write))
			if !strings.Contains(got.body, "2 MiB of memory that one may hold: it was writing") {
				t.Errorf("%s: got %s, expected a refusal that names the step", write, got.body)
			}
			if n := r.count("x"); n != `{"count":100000}` {
				t.Fatalf("got %s after the refused %s, expected 100000 rows", n, write)
			}
			r.budget.answers = http1.NewBudget(64 << 20)
			r.budget.answers.Take(64<<20, 0)
			r.want(503, "POST", "/t/x/query", fmt.Sprintf(`{"query": %q}`, write))
		}
		r.budget.answers = http1.NewBudget(64 << 20)
		r.want(200, "POST", "/t/x/query", `{"query": "del c"}`)
		synctest.Wait()
		if used := r.budget.answers.Used(); used != 0 {
			t.Errorf("%d bytes are in use after the request, expected 0", used)
		}
	})
}

// A statement without room after its own parameters is not asked to retry.
func TestAStatementDoesNotWaitForItsOwnParameters(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 0)
		r.budget.answers = http1.NewBudget(32 << 20)
		body := strings.Repeat(`{"query": "get c where n = 7", "params": [1,1,1,1]}`+"\n", 80_000)
		began := time.Now()
		got := r.want(413, "POST", "/t/x/batch", body)
		if strings.Contains(got.body, "the values of the request take") {
			t.Error(got.body)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the refusal took %s, expected no wait", took)
		}
	})
}

// The statements of a batch share the memory of their parameters.
func TestStatementsOfABatchKeepTheirOwnParameters(t *testing.T) {
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
			t.Errorf("got %.300s, expected %.300s", got, "["+want.String()[1:]+"]")
		}
	})
}
