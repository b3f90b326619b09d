package node

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fenec/internal/vfs"
)

// unwritable is a file system that refuses writes, like one mounted read-only.
type unwritable struct{ vfs.FS }

func (u *unwritable) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if flag&(os.O_CREATE|os.O_RDWR|os.O_WRONLY|os.O_TRUNC) != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	return u.FS.OpenFile(name, flag, perm)
}

func (u *unwritable) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

func (u *unwritable) Rename(old, _ string) error {
	return &os.PathError{Op: "rename", Path: old, Err: syscall.EROFS}
}

func (u *unwritable) Remove(name string) error {
	return &os.PathError{Op: "remove", Path: name, Err: syscall.EROFS}
}

func TestAFreezeRefusesWritesAndSurvivesARestart(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 2)
	if got := r.wantAdmin(200, "POST", "tenants/acme/freeze", `{"token":"move-1"}`).body; got != `{"frozen":true,"seq":3}` {
		t.Error(got)
	}
	for restarts := range 3 {
		if got := r.count("acme"); got != `{"count":2}` {
			t.Errorf("read after %d restarts: got %s, want a count of 2", restarts, got)
		}
		got := r.want(503, "PATCH", "/t/acme/c?id=1", `{"n": 9}`)
		if got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, `"retry_after":1`) {
			t.Errorf("got %v %s, want Retry-After", got.header, got.body)
		}
		if got := r.admin("GET", "tenants/acme/frozen", "").body; got != `{"frozen":true,"token":"move-1","held":false,"seq":3}` {
			t.Errorf("state after %d restarts: got %s, want frozen under move-1 at 3", restarts, got)
		}
		if !strings.Contains(r.admin("GET", "open", "").body, `"frozen":true`) {
			t.Error("got a list of open tenants without a frozen one, want acme frozen")
		}
		if restarts == 0 { // closed as idle and reopened
			r.closeIdle("acme")
			continue
		}
		r.stop()
		r = start(t, Config{Dir: r.config.Dir})
	}
	r.wantAdmin(200, "POST", "tenants/acme/thaw", `{"token":"move-1"}`)
	r.want(200, "PATCH", "/t/acme/c?id=1", `{"n": 9}`)
	r.stop()
	r = start(t, Config{Dir: r.config.Dir})
	r.want(200, "PATCH", "/t/acme/c?id=1", `{"n": 10}`)
}

func TestAnUnreadableFreezeRefusesWrites(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	r.closeIdle("acme")
	if err := os.WriteFile(r.file("acme.frozen"), []byte("{\"tok"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(503, "POST", "/t/acme/c", `{"n": 1}`)
	r.wantAdmin(200, "POST", "tenants/acme/thaw", ``)
	r.want(201, "POST", "/t/acme/c", `{"n": 1}`)
}

func TestANewTenantIsNotFrozenByADeletedTenantOfItsName(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	r.wantAdmin(200, "POST", "tenants/acme/freeze", `{"token":"x"}`)
	r.wantAdmin(204, "DELETE", "tenants/acme", "")
	if _, err := os.Stat(r.file("acme.frozen")); err == nil {
		t.Error("the freeze of the deleted tenant was not removed")
	}
	if err := os.WriteFile(r.file("acme.frozen"), []byte(`{"token":"x"}`), 0o600); err != nil { // as a crash would leave it
		t.Fatal(err)
	}
	r.fill("acme", 1)
	r.closeIdle("acme")
	r.insert("acme", 2, 1)
}

// TestNoWriteIsAcknowledgedAfterAFreeze freezes a tenant while writes are in progress.
func TestNoWriteIsAcknowledgedAfterAFreeze(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 0)
	var frozen atomic.Bool
	var written atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				after := frozen.Load()
				got, err := r.send("POST", "/t/acme/c", `{"n": 1}`)
				if err != nil {
					t.Error(err)
					return
				}
				switch {
				case got.status == 503:
					return
				case got.status != 201:
					t.Errorf("got %d %s", got.status, got.body)
					return
				case after:
					t.Error("a write sent after the freeze returned was accepted")
					return
				}
				written.Add(1)
			}
		})
	}
	eventually(t, "writes are flowing", func() bool { return written.Load() > 20 })
	got, err := r.send("POST", "/_admin/tenants/acme/freeze", "", "Authorization", "Bearer "+adminToken)
	frozen.Store(true)
	if err != nil || got.status != 200 {
		t.Fatal(got, err)
	}
	group.Wait()
	if left := r.count("acme"); left != string(appendCount(nil, "count", written.Load())) {
		t.Errorf("%d writes were acknowledged, got %s", written.Load(), left)
	}
	if want := string(appendCount(nil, "count", 0)); r.count("acme") == want {
		t.Error("got no writes before the freeze, want some")
	}
}

// failing is a file system whose writes to files with part in their names fail with err, if it is set.
type failing struct {
	vfs.FS
	mu   sync.Mutex
	part string // of the files' names
	err  error
}

func (f *failing) set(part string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.part, f.err = part, err
}

func (f *failing) failure(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil && strings.Contains(name, f.part) {
		return &os.PathError{Op: "write", Path: name, Err: f.err}
	}
	return nil
}

func (f *failing) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	return failingFile{file, f, name}, err
}

func (f *failing) Remove(name string) error {
	return errors.Join(f.failure(name), f.FS.Remove(name))
}

type failingFile struct {
	vfs.File
	fs   *failing
	name string
}

func (f failingFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.fs.failure(f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

func TestAFreezeOrThawThatCannotBeStoredHasNoEffect(t *testing.T) {
	fs := &failing{FS: vfs.OS}
	r := start(t, Config{FS: fs})
	r.fill("acme", 1)
	fs.set(".frozen.new", syscall.EIO)
	got := r.wantAdmin(500, "POST", "tenants/acme/freeze", "")
	if strings.Contains(got.body, filepath.Base(r.config.Dir)) {
		t.Errorf("got %s, want no path in it", got.body)
	}
	r.want(201, "POST", "/t/acme/c", `{"n": 1}`)
	fs.set(".frozen.new", syscall.ENOSPC)
	r.wantAdmin(507, "POST", "tenants/acme/freeze", "")
	fs.set("", nil)
	r.wantAdmin(200, "POST", "tenants/acme/freeze", "")
	fs.set(".frozen", syscall.EIO)
	r.wantAdmin(500, "POST", "tenants/acme/thaw", "")
	r.want(503, "POST", "/t/acme/c", `{"n": 1}`)
}

func TestAFreezeFailsIfWritesOfTheTenantAreNotOnDisk(t *testing.T) {
	fs := &failing{FS: vfs.OS}
	r := start(t, Config{FS: fs})
	r.fill("acme", 1)
	fs.set("acme.fenec", syscall.EIO)
	r.want(500, "POST", "/t/acme/c", `{"n": 1}`)
	fs.set("", nil)
	r.wantAdmin(500, "POST", "tenants/acme/freeze", `{"token": "x"}`)
	if got := r.admin("GET", "tenants/acme/frozen", "").body; !strings.HasPrefix(got, `{"frozen":false,`) {
		t.Errorf("got %s, want a tenant that is not frozen", got)
	}
	r.closeIdle("acme") // or the shutdown would report the failure
}

func TestAStorageErrorStopsTheWritesOfATenantUntilItIsReopened(t *testing.T) {
	clock := newClock()
	fs := &failing{FS: vfs.OS}
	r := start(t, Config{FS: fs, Clock: clock.Now, IdleClose: time.Minute})
	r.fill("full", 1)
	r.fill("broken", 1)
	r.fill("well", 1)
	fs.set("full.fenec", syscall.ENOSPC)
	r.want(507, "POST", "/t/full/c", `{"n": 1}`)
	fs.set("broken.fenec", syscall.EIO)
	r.want(500, "POST", "/t/broken/c", `{"n": 1}`)
	fs.set("", nil)
	for tenant, status := range map[string]int{"full": 507, "broken": 500} {
		got := r.want(status, "POST", "/t/"+tenant+"/c", `{"n": 1}`)
		if strings.Contains(got.body, filepath.Base(r.config.Dir)) {
			t.Errorf("got %s, want no path in it", got.body)
		}
		if got := r.count(tenant); got != `{"count":1}` {
			t.Errorf("read of %s: got %s, want a count of 1", tenant, got)
		}
	}
	r.want(201, "POST", "/t/well/c", `{"n": 1}`)
	if got := r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken).body; !strings.Contains(got, "fenec_storage_failed 1\n") {
		t.Error("got another metric, want fenec_storage_failed 1")
	}
	clock.Advance(time.Minute)
	r.tenants.Sweep()
	for _, tenant := range []string{"full", "broken"} {
		r.want(201, "POST", "/t/"+tenant+"/c", `{"n": 1}`)
		if got := r.count(tenant); got != `{"count":2}` {
			t.Errorf("after reopening %s: got %s, want a count of 2", tenant, got)
		}
	}
	if got := r.want(200, "GET", "/_metrics", "", "Authorization", "Bearer "+adminToken).body; !strings.Contains(got, "fenec_storage_failed 0\n") {
		t.Error("got another metric, want fenec_storage_failed 0")
	}
}
