package node

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

func TestStatementStatisticsCountCallsRowsAndErrors(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 3)
	r.want(204, "DELETE", "/t/x/_stats/statements", "")
	r.want(200, "GET", "/t/x/c?n=1", "")
	r.want(200, "GET", "/t/x/c?n=2&limit=1", "")
	r.want(200, "POST", "/t/x/query", `{"query": "get c where n = $1", "params": [3]}`)
	r.want(409, "POST", "/t/x/c", `{"id": 1}`)
	var got []struct {
		Statement           string
		Calls, Rows, Errors int
		Total               float64 `json:"total_ms"`
		Max                 float64 `json:"max_ms"`
	}
	body := r.want(200, "GET", "/t/x/_stats/statements", "").body
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	want := map[string][3]int{
		"get c where n = ?": {2, 2, 0}, "get c where n = ? limit ?": {1, 1, 0}, "insert into c ?": {1, 0, 1},
	}
	if len(got) != len(want) {
		t.Errorf("got %s, expected %d statements", body, len(want))
	}
	for i, s := range got {
		if want[s.Statement] != [3]int{s.Calls, s.Rows, s.Errors} || s.Max <= 0 || s.Max > s.Total {
			t.Errorf("%s: got %+v, expected %v", s.Statement, s, want[s.Statement])
		}
		if i > 0 && s.Total > got[i-1].Total {
			t.Errorf("%s is listed after a statement that took less time: %s", s.Statement, body)
		}
	}
	r.want(204, "DELETE", "/t/x/_stats/statements", "")
	if got := r.want(200, "GET", "/t/x/_stats/statements", "").body; got != "[]" {
		t.Errorf("got %s after a reset, expected []", got)
	}
	r.want(405, "POST", "/t/x/_stats/statements", "")
	r.want(404, "GET", "/t/x/_stats/statements/more", "")
}

// shared is a log that a node and a test use concurrently.
type shared struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func TestASlowStatementIsLoggedWithItsTenant(t *testing.T) {
	var log shared
	r := start(t, Config{Log: zerolog.New(&log), Slow: 1})
	r.fill("acme", 1)
	r.want(200, "GET", "/t/acme/c?s=eq.s1", "")
	got := log.String()
	if !strings.Contains(got, `"tenant":"acme","statement":"get c where s = ?"`) || strings.Contains(got, "s1") {
		t.Errorf("got the log\n%s\nexpected the tenant and the statement without its values", got)
	}
}
