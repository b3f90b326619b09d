package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering is a server that sends the answers in turn, repeats the last one, and counts the requests. A status of 0
// breaks the connection.
func answering(t *testing.T, answers ...answer) (*Client, *int) {
	t.Helper()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(asked, len(answers)-1)]
		asked++
		if a.status == 0 {
			panic(http.ErrAbortHandler)
		}
		if a.after != "" {
			w.Header().Set("Retry-After", a.after)
		}
		w.WriteHeader(a.status)
		io.WriteString(w, a.body)
	}))
	c := New(server.URL, "tok")
	c.Patience = 5 * time.Second
	t.Cleanup(func() { c.Close(); server.Close() })
	return c, &asked
}

type answer struct {
	status int
	body   string
	after  string
}

func TestInsistTriesAgainOnlyWhereItMayHelp(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		asked   int
		body    string
		err     string
		at      int
	}{
		"an answer is taken at once":                  {[]answer{{200, "yes", ""}}, 1, "yes", "", 0},
		"a move's 503 is waited for":                  {[]answer{{503, `{"error":"frozen"}`, "0"}, {200, "yes", ""}}, 2, "yes", "", 0},
		"a node that went away is asked again":        {[]answer{{502, `{"error":"gone"}`, ""}, {0, "", ""}, {504, "", ""}, {201, "yes", ""}}, 4, "yes", "", 0},
		"too many requests are sent later":            {[]answer{{429, `{"error":"slowly"}`, "0"}, {200, "yes", ""}}, 2, "yes", "", 0},
		"a bad statement stays one":                   {[]answer{{400, `{"error":"no such thing","completed":0,"at":3}`, ""}}, 1, "", "no such thing", 3},
		"a full disk is not asked again":              {[]answer{{507, `{"error":"full"}`, ""}}, 1, "", "full", -1},
		"a refusal without a reason names its status": {[]answer{{403, "<html>", ""}}, 1, "", "the response was 403 Forbidden", -1},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := answering(t, c.answers...)
			body, err := client.Insist(t.Context(), "POST", "/batch", []byte("x"))
			if *asked != c.asked || string(body) != c.body {
				t.Errorf("asked %d times and got %q, want %d and %q", *asked, body, c.asked, c.body)
			}
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var r *Refusal
			if !errors.As(err, &r) || r.Message != c.err || r.At != c.at {
				t.Errorf("refusal %+v, want %q at %d", err, c.err, c.at)
			}
		})
	}
}

func TestInsistGivesUpAndSaysWhy(t *testing.T) {
	client, asked := answering(t, answer{503, `{"error":"frozen"}`, ""})
	client.Patience = 300 * time.Millisecond
	_, err := client.Insist(t.Context(), "GET", "/", nil)
	if err == nil || err.Error() != "gave up after 300ms: frozen" || *asked < 2 {
		t.Errorf("error %v after %d requests", err, *asked)
	}
}

func TestInsistStopsWithItsCaller(t *testing.T) {
	client, _ := answering(t, answer{503, `{"error":"frozen"}`, "30"})
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := client.Insist(ctx, "GET", "/", nil); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

func TestAReasonIsShort(t *testing.T) {
	_, err := New("http://127.0.0.1:1", "").Ask(t.Context(), "GET", "/", nil)
	if got := Reason(err); !strings.Contains(got, "refused") || strings.Contains(got, "http") {
		t.Errorf("reason %q", got)
	}
}

func TestTheTokenIsSent(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	c := New(server.URL+"/", "tok")
	defer c.Close()
	if _, err := c.Ask(t.Context(), "GET", "/x", nil); err != nil || got != "Bearer tok" {
		t.Errorf("Authorization %q, error %v", got, err)
	}
}
