package node

import (
	"testing"
	"time"
)

// stored counts the documents a tenant holds, expired ones not yet deleted too.
func (r *running) stored(tenant string) int {
	return r.tenants.Find([]byte(tenant)).DB.Stats().Documents
}

func TestExpiredDocumentsAreGoneAtOnceAndDeletedLater(t *testing.T) {
	clock := newClock() // at 03:04:05
	r := start(t, Config{Clock: clock.Now, IdleClose: time.Hour})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", `create collection c (n int @unique, at timestamp @ttl(1m))`)
	r.want(201, "POST", "/t/acme/c", `[{"n": 1, "at": "2026-01-02T03:04:05Z"}, {"n": 2}]`)
	if got, want := r.want(200, "GET", "/t/acme/_schema?as=fenecql", "").body, "create collection c (n int @unique, at timestamp @ttl(1m));\n"; got != want {
		t.Errorf("the schema is %s, want %s", got, want)
	}

	clock.Advance(time.Minute - time.Millisecond)
	r.tenants.Expire()
	if got := r.want(200, "GET", "/t/acme/c?count", "").body; got != `{"count":2}` || r.stored("acme") != 2 {
		t.Fatalf("a millisecond early there are %s, and %d stored", got, r.stored("acme"))
	}
	r.want(409, "POST", "/t/acme/c", `{"n": 1}`)

	r.wantAdmin(200, "POST", "tenants/acme/freeze", `{"token": "x"}`)
	clock.Advance(time.Millisecond)
	if got := r.want(200, "GET", "/t/acme/c", "").body; got != `[{"id":2,"n":2,"at":null}]` {
		t.Errorf("at its time the row is still in %s", got)
	}
	const schema = `[{"name":"c","fields":[{"name":"n","type":"int","required":false,"collate":null,"index":"@unique"},` +
		`{"name":"at","type":"timestamp","required":false,"collate":null,"index":"@ttl(1m)"}],"paths":[],"documents":1}]`
	if got := r.want(200, "GET", "/t/acme/collections", "").body; got != schema {
		t.Errorf("the collections are %s, want %s", got, schema)
	}
	r.tenants.Expire()
	if n := r.stored("acme"); n != 2 {
		t.Errorf("of a frozen tenant's 2 documents %d are stored", n)
	}
	r.wantAdmin(200, "POST", "tenants/acme/thaw", `{"token": "x"}`)
	r.tenants.Expire()
	if n := r.stored("acme"); n != 1 {
		t.Errorf("%d documents are stored once the expired one was deleted, want 1", n)
	}
	r.want(201, "POST", "/t/acme/c", `{"n": 1}`)
}

func TestWhatExpiresInAClosedTenantIsDeletedOnceItIsOpen(t *testing.T) {
	clock := newClock()
	r := start(t, Config{Clock: clock.Now, IdleClose: 24 * time.Hour})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", `create collection c (at timestamp @ttl(1m))`)
	r.query("acme", `put c [{at: now()}, {}]`)
	r.closeIdle("acme")
	clock.Advance(time.Minute)
	r.tenants.Expire()
	if r.isOpen("acme") {
		t.Fatal("the node opened a tenant to delete from it")
	}
	if got := r.want(200, "GET", "/t/acme/c", "").body; got != `[{"id":2,"at":null}]` {
		t.Errorf("the row is back: %s", got)
	}
	r.tenants.Expire()
	if n := r.stored("acme"); n != 1 {
		t.Errorf("%d documents are stored, want 1", n)
	}
	// Deleting is no use of the tenant.
	clock.Advance(24 * time.Hour)
	r.tenants.Expire()
	r.tenants.Sweep()
	if r.isOpen("acme") {
		t.Error("an unused tenant is still open")
	}
}
