package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fenec/client"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tenant is a server with changes that are all the same, and a list of its requests.
type tenant struct {
	mu     sync.Mutex
	end    uint64 // the last change there is
	page   uint64 // changes a page
	fails  int    // requests that fail with 503 first
	asked  []string
	landed chan struct{} // closed at the next change, for a page that waits
}

func serve(t *testing.T, s *tenant) *client.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := client.New(server.URL+"/t/acme", client.Options{Patience: 10 * time.Second})
	t.Cleanup(c.Close)
	return c
}

func (s *tenant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), "/t/acme")+" "+r.Header.Get("Fenec-History")+string(body)))
	if s.fails > 0 {
		s.fails--
		w.WriteHeader(503)
		return
	}
	if r.Method == "POST" {
		io.WriteString(w, `{"name":"k","since":2}`)
		return
	}
	since := s.end
	if text := r.URL.Query().Get("since"); text != "" {
		since, _ = strconv.ParseUint(text, 10, 64)
	} else if r.URL.Query().Get("consumer") != "" {
		since = 2
	}
	if since == s.end && r.URL.Query().Get("wait") != "" {
		s.mu.Unlock()
		select {
		case <-s.landed:
		case <-r.Context().Done():
		}
		s.mu.Lock()
		s.end++
	}
	next := min(since+s.page, s.end)
	w.Header().Set("Fenec-Next", strconv.FormatUint(next, 10))
	w.Header().Set("Fenec-History", "h")
	for n := since + 1; n <= next; n++ {
		fmt.Fprintln(w, line(n))
	}
}

func line(n uint64) string {
	return fmt.Sprintf(`{"seq":%d,"at":1700000000000,"collection":"c","op":"put","id":%d,"doc":{"id":%d}}`, n, n, n)
}

func (s *tenant) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Join(s.asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(s.asked, "\n"), strings.Join(want, "\n"))
	}
}

func TestOnceEndsBehindTheLastChange(t *testing.T) {
	s := &tenant{end: 5, page: 2, fails: 1}
	var out bytes.Buffer
	next, known, err := Run(t.Context(), Options{Client: serve(t, s), Out: &out, From: true, Since: 1, Once: true})
	if next != 5 || !known || err != nil {
		t.Errorf("next is %d, %v, %v", next, known, err)
	}
	if want := line(2) + "\n" + line(3) + "\n" + line(4) + "\n" + line(5) + "\n"; out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	s.wantAsked(t, "GET /_changes?since=1", "GET /_changes?since=1", "GET /_changes?since=3 h", "GET /_changes?since=5 h")
}

func TestAConsumerMovesBehindWhatIsPrinted(t *testing.T) {
	s := &tenant{end: 5, page: 2}
	var out bytes.Buffer
	if _, _, err := Run(t.Context(), Options{Client: serve(t, s), Out: &out, Consumer: "a/k", Once: true}); err != nil {
		t.Fatal(err)
	}
	s.wantAsked(t, "POST /_changes/consumers/a%2Fk", "GET /_changes?consumer=a%2Fk", `POST /_changes/consumers/a%2Fk h{"since":4}`,
		"GET /_changes?since=4 h", `POST /_changes/consumers/a%2Fk h{"since":5}`, "GET /_changes?since=5 h")
	s = &tenant{end: 5, page: 9}
	full := errors.New("no space")
	_, _, err := Run(t.Context(), Options{Client: serve(t, s), Out: failing{full}, Consumer: "k", From: true, Since: 3, Once: true})
	if !errors.Is(err, full) {
		t.Errorf("an output that fails: %v", err)
	}
	s.wantAsked(t, `POST /_changes/consumers/k {"since":3}`, "GET /_changes?consumer=k") // and no commit
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestItWaitsUntilItIsToldToEnd(t *testing.T) {
	s := &tenant{end: 5, page: 2, landed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	printed := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		next, _, err := Run(ctx, Options{Client: serve(t, s), Out: lines(printed)})
		if next < 6 {
			err = fmt.Errorf("next is %d", next)
		}
		ended <- err
	}()
	s.landed <- struct{}{}
	for got := range printed {
		if got == "" {
			continue // a page without changes
		}
		if got != line(6)+"\n" {
			t.Errorf("printed %q", got)
		}
		break
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestWhatIsNoTenantIsToldSo(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a web page":           {200, "<html>", "response without a Fenec-Next header: check that the URL is that of a tenant"},
		"a cursor that's gone": {410, `{"error":"too old","since":7}`, "consumer k is too far behind: too old"},
		"another tenant's":     {409, `{"error":"not of here"}`, "not of here"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" {
					io.WriteString(w, `{"name":"k","since":2}`)
					return
				}
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			}))
			defer server.Close()
			c := client.New(server.URL, client.Options{Patience: 5 * time.Second})
			defer c.Close()
			_, _, err := Run(t.Context(), Options{Client: c, Out: io.Discard, Consumer: "k"})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestLinesForPeople(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local).UnixMilli()
	in := fmt.Sprintf(`{"seq":1,"at":%[1]d,"collection":"notes","op":"create"}
{"seq":2,"at":%[1]d,"collection":"notes","op":"put","id":7,"doc":{"id":7,"t":"x\u001b[2Jy%[2]sü"}}
{"seq":123456789,"at":%[3]d,"collection":"notes","op":"del","id":7}
`, at, "\u202e\u009b", at+1)
	want := `03:04:05.006        1  create notes
                    2  put    notes/7  {"id":7,"t":"x\u001b[2Jy\u202e\u009bü"}
03:04:05.007 123456789  del    notes/7
`
	var r renderer
	got, err := r.render([]byte(in))
	if string(got) != want || err != nil {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := r.render([]byte("<html>\n")); err == nil {
		t.Error("an invalid change is printed")
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte(line(1)))
	f.Add([]byte("{\"collection\":\"\xff\\u009b\"}\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r renderer
		out, err := r.render(text)
		if err != nil {
			return
		}
		for _, c := range string(out) {
			if c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0) {
				t.Errorf("%q is printed as %q", text, out)
			}
		}
	})
}
