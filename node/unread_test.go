package node

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A client announces a body of 60 MB and sends none of it. A request that its head alone refuses gets the refusal anyway,
// without a 100 Continue before it.
func TestARequestRefusedByItsHeadIsAnsweredBeforeItsBody(t *testing.T) {
	r := start(t, Config{DataToken: "data", Clock: newClock().Now})
	r.token = "data"
	for _, name := range []string{"x", "frozen", "bad"} {
		r.fill(name, 1)
	}
	r.wantAdmin(200, "POST", "tenants/frozen/freeze", "")
	r.closeIdle("bad")
	if err := os.WriteFile(r.file("bad.fenec"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(500, "GET", "/t/bad/c", "")
	readOnly := start(t, Config{Dir: oneTenant(t), ReadOnly: true, Insecure: true})
	const (
		good    = "Authorization: Bearer data\r\n"
		replica = good + "Fenec-Read: replica\r\n"
	)
	for name, c := range map[string]struct {
		of                 *running
		method, path, head string
		status             int
	}{
		"no token":                                     {r, "POST", "/t/x/query", "", 401},
		"a wrong token":                                {r, "POST", "/t/x/c", "Authorization: Bearer datum\r\n", 401},
		"a wrong admin token":                          {r, "PUT", "/_admin/tenants/y/file", good, 401},
		"no tenant":                                    {r, "POST", "/t/y/query", good, 404},
		"an invalid tenant name":                       {r, "POST", "/t/Y/query", good, 400},
		"no route":                                     {r, "POST", "/t/x/c/d/e", good, 404},
		"an invalid collection name":                   {r, "POST", "/t/x/1", good, 404},
		"another method of the route":                  {r, "PUT", "/t/x/query", good, 405},
		"another method of a collection":               {r, "PUT", "/t/x/c", good, 405},
		"two keys":                                     {r, "POST", "/t/x/c", good + "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", 400},
		"an invalid position":                          {r, "POST", "/t/x/query", good + "Fenec-After: x\r\n", 400},
		"a write in a request that reads":              {r, "POST", "/t/x/c", replica, 403},
		"an update in a request that reads":            {r, "PATCH", "/t/x/c?n=1", replica, 403},
		"a write to a read-only node":                  {readOnly, "POST", "/t/x/c", "", 403},
		"a write to a frozen tenant":                   {r, "POST", "/t/frozen/c", good, 503},
		"a statement to a tenant that cannot be read":  {r, "POST", "/t/bad/query", good, 500},
		"a later route":                                {r, "POST", "/t/x/_whoami", good, 501},
		"a length past the limit, which may come last": {r, "POST", "/t/x/query", good + "X-Long: yes\r\n", 413},
	} {
		length := 60_000_000
		if strings.Contains(c.head, "X-Long") {
			length = 70_000_000
		}
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n", length), fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", length), "Transfer-Encoding: chunked\r\n"} {
			if c.status == 413 && !strings.HasPrefix(framing, "Content") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				conn, in := c.of.raw(c.method + " " + c.path + " HTTP/1.1\r\nHost: a\r\n" + c.head + framing + "\r\n")
				defer conn.Close()
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != c.status || !strings.HasPrefix(string(body), `{"error":"`) {
					t.Errorf("got %d %s, expected %d", resp.StatusCode, body, c.status)
				}
				if resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "" {
					t.Error("got a 503 without Retry-After")
				}
			})
		}
	}
}

// oneTenant returns a directory with the tenant x.
func oneTenant(t *testing.T) string {
	dir := t.TempDir()
	r := start(t, Config{Dir: dir})
	r.fill("x", 1)
	r.stop()
	return dir
}

func TestTheBodyOfAWriteUnderAKeyIsReadForItsReplay(t *testing.T) {
	r := start(t, Config{})
	r.fill("x", 1)
	long := `{"s": "` + strings.Repeat("x", 100_000) + `"}`
	first := r.want(201, "POST", "/t/x/c", long, "Idempotency-Key", "k")
	r.wantAdmin(200, "POST", "tenants/x/freeze", "")
	r.want(503, "POST", "/t/x/c", long)
	if again := r.want(201, "POST", "/t/x/c", long, "Idempotency-Key", "k"); again.body != first.body {
		t.Errorf("got %s for the replay, expected %s", again.body, first.body)
	}
}
