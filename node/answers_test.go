package node

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/doc"
	"fenec/internal/http1"
	"fenec/internal/vfs/crashfs"
)

// longAnswers are requests whose answers are counted, for the tenant of longRows.
var longAnswers = map[string]struct{ method, path, body string }{
	"rows":              {"GET", "/t/x/c", ""},
	"a statement":       {"POST", "/t/x/query", `{"query": "get c order n"}`},
	"a batch":           {"POST", "/t/x/batch", strings.Repeat(`{"query": "get c where n = 1"}`+"\n", 3)},
	"a page of changes": {"GET", "/t/x/_changes?since=1", ""},
	"a schema":          {"GET", "/t/x/_schema", ""},
	"a seed":            {"GET", "/t/x/c/changes", ""},
}

// schemaFields is the number of fields of a collection whose schema is a long answer.
const schemaFields = 2000

const (
	longRowCount = 10
	longRowText  = 100_000
)

// longRows creates a tenant with a megabyte of rows.
func (r *running) longRows() {
	r.t.Helper()
	r.fill("x", 0)
	for i := range longRowCount {
		r.want(201, "POST", "/t/x/c", fmt.Sprintf(`{"n": %d, "s": %q}`, i, strings.Repeat("x", longRowText)))
	}
	fields := make([]string, schemaFields)
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d int", i)
	}
	r.query("x", "create collection wide ("+strings.Join(fields, ", ")+")")
}

// long sends one of longAnswers and returns once the answer begins.
func (r *running) long(what string) *http.Response {
	r.t.Helper()
	c := longAnswers[what]
	req, err := http.NewRequest(c.method, r.url+c.path, strings.NewReader(c.body))
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

func TestAnAnswerIsCountedUntilItsClientHasReadIt(t *testing.T) {
	for what := range longAnswers {
		t.Run(what, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.longRows()
				resp := r.long(what)
				synctest.Wait() // the client reads no more than its buffer
				used, before := r.budget.answers.Used(), r.budget.tenants.Held()
				length := int64(longRowCount * longRowText)
				switch what {
				case "a batch":
					length = 3 * longRowText
				case "a schema":
					length = schemaFields * 50
				}
				if used < length || used > length+length/2+1<<17 || before < used {
					t.Errorf("got %d bytes counted for answers and %d in all, want about %d", used, before, length)
				}
				if what == "a seed" {
					go io.Copy(io.Discard, resp.Body)
				} else if body, err := io.ReadAll(resp.Body); err != nil || int64(len(body)) < length {
					t.Errorf("got an answer of %d bytes, %v, want at least %d", len(body), err, length)
				}
				synctest.Wait()
				if used := r.budget.answers.Used(); used != 0 {
					t.Errorf("got %d bytes counted after the client read the answer, want 0", used)
				}
				resp.Body.Close()
			})
		})
	}
}

func TestADisconnectReturnsTheMemoryOfAnAnswer(t *testing.T) {
	for what := range longAnswers {
		inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
			r.longRows()
			resp := r.long(what)
			resp.Body.Close()
			r.client.CloseIdleConnections()
			synctest.Wait()
			if used := r.budget.answers.Used(); used != 0 {
				t.Errorf("%s: got %d bytes counted after the disconnect, want 0", what, used)
			}
		})
	}
}

func TestAHeadRequestForALiveQueryHoldsNoMemory(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.longRows()
		r.want(200, "HEAD", "/t/x/c/changes", "")
		synctest.Wait()
		if used := r.budget.answers.Used(); used != 0 {
			t.Errorf("got %d bytes counted, want 0", used)
		}
	})
}

func TestAStatementWaitsForMemoryAndIsRefusedAfterTheWait(t *testing.T) {
	for what := range longAnswers {
		t.Run(what, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.longRows()
				answers := r.budget.answers
				answers.Take(answers.Max(), 0)
				began := time.Now()
				time.AfterFunc(3*time.Second, func() { answers.Give(answers.Max()) })
				time.AfterFunc(time.Second, func() {
					if got := r.want(200, "GET", "/t/x/c?n=eq.1&select=n", ""); got.body != `[{"n":1}]` || time.Since(began) != time.Second {
						t.Errorf("short answer during the wait: got %s after %v, want it at once", got.body, time.Since(began))
					}
				})
				resp := r.long(what)
				if resp.StatusCode != 200 || time.Since(began) != 3*time.Second {
					t.Errorf("with memory after three seconds: got %d after %v, want 200 at that time", resp.StatusCode, time.Since(began))
				}
				resp.Body.Close()
				r.client.CloseIdleConnections()
				synctest.Wait()
				if !answers.Take(answers.Max(), 0) {
					t.Errorf("got %d bytes in use, want 0", answers.Used())
					return
				}
				began = time.Now()
				resp = r.long(what)
				body, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || time.Since(began) != roomWait || !strings.Contains(string(body), "memory for statements and their answers") {
					t.Errorf("without memory: got %d %s after %v, want 503 at the end of the wait", resp.StatusCode, body, time.Since(began))
				}
				if used := answers.Used(); used != answers.Max() {
					t.Errorf("got %d bytes in use, want %d", used, answers.Max())
				}
				answers.Give(answers.Max())
			})
		})
	}
}

func TestAClaimWaitsForMemoryNoLongerThanItsOwnWait(t *testing.T) {
	for _, c := range []struct {
		says   string
		others bool // another write changes the rows during the wait
		want   time.Duration
	}{{"its rows still match", false, 3 * time.Second}, {"its rows no longer match", true, 4 * time.Second}} {
		t.Run(c.says, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.longRows()
				answers := r.budget.answers
				answers.Take(answers.Max(), 0)
				began := time.Now()
				time.AfterFunc(time.Second, func() { r.exec("x", "set c {n: -1} where n > 3") })
				if c.others {
					time.AfterFunc(2*time.Second, func() { r.exec("x", "set c {n: 1} where n < 0") })
				}
				time.AfterFunc(3*time.Second, func() { answers.Give(answers.Max()) })
				got := r.want(200, "POST", "/t/x/query", `{"query": "set c {n: 9} where n < 0 returning n, s"}`, "Fenec-Wait", "4s")
				if took := time.Since(began); took != c.want || c.others != (got.body == "[]") {
					t.Errorf("got %d bytes after %v, want the answer after %v", len(got.body), took, c.want)
				}
			})
		})
	}
}

func TestAnAnswerLargerThanTheMemoryForAnswersIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("moves hundreds of MiB with one client, and nothing in it runs concurrently")
	}
	r := start(t, Config{MaxMemory: 256 << 20})
	r.fill("x", 0)
	text := strings.Repeat("x", 12<<20)
	for i := range 12 {
		r.want(201, "POST", "/t/x/c", fmt.Sprintf(`{"n": %d, "s": "%s"}`, i, text))
	}
	if got := r.want(413, "GET", "/t/x/c", ""); !strings.Contains(got.body, "more than the 128 MiB of memory") {
		t.Error(got.body)
	}
	if got := r.want(200, "GET", "/t/x/c?limit=8", ""); len(got.body) < 8*len(text) {
		t.Errorf("answer that fits alone: got %d bytes, want at least %d", len(got.body), 8*len(text))
	}
}

func TestAPageOfChangesEndsWhenMemoryRunsOut(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.longRows()
		all, last := r.changes("x", "since=0")
		synctest.Wait()
		taken := r.budget.answers.Max() - 400<<10
		r.budget.answers.Take(taken, 0)
		var got []string
		pages := 0
		for next := "0"; next != last && pages < 20; pages++ {
			var lines []string
			lines, next = r.changes("x", "since="+next)
			got = append(got, lines...)
		}
		if strings.Join(got, "\n") != strings.Join(all, "\n") || pages < 3 {
			t.Errorf("got %d pages with %d changes, want at least 3 pages with %d changes", pages, len(got), len(all))
		}
		synctest.Wait()
		if used := r.budget.answers.Used(); used != taken {
			t.Errorf("got %d bytes still in use, want 0", used-taken)
		}
		r.budget.answers.Give(taken)
	})
}

// starved runs test with a live query whose next event waits for memory.
func starved(t *testing.T, text string, test func(r *running, w *watching)) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 1)
		w := r.watch("/t/x/c/changes")
		w.next()
		answers := r.budget.answers
		answers.Take(answers.Max(), 0)
		r.exec("x", "insert c {s: $1}", doc.TextValue([]byte(text)))
		synctest.Wait()
		test(r, w)
		w.stop()
		synctest.Wait()
		if used := answers.Used(); used != 0 {
			t.Errorf("got %d bytes still in use, want 0", used)
		}
	})
}

func TestAStreamThatWaitsForMemorySendsHeartbeatsAndContinues(t *testing.T) {
	text := strings.Repeat("x", 3*longRowText)
	starved(t, text, func(r *running, w *watching) {
		for range 2 {
			if e, err := w.read(); err != nil || e.name != "" {
				t.Errorf("without memory: got %v, %v, want a heartbeat", e, err)
			}
		}
		r.budget.answers.Give(r.budget.answers.Max())
		w.expect(fmt.Sprintf(`change 3 [{"id":2,"n":null,"s":%q}] [] false`, text))
		r.want(201, "POST", "/t/x/c", `{"n": 7}`)
		w.expect(`change 4 [{"id":3,"n":7,"s":null}] [] false`)
	})
}

func TestAStreamThatWaitsForMemoryEndsWhenItsTenantIsDeleted(t *testing.T) {
	starved(t, strings.Repeat("x", 3*longRowText), func(r *running, w *watching) {
		began := time.Now()
		go r.wantAdmin(204, "DELETE", "tenants/x", "")
		w.expectEnd("tenant x is being moved or deleted, send the request again")
		if took := time.Since(began); took > endGrace {
			t.Errorf("got the end after %v, want it within %v", took, endGrace)
		}
		r.budget.answers.Give(r.budget.answers.Max())
	})
}

func TestAnEventOfManyRowsIsCountedOnce(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		r.fill("x", 1)
		r.budget.answers = http1.NewBudget(2 << 20)
		w := r.watch("/t/x/c/changes")
		w.next()
		row := fmt.Sprintf(`{"s": %q}`, strings.Repeat("x", longRowText))
		rows, err := doc.ParseDocuments(nil, []byte("["+strings.Repeat(row+",", 11)+row+"]"))
		if err != nil {
			t.Fatal(err)
		}
		r.exec("x", "insert into c $1", doc.Raw(rows).Value())
		if e := w.next(); e.name != "change" || len(e.Puts) != 12 {
			t.Errorf("event of 1.2 MB with 2 MiB of memory: got %.200s, want a change of 12 rows", e)
		}
		w.stop()
	})
}

func TestALongBatchIsAnsweredInOnePiece(t *testing.T) {
	r := start(t, Config{})
	r.longRows()
	row := strings.Trim(r.want(200, "GET", "/t/x/c?n=eq.1", "").body, "[]")
	lines := `{"query": "get c where n = 1"}` + "\n" + `{"query": "set c {n: n} where n > 7"}` + "\n" + `{"query": "get c where n = 1"}`
	want := fmt.Sprintf(`{"ok":3,"results":[{"rows":[%s]},{"affected":2},{"rows":[%s]}]}`, row, row)
	first := r.want(200, "POST", "/t/x/batch", lines, "Idempotency-Key", "k")
	again := r.want(200, "POST", "/t/x/batch", lines, "Idempotency-Key", "k")
	plain := r.want(200, "POST", "/t/x/batch", lines)
	if first.body != want || again.body != want || plain.body != want {
		t.Errorf("got %d, %d and %d bytes, want the same %d bytes each time", len(first.body), len(again.body), len(plain.body), len(want))
	}
	if first.header.Get("Content-Length") != fmt.Sprint(len(want)) || first.header.Get("Fenec-Seq") != again.header.Get("Fenec-Seq") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got headers %v and %v, want the length, one position and a replay", first.header, again.header)
	}
}
