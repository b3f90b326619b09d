package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"fenec/internal/edge"
)

func TestAdminRoutes(t *testing.T) {
	r := start(t, Config{})
	for _, step := range []struct {
		says         string
		method, path string
		body         string
		status       int
		want         string // the whole body, or if it ends in ... its beginning
	}{
		{"an empty node", "GET", "tenants", "", 200, `[]`},
		{"nothing is open", "GET", "open", "", 200, `[]`},
		{"a new tenant", "PUT", "tenants/acme", "", 201, `{"tenant":"acme","lineage":"...`},
		{"a taken name", "PUT", "tenants/acme", "", 409, `{"error":"tenant acme exists already"}`},
		{"a bad name", "PUT", "tenants/Acme", "", 400, `{"error":"a tenant's name is...`},
		{"a name of a path outside the directory", "PUT", "tenants/%2e%2e%2fx", "", 400, `{"error":...`},
		{"a name that is too long", "PUT", "tenants/" + strings.Repeat("a", 65), "", 400, `{"error":...`},
		{"the longest name", "PUT", "tenants/" + strings.Repeat("a", 64), "", 201, `{"tenant":"aa...`},
		{"a name between others", "PUT", "tenants/acme-b", "", 201, `{"tenant":"acme-b","lineage":"...`},
		{"they are sorted by name", "GET", "tenants", "", 200, `["` + strings.Repeat("a", 64) + `","acme","acme-b"]`},
		{"open ones are described", "GET", "open", "", 200, `[{"name":"aa...`},
		{"a delete", "DELETE", "tenants/" + strings.Repeat("a", 64), "", 204, ``},
		{"a delete of an unknown tenant", "DELETE", "tenants/nobody", "", 404, `{"error":"no tenant nobody here"}`},
		{"a freeze", "POST", "tenants/acme/freeze", `{"token":"x"}`, 200, `{"frozen":true,"seq":0}`},
		{"a freeze of an unknown tenant", "POST", "tenants/nobody/freeze", ``, 404, `{"error":...`},
		{"the state of a frozen tenant", "GET", "tenants/acme/frozen", ``, 200, `{"frozen":true,"token":"x","held":false,"seq":0}`},
		{"the state of a tenant that is not frozen", "GET", "tenants/acme-b/frozen", ``, 200, `{"frozen":false,"held":false,"seq":0}`},
		{"frozen under another token", "POST", "tenants/acme/freeze", `{"token":"y"}`, 409, `{"error":...`},
		{"frozen again", "POST", "tenants/acme/freeze", `{"token":"x"}`, 200, `{"frozen":true,"seq":0}`},
		{"frozen again without a token", "POST", "tenants/acme/freeze", ``, 200, `{"frozen":true,"seq":0}`},
		{"thawed under another token", "POST", "tenants/acme/thaw", `{"token":"y"}`, 409, `{"error":...`},
		{"a thaw", "POST", "tenants/acme/thaw", `{"token":"x"}`, 200, `{"frozen":false,"seq":0}`},
		{"a thaw of a tenant that is not frozen", "POST", "tenants/acme/thaw", `{"token":"x"}`, 200, `{"frozen":false,"seq":0}`},
		{"an unknown key", "POST", "tenants/acme/freeze", `{"tokn":"x"}`, 400, `{"error":...`},
		{"a token that is not a text", "POST", "tenants/acme/freeze", `{"token":1}`, 400, `{"error":...`},
		{"a token that is too long", "POST", "tenants/acme/freeze", `{"token":"` + strings.Repeat("x", 600) + `"}`, 400, `{"error":...`},
		{"a later route of a tenant", "PUT", "tenants/acme/quota", ``, 501, `{"error":"a quota comes with a later version"}`},
		{"a later route of the node", "POST", "lease", ``, 501, `{"error":"a lease comes with a later version"}`},
		{"an unknown route", "GET", "nothing", "", 404, `{"error":...`},
		{"an unknown route of a tenant", "GET", "tenants/acme/nothing", "", 404, `{"error":...`},
		{"a path below a route", "GET", "tenants/acme/frozen/x", "", 404, `{"error":...`},
		{"a wrong method", "POST", "tenants", "", 405, `{"error":...`},
		{"a wrong method of a tenant", "GET", "tenants/acme", "", 405, `{"error":...`},
	} {
		got := r.admin(step.method, step.path, step.body)
		begins, open := strings.CutSuffix(step.want, "...")
		if got.status != step.status || !(got.body == step.want || open && strings.HasPrefix(got.body, begins)) {
			t.Errorf("%s: %s %s: got %d %s, want %d %s", step.says, step.method, step.path, got.status, got.body, step.status, step.want)
		}
	}
}

func TestStatsCountTheDirectory(t *testing.T) {
	r := start(t, Config{})
	r.fill("a", 10)
	r.fill("b", 10)
	r.closeIdle("b")
	var stats struct {
		Tenants, Open int
		Disk          int64 `json:"disk_bytes"`
		Memory        int64 `json:"memory_bytes"`
	}
	if err := json.Unmarshal([]byte(r.admin("GET", "stats", "").body), &stats); err != nil {
		t.Fatal(err)
	}
	disk := int64(0)
	for _, name := range []string{"a.fenec", "b.fenec", ".lock"} {
		if info, err := os.Stat(r.file(name)); err == nil {
			disk += info.Size()
		}
	}
	if stats.Tenants != 2 || stats.Open != 1 || stats.Disk != disk || stats.Memory <= 0 {
		t.Errorf("got %+v, want 2 tenants, 1 open, %d bytes on disk and some in memory", stats, disk)
	}
}

func TestAdminRoutesAreNotFoundWithoutAnAdminToken(t *testing.T) {
	r := start(t, Config{})
	r.adminToken = edge.Token{}
	for _, path := range []string{"/_admin", "/_admin/stats", "/_admin/tenants/acme"} {
		r.want(404, "GET", path, "")
		r.want(404, "GET", path, "", "Authorization", "Bearer ")
	}
}

func TestEachTokenPermitsItsOwnRoutesOnly(t *testing.T) {
	r := start(t, Config{DataToken: "data"})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	for _, tc := range []struct {
		says, path, authorization string
		status                    int
	}{
		{"data with the data token", "/t/acme/", "Bearer data", 200},
		{"the scheme in another case", "/t/acme/", "bearer  data", 200},
		{"data without a token", "/t/acme/", "", 401},
		{"data with a wrong token", "/t/acme/", "Bearer dat", 401},
		{"data with a longer token", "/t/acme/", "Bearer data1", 401},
		{"data with another scheme", "/t/acme/", "Basic data", 401},
		{"data with the admin token", "/t/acme/", "Bearer " + adminToken, 401},
		{"an absent tenant is not revealed without a token", "/t/nobody/", "", 401},
		{"an invalid path is not revealed without a token", "/t/acme/a/b/c", "", 401},
		{"admin with the data token", "/_admin/stats", "Bearer data", 401},
		{"admin without one", "/_admin/stats", "", 401},
		{"admin with its own", "/_admin/stats", "Bearer " + adminToken, 200},
		{"metrics with the data token", "/_metrics", "Bearer data", 200},
		{"metrics with the admin token", "/_metrics", "Bearer " + adminToken, 200},
		{"metrics without one", "/_metrics", "", 401},
		{"health without one", "/_health", "", 200},
	} {
		got := r.do("GET", tc.path, "", "Authorization", tc.authorization)
		if got.status != tc.status {
			t.Errorf("%s: got %d %s, want %d", tc.says, got.status, got.body, tc.status)
		}
		if (got.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: got headers %v, want WWW-Authenticate with 401 only", tc.says, got.header)
		}
	}
}

func TestMetricsRequireTheAdminTokenIfThereIsNoDataToken(t *testing.T) {
	for _, tc := range []struct {
		data, admin, authorization string
		status                     int
	}{
		{"", "", "", 200},
		{"", adminToken, "", 401},
		{"", adminToken, "Bearer " + adminToken, 200},
		{"data", "", "", 401},
		{"data", "", "Bearer data", 200},
	} {
		r := start(t, Config{DataToken: tc.data})
		r.adminToken = edge.NewToken(tc.admin)
		if got := r.do("GET", "/_metrics", "", "Authorization", tc.authorization); got.status != tc.status {
			t.Errorf("data token %q, admin token %q, requested with %q: got status %d, want %d", tc.data, tc.admin, tc.authorization, got.status, tc.status)
		}
		if got := r.do("GET", "/_health", ""); got.status != 200 {
			t.Errorf("/_health: got status %d, want 200", got.status)
		}
	}
}

// image returns a tenant's image.
func (r *running) image(tenant string) string {
	r.t.Helper()
	return r.wantAdmin(200, "GET", "tenants/"+tenant+"/file", "").body
}

func TestAnInstalledImageRefusesWritesUntilItIsThawed(t *testing.T) {
	a, b := start(t, Config{}), start(t, Config{})
	a.fill("acme", 50)
	sent := a.wantAdmin(200, "GET", "tenants/acme/file", "")
	if sent.header.Get("Content-Length") != fmt.Sprint(len(sent.body)) || sent.header.Get("Fenec-Seq") != "51" || sent.header.Get("Fenec-History") == "" {
		t.Errorf("got headers %v, want the length, position 51 and a history", sent.header)
	}
	head := a.wantAdmin(200, "HEAD", "tenants/acme/file", "")
	if head.header.Get("Content-Length") != fmt.Sprint(len(sent.body)) {
		t.Errorf("HEAD: got headers %v, want the length of the image", head.header)
	}
	if got := b.wantAdmin(201, "PUT", "tenants/acme/file", sent.body); got.body != `{"tenant":"acme","held":true,"seq":51}` {
		t.Errorf("install: got %s, want a held tenant at 51", got.body)
	}
	if got := b.admin("GET", "open", "").body; !strings.Contains(got, `"acme"`) {
		t.Errorf("open tenants after the install: got %s, want acme in them", got)
	}
	for restarts := range 2 {
		if got := b.count("acme"); got != `{"count":50}` {
			t.Errorf("read of a held tenant: got %s, want a count of 50", got)
		}
		held := b.want(503, "POST", "/t/acme/c", `{"n": 1}`)
		if held.header.Get("Retry-After") != "1" || !strings.Contains(held.body, `"retry_after":1`) {
			t.Errorf("write to a held tenant: got %v %s, want Retry-After", held.header, held.body)
		}
		if got := b.admin("GET", "tenants/acme/frozen", "").body; got != `{"frozen":true,"held":true,"seq":51}` {
			t.Errorf("state after %d restarts: got %s, want frozen and held at 51", restarts, got)
		}
		b.stop()
		b = start(t, Config{Dir: b.config.Dir})
	}
	b.wantAdmin(200, "POST", "tenants/acme/thaw", "{}")
	b.insert("acme", 51, 1)
	if got := b.count("acme"); got != `{"count":51}` {
		t.Errorf("after the thaw: got %s, want a count of 51", got)
	}
	b.wantAdmin(409, "PUT", "tenants/acme/file", sent.body)
}

func TestACutOrChangedImageIsRefusedAndLeavesNoFiles(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 20)
	image := r.image("acme")
	for name, body := range map[string]string{
		"empty":          "",
		"cut by a byte":  image[:len(image)-1],
		"cut in half":    image[:len(image)/2],
		"changed inside": image[:len(image)/2] + string(image[len(image)/2]^1) + image[len(image)/2+1:],
		"bytes after it": image + "x",
		"not an image":   strings.Repeat("x", 1000),
	} {
		if got := r.admin("PUT", "tenants/copy/file", body); got.status != 400 {
			t.Errorf("%s: got %d %s, want 400", name, got.status, got.body)
		}
		entries, err := os.ReadDir(r.config.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "copy") {
				t.Errorf("%s: the file %s was left", name, e.Name())
			}
		}
	}
	r.want(404, "GET", "/t/copy/", "")
	r.wantAdmin(201, "PUT", "tenants/copy", "")
	r.query("copy", "create collection c (n int)") // it is not held
}

func TestAnInterruptedUploadLeavesNoFiles(t *testing.T) {
	r := start(t, Config{})
	body := io.MultiReader(strings.NewReader("FENEC"), errReader{})
	req, err := http.NewRequest("PUT", r.url+"/_admin/tenants/copy/file", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 1 << 20
	req.Header.Set("Authorization", "Bearer "+adminToken)
	if resp, err := r.client.Do(req); err == nil {
		resp.Body.Close()
	}
	eventually(t, "the hold of the interrupted upload is removed", func() bool {
		_, err := os.Stat(r.file("copy.frozen"))
		return os.IsNotExist(err)
	})
	r.wantAdmin(201, "PUT", "tenants/copy", "")
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestDeletingATenantAbortsItsImageDownload(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", "create collection c (s text)")
	row := `{"s": "` + strings.Repeat("x", 1<<20) + `"}`
	for range 24 {
		r.want(201, "POST", "/t/acme/c", row)
	}
	req, err := http.NewRequest("GET", r.url+"/_admin/tenants/acme/file", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan reply, 1)
	go func() {
		got, err := r.send("DELETE", "/_admin/tenants/acme", "", "Authorization", "Bearer "+adminToken)
		if err != nil {
			got.body = err.Error()
		}
		deleted <- got
	}()
	eventually(t, "the delete refuses requests", func() bool {
		one := r.tenants.Find([]byte("acme"))
		if one == nil || !one.Enter() {
			return true
		}
		one.Leave()
		return false
	})
	var rest bytes.Buffer
	if _, err := io.Copy(&rest, resp.Body); err == nil {
		t.Error("got the whole image, want an error: its tenant was deleted")
	}
	if got := <-deleted; got.status != 204 {
		t.Errorf("delete: got %d %s, want 204", got.status, got.body)
	}
}
