package node

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fenec/internal/vfs"
)

func TestATenantIsOpenedByItsFirstRequest(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	r.stop()
	r = start(t, Config{Dir: r.config.Dir})
	if r.isOpen("acme") {
		t.Fatal("the tenant is open before its first request")
	}
	r.count("acme")
	if !r.isOpen("acme") {
		t.Error("the tenant is not open after a request")
	}
}

func TestARequestNeverCreatesATenant(t *testing.T) {
	r := start(t, Config{})
	for _, path := range []string{"/t/typo", "/t/typo/", "/t/typo/c", "/t/typo/collections", "/t/typo/c?id=1"} {
		got := r.want(404, "GET", path, "")
		if got.header.Get("Fenec-Tenant") != "absent" || got.body != `{"error":"no tenant typo here"}` {
			t.Errorf("%s: got %v %s, expected an absent tenant", path, got.header, got.body)
		}
	}
	if got := r.want(404, "POST", "/t/typo/query", `{"query": "create collection c (n int)"}`); got.header.Get("Fenec-Tenant") != "absent" {
		t.Error("a write to an absent tenant lacks Fenec-Tenant: absent")
	}
	if _, err := os.Stat(r.file("typo.fenec")); err == nil {
		t.Error("a request created a tenant")
	}
}

func TestAnUnknownCollectionIsNotReportedAsAnAbsentTenant(t *testing.T) {
	r := start(t, Config{})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	if got := r.want(404, "GET", "/t/acme/nothing", ""); got.header.Get("Fenec-Tenant") != "" {
		t.Errorf("got Fenec-Tenant %q, with which a router would look for the tenant elsewhere, expected none", got.header.Get("Fenec-Tenant"))
	}
}

func TestAnIdleTenantIsClosedAndOpenedAgain(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now, IdleClose: time.Minute})
	r.fill("acme", 2)
	clock.Advance(59 * time.Second)
	r.tenants.Sweep()
	if !r.isOpen("acme") {
		t.Fatal("the tenant was closed before a minute")
	}
	clock.Advance(time.Second)
	r.tenants.Sweep()
	if r.isOpen("acme") {
		t.Fatal("the tenant is open after a minute without a request")
	}
	if got := r.count("acme"); got != `{"count":2}` {
		t.Errorf("got %s after the tenant was opened again, expected 2 documents", got)
	}
}

func TestATenantInUseIsNeverClosed(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now, IdleClose: time.Minute})
	r.fill("acme", 0)
	r.budget.tenants.MaxMemory = 1
	one, err := r.tenants.Acquire("acme")
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	r.tenants.Sweep()
	if !r.isOpen("acme") {
		t.Error("the tenant was closed during a request")
	}
	r.tenants.Release(one)
	r.tenants.Sweep()
	if r.isOpen("acme") {
		t.Error("the tenant is open past the memory and idle, expected closed")
	}
}

func TestTheLeastRecentlyUsedTenantIsClosedForMemory(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now})
	for i, name := range []string{"a", "b", "c"} {
		r.fill(name, 1)
		clock.Advance(time.Second)
		if !r.isOpen(name) || i > 2 {
			t.Fatalf("%s is not open", name)
		}
	}
	r.count("a") // now b has been idle longest
	clock.Advance(time.Second)
	r.budget.tenants.MaxMemory = r.budget.tenants.Memory() + 100 // room for what is open, and no more
	r.wantAdmin(201, "PUT", "tenants/d", "")
	if open := fmt.Sprint(r.isOpen("a"), r.isOpen("b"), r.isOpen("c"), r.isOpen("d")); open != "true false true true" {
		t.Errorf("got %s for whether a, b, c and d are open, expected only b closed", open)
	}
}

func TestATenantIsOpenedPastTheMemoryIfEveryOtherIsInUse(t *testing.T) {
	r := start(t, Config{MaxMemory: 1})
	for _, name := range []string{"a", "b"} {
		r.wantAdmin(201, "PUT", "tenants/"+name, "")
	}
	a, err := r.tenants.Acquire("a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.tenants.Release(a)
	r.want(200, "GET", "/t/b/", "")
	if !r.isOpen("a") {
		t.Error("a was closed while it was in use")
	}
}

func TestATenantPastTheMemoryAcceptsOnlyDeletes(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 100)
	r.budget.tenants.MaxMemory = 1
	for _, one := range []struct{ method, path, body string }{
		{"POST", "/t/acme/c", `{"n": 1}`},
		{"PATCH", "/t/acme/c?id=1", `{"n": 1}`},
		{"POST", "/t/acme/query", `{"query": "put c {n: 1}"}`},
		{"POST", "/t/acme/batch", `{"query": "del c where id = 1"}` + "\n" + `{"query": "set c {n: 1}"}`},
	} {
		got := r.want(507, one.method, one.path, one.body)
		if strings.HasSuffix(one.path, "batch") && !strings.HasSuffix(got.body, `,"completed":0,"at":1}`) {
			t.Errorf("got %s for the batch, expected the index of its second statement", got.body)
		}
	}
	r.want(200, "DELETE", "/t/acme/c?id=1", "")
	r.query("acme", "del c where id = 2")
	r.query("acme", "compact")
	if got := r.count("acme"); got != `{"count":98}` {
		t.Errorf("got %s, expected 98 documents", got)
	}
}

func TestOpenTenantsAreCappedByDescriptors(t *testing.T) {
	r := start(t, Config{})
	r.budget.tenants.MaxOpen = 3
	for i := range 8 {
		r.fill(fmt.Sprint("t", i), 1)
	}
	for i := range 8 {
		r.count(fmt.Sprint("t", i))
		if open := r.budget.tenants.Open(); open > 3 {
			t.Fatalf("got %d open tenants, expected at most 3", open)
		}
	}
}

func TestConnectionsDoNotExceedTheTenantsThatMayBeOpen(t *testing.T) {
	b := newBudget(Config{MaxConnections: 1 << 20})
	if int64(b.connections) > b.tenants.MaxOpen {
		t.Errorf("got %d connections, expected at most one for each of the %d tenants that may be open", b.connections, b.tenants.MaxOpen)
	}
}

func TestATenantWhoseFileWasRemovedIsAbsentAfterADelete(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 1)
	if err := os.Remove(r.file("acme.fenec")); err != nil {
		t.Fatal(err)
	}
	r.wantAdmin(404, "DELETE", "tenants/acme", "")
	r.want(404, "GET", "/t/acme/c", "")
}

func TestASmallConnectionLimitIsKept(t *testing.T) {
	if b := newBudget(Config{MaxConnections: 1}); b.connections != 1 {
		t.Errorf("got %d connections, expected the 1 of --max-connections", b.connections)
	}
}

// exhausted is a file system that has no descriptor for the next left tenant files that are opened.
type exhausted struct {
	vfs.FS
	left int
}

func (e *exhausted) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if strings.HasSuffix(name, ".fenec") && e.left > 0 {
		e.left--
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return e.FS.OpenFile(name, flag, perm)
}

func TestAnIdleTenantIsClosedIfAnotherLacksADescriptor(t *testing.T) {
	fs := &exhausted{FS: vfs.OS}
	r := start(t, Config{FS: fs})
	for _, name := range []string{"a", "b"} {
		r.fill(name, 1)
	}
	r.closeIdle("b")
	fs.left = 1
	if got := r.count("b"); got != `{"count":1}` {
		t.Errorf("got %s, expected 1 document", got)
	}
	if r.isOpen("a") {
		t.Error("a is open, expected it closed")
	}
	// Without an idle tenant the request is refused with Retry-After.
	r.closeIdle("b")
	fs.left = 1
	got := r.want(503, "GET", "/t/b/c", "")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("got %v, expected Retry-After 1", got.header)
	}
}
