package node

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fenec/internal/vfs"
	"fenec/node/tenants"
)

func TestADamagedFileIsReportedAndAffectsNoOtherTenant(t *testing.T) {
	r := start(t, Config{})
	r.fill("good", 3)
	r.fill("bad", 100)
	r.insert("bad", 100, 1) // damage in the last record would count as a torn write
	r.stop()
	whole, err := os.ReadFile(r.file("bad.fenec"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0x40
	for name, content := range map[string][]byte{
		"flipped":   flipped,
		"zero-byte": {},
		"not fenec": []byte(strings.Repeat("something else entirely\n", 10)),
		"cut head":  whole[:7],
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(r.file("bad.fenec"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			r := start(t, Config{Dir: r.config.Dir})
			for range 2 { // the second answer does not read the file again
				got := r.want(500, "GET", "/t/bad/c", "")
				if !strings.Contains(got.body, "fenec check") || strings.Contains(got.body, r.config.Dir) || got.header.Get("Fenec-Tenant") != "" {
					t.Errorf("got %s, want an error that names fenec check, and no path", got.body)
				}
			}
			r.want(500, "POST", "/t/bad/query", `{"query": "create collection c (n int)"}`)
			if got := r.count("good"); got != `{"count":3}` {
				t.Errorf("other tenant: got %s, want a count of 3", got)
			}
			if got := r.wantAdmin(200, "GET", "tenants", "").body; got != `["bad","good"]` {
				t.Errorf("tenants: got %s, want bad and good", got)
			}
			r.wantAdmin(409, "PUT", "tenants/bad", "")
			r.wantAdmin(409, "PUT", "tenants/bad/file", "x")
			r.wantAdmin(500, "GET", "tenants/bad/file", "")
			r.wantAdmin(500, "POST", "tenants/bad/freeze", "")
			r.wantAdmin(200, "GET", "stats", "")
			if left, err := os.ReadFile(r.file("bad.fenec")); err != nil || !bytes.Equal(left, content) {
				t.Errorf("the file was changed: %v", err)
			}
			r.wantAdmin(204, "DELETE", "tenants/bad", "")
			r.want(404, "GET", "/t/bad/c", "")
			r.wantAdmin(201, "PUT", "tenants/bad", "")
			r.want(200, "GET", "/t/bad/", "")
		})
	}
}

func TestARepairedFileIsServedAgain(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	r.fill("acme", 2)
	r.closeIdle("acme")
	whole, err := os.ReadFile(r.file("acme.fenec"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.file("acme.fenec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(500, "GET", "/t/acme/c", "")
	if err := os.WriteFile(r.file("acme.fenec"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	clock.Advance(tenants.RefusalTime + time.Millisecond)
	r.tenants.Sweep()
	if got := r.count("acme"); got != `{"count":2}` {
		t.Errorf("got %s, want a count of 2", got)
	}
}

// counting is a file system that counts how often files of tenants are opened.
type counting struct {
	vfs.FS
	opened atomic.Int64
}

func (c *counting) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if strings.HasSuffix(name, ".fenec") {
		c.opened.Add(1)
	}
	return c.FS.OpenFile(name, flag, perm)
}

func TestADamagedFileIsNotReadForEveryRequest(t *testing.T) {
	clock := newClock()
	fs := &counting{FS: vfs.OS}
	r := start(t, Config{FS: fs, Clock: clock.Now})
	if err := os.WriteFile(r.file("bad.fenec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 1, 1, 2} {
		if want == 2 {
			clock.Advance(tenants.RefusalTime)
		}
		r.want(500, "GET", "/t/bad/c", "")
		if got := fs.opened.Load(); got != want {
			t.Errorf("got %d openings of the file, want %d", got, want)
		}
	}
}

func TestADirectoryOrLinkNamedLikeATenantAffectsNoOtherTenant(t *testing.T) {
	r := start(t, Config{})
	r.fill("good", 1)
	if err := os.Mkdir(r.file("dir.fenec"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/at/all", r.file("link.fenec")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.file("README.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.want(500, "GET", "/t/dir/c", "")
	if strings.Contains(got.body, r.config.Dir) {
		t.Errorf("got %s, want no path in it", got.body)
	}
	r.want(404, "GET", "/t/link/c", "")
	r.wantAdmin(200, "GET", "stats", "")
	r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken)
	if got := r.count("good"); got != `{"count":1}` {
		t.Errorf("got %s, want a count of 1", got)
	}
}

func TestOnlyLeftoverFilesAreRemovedAtStart(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	r.fill("cold", 1)
	r.wantAdmin(200, "POST", "tenants/cold/freeze", "")
	r.stop()
	for _, name := range []string{"acme.fenec.new", "gone.fenec.incoming", "gone.frozen", "acme.frozen.new", "acme.fenec.bak", "notes.txt", "Big.frozen"} {
		if err := os.WriteFile(r.file(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = start(t, Config{Dir: r.config.Dir})
	entries, err := os.ReadDir(r.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), ".lock Big.frozen acme.fenec acme.fenec.bak cold.fenec cold.frozen notes.txt"; got != want {
		t.Errorf("got the files %s, want %s", got, want)
	}
}

func TestAReadOnlyNodeWritesNothing(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 2)
	r.stop()
	written, err := os.ReadFile(r.file("acme.fenec"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.file("gone.frozen"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, Config{Dir: r.config.Dir, ReadOnly: true})
	if got := r.count("acme"); got != `{"count":2}` {
		t.Errorf("got %s, want a count of 2", got)
	}
	r.want(403, "POST", "/t/acme/c", `{"n": 1}`)
	r.want(403, "POST", "/t/acme/query", `{"query": "del c"}`)
	r.wantAdmin(403, "PUT", "tenants/b", "")
	r.wantAdmin(403, "PUT", "tenants/b/file", r.image("acme"))
	r.wantAdmin(403, "DELETE", "tenants/acme", "")
	r.wantAdmin(403, "POST", "tenants/acme/freeze", "")
	r.stop()
	if got, err := os.ReadFile(r.file("acme.fenec")); err != nil || !bytes.Equal(got, written) {
		t.Errorf("the file was changed: %v", err)
	}
	if _, err := os.Stat(r.file("gone.frozen")); err != nil {
		t.Error("a read-only node removed a leftover file")
	}
}

func TestAnUnwritableDirectoryIsServedByAReadOnlyNodeAlone(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 2)
	r.stop()
	fs := &unwritable{}
	fs.FS = r.config.FS
	if _, err := New(Config{Dir: r.config.Dir, FS: fs}); err == nil || !strings.Contains(err.Error(), "cannot write") || !strings.Contains(err.Error(), "--http-read-only") {
		t.Errorf("got %v, want an error that names --http-read-only", err)
	}
	r = start(t, Config{Dir: r.config.Dir, FS: fs, ReadOnly: true})
	if got := r.count("acme"); got != `{"count":2}` {
		t.Errorf("got %s, want a count of 2", got)
	}
}
