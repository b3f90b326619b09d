package node

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/vfs/crashfs"
)

// engineClock is a clock that counts the calls by the engine. Each of them advances the clock by step, and one may panic. The
// engine calls it when a statement begins and after every few thousand rows of a scan.
type engineClock struct {
	now, step, calls atomic.Int64
	panicAt          atomic.Int64 // the call; 0 for none
	held             func() int64
	most             atomic.Int64 // of held, at calls
}

func (c *engineClock) Now() time.Time {
	pc, _, _, _ := runtime.Caller(1)
	if !strings.HasPrefix(runtime.FuncForPC(pc).Name(), "fenec/engine") {
		return time.Unix(1_700_000_000, c.now.Load())
	}
	if c.held != nil {
		c.most.Store(max(c.most.Load(), c.held()))
	}
	if c.calls.Add(1) == c.panicAt.Load() {
		panic("the clock panics, as the test asks for")
	}
	return time.Unix(1_700_000_000, c.now.Add(c.step.Load()))
}

// set makes the clock advance by step with each call, and panic at the given call from now, 0 for none.
func (c *engineClock) set(panicAt int64, step time.Duration) {
	c.calls.Store(0)
	c.panicAt.Store(panicAt)
	c.step.Store(int64(step))
}

// manyRows is a number of rows for which a scan checks the time several times.
const manyRows = 10_000

// withManyRows runs a test of a node whose tenant x has manyRows rows of about 100 bytes.
func withManyRows(t *testing.T, timeout time.Duration, test func(r *running, clock *engineClock)) {
	clock := &engineClock{}
	inBubble(t, Config{FS: crashfs.New(1), Clock: clock.Now, StatementTimeout: timeout}, func(r *running) {
		r.fill("x", 0)
		row := fmt.Sprintf(`{"n": 1, "s": %q}`, strings.Repeat("x", 80))
		r.want(201, "POST", "/t/x/c", "["+strings.Repeat(row+",", manyRows-1)+row+"]")
		synctest.Wait()
		clock.held = r.budget.answers.Used
		test(r, clock)
		if most := clock.most.Load(); most == 0 {
			t.Error("no statement held memory, expected some")
		}
	})
}

// checkReturned checks that no memory for answers is in use, no stream is counted and the tenant is idle.
func (r *running) checkReturned(after string) {
	r.t.Helper()
	r.client.CloseIdleConnections()
	synctest.Wait()
	if used := r.budget.answers.Used(); used != 0 {
		r.t.Errorf("after %s %d bytes are in use, expected 0", after, used)
	}
	if streams := r.streaming.Load(); streams != 0 {
		r.t.Errorf("after %s %d streams are counted, expected 0", after, streams)
	}
	if one := r.tenants.Find([]byte("x")); one != nil && !r.tenants.CloseIfIdle(one) {
		r.t.Errorf("after %s the tenant is in use, expected idle", after)
	}
}

func TestAPanicReturnsTheMemoryOfAnAnswer(t *testing.T) {
	for name, path := range map[string]string{"rows": "/t/x/c?n=1", "a seed": "/t/x/c/changes?n=1"} {
		t.Run(name, func(t *testing.T) {
			withManyRows(t, time.Hour, func(r *running, clock *engineClock) {
				status, panics := 0, -1
				for ; status != 200; panics++ {
					r.count("x") // opens the tenant
					clock.set(int64(panics)+2, 0)
					resp, err := r.client.Get(r.url + path)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					clock.set(0, 0)
					r.checkReturned(fmt.Sprintf("panic %d", panics+2))
					if status = resp.StatusCode; status != 200 && status != 500 {
						t.Fatalf("got status %d, expected 500", status)
					}
				}
				if panics < 3 {
					t.Errorf("got %d panics, expected one for each call of the clock", panics)
				}
			})
		})
	}
}

func TestAPanicReturnsTheMemoryOfAnEvent(t *testing.T) {
	withManyRows(t, time.Hour, func(r *running, clock *engineClock) {
		const panicked = 3
		for call := int64(1); call <= panicked; call++ {
			w := r.watch(fmt.Sprintf("/t/x/c/changes?n=-%d", call)) // no row
			w.next()
			synctest.Wait()
			if !r.budget.answers.Take(r.budget.answers.Max(), 0) { // the event has to wait
				t.Errorf("%d bytes are in use after the seed, expected 0", r.budget.answers.Used())
			}
			r.exec("x", fmt.Sprintf("set c {n: -%d}", call))
			synctest.Wait()
			clock.set(call, 0)
			r.budget.answers.Give(r.budget.answers.Max())
			_, err := w.read()
			clock.set(0, 0)
			if err == nil {
				t.Errorf("the stream goes on after a panic at call %d, expected its end", call)
			}
			w.stop()
			r.checkReturned(fmt.Sprintf("a panic at call %d", call))
		}
	})
}

func TestAFailedStatementReturnsItsMemory(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		step      time.Duration // of the clock
		status    int
	}{
		"an error in the last row": {"get c select s, 1 / n as one order by id", 0, 400},
		"a timeout":                {"get c", 3 * time.Millisecond, 503},
	} {
		t.Run(name, func(t *testing.T) {
			withManyRows(t, 10*time.Millisecond, func(r *running, clock *engineClock) {
				r.query("x", "insert c {n: 0}")
				clock.set(0, c.step)
				r.want(c.status, "POST", "/t/x/query", fmt.Sprintf(`{"query": %q}`, c.statement))
				clock.set(0, 0)
				r.checkReturned(name)
			})
		})
	}
}

// The seed of a live query is cut if the client does not read, the tenant is deleted or the node shuts down.
func TestACutAnswerReturnsItsMemory(t *testing.T) {
	for name, end := range map[string]func(r *running){
		"a client that does not read": func(*running) { time.Sleep(10 * time.Minute) },
		"the deletion of the tenant":  func(r *running) { r.wantAdmin(204, "DELETE", "tenants/x", "") },
		"the shutdown of the node":    func(r *running) { r.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
				r.longRows()
				resp := r.long("a seed")
				synctest.Wait()
				if used := r.budget.answers.Used(); used < longRowCount*longRowText {
					t.Errorf("%d bytes are in use before, expected those of the seed", used)
				}
				end(r)
				r.checkReturned(name)
				if _, err := io.Copy(io.Discard, resp.Body); err == nil {
					t.Error("got the whole seed, expected it cut")
				}
				resp.Body.Close()
			})
		})
	}
}

// A write that is refused for lack of memory changes nothing, for an answer of any length.
func TestAWriteIsNotRefusedForLackOfMemoryAfterItLanded(t *testing.T) {
	inBubble(t, Config{FS: crashfs.New(1)}, func(r *running) {
		const rows = 80
		r.fill("x", 0)
		row := fmt.Sprintf(`{"n": 0, "s": %q}`, strings.Repeat("x", 970))
		r.want(201, "POST", "/t/x/c", "["+strings.Repeat(row+",", rows-1)+row+"]")
		answers := r.budget.answers
		statuses := map[int]int{}
		for i := range rows {
			synctest.Wait()
			answers.Take(answers.Max(), 0)
			got := r.do("POST", "/t/x/query", fmt.Sprintf(`{"query": "set c {n: %d} where id <= %[1]d returning id, n, s"}`, i+1))
			answers.Give(answers.Max())
			statuses[got.status]++
			if wrote := r.query("x", "get c where id = 1 select n") == fmt.Sprintf(`[{"n":%d}]`, i+1); wrote != (got.status == 200) {
				t.Errorf("with an answer of %d rows: got status %d, rows written: %v", i+1, got.status, wrote)
			}
		}
		if statuses[200] == 0 || statuses[503] == 0 || len(statuses) != 2 {
			t.Errorf("got the statuses %v, expected some of 200 and some of 503", statuses)
		}
	})
}
