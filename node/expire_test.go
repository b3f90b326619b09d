package node

import (
	"testing"
	"time"
)

// stored returns the number of documents in a tenant, including expired ones that are not yet deleted.
func (r *running) stored(tenant string) int {
	return r.tenants.Find([]byte(tenant)).DB.Stats().Documents
}

func TestExpiredDocumentsAreHiddenAtOnceAndDeletedLater(t *testing.T) {
	clock := newClock() // at 03:04:05
	r := start(t, Config{Clock: clock.Now, IdleClose: time.Hour})
	r.wantAdmin(201, "PUT", "tenants/acme", "")
	r.query("acme", `create collection c (n int @unique, at timestamp @ttl(1m))`)
	r.want(201, "POST", "/t/acme/c", `[{"n": 1, "at": "2026-01-02T03:04:05Z"}, {"n": 2}]`)
	if got, want := r.want(200, "GET", "/t/acme/_schema?as=fenecql", "").body, "create collection c (n int @unique, at timestamp @ttl(1m));\n"; got != want {
		t.Errorf("got schema %s, want %s", got, want)
	}

	clock.Advance(time.Minute - time.Millisecond)
	r.tenants.Expire()
	if got := r.want(200, "GET", "/t/acme/c?count", "").body; got != `{"count":2}` || r.stored("acme") != 2 {
		t.Fatalf("a millisecond before the expiry: got %s and %d stored, want 2 of each", got, r.stored("acme"))
	}
	r.want(409, "POST", "/t/acme/c", `{"n": 1}`)

	r.wantAdmin(200, "POST", "tenants/acme/freeze", `{"token": "x"}`)
	clock.Advance(time.Millisecond)
	if got := r.want(200, "GET", "/t/acme/c", "").body; got != `[{"id":2,"n":2,"at":null}]` {
		t.Errorf("at the expiry: got %s, want document 2 alone", got)
	}
	const schema = `[{"name":"c","fields":[{"name":"n","type":"int","required":false,"collate":null,"index":"@unique"},` +
		`{"name":"at","type":"timestamp","required":false,"collate":null,"index":"@ttl(1m)"}],"paths":[],"documents":1}]`
	if got := r.want(200, "GET", "/t/acme/collections", "").body; got != schema {
		t.Errorf("got collections %s, want %s", got, schema)
	}
	r.tenants.Expire()
	if n := r.stored("acme"); n != 2 {
		t.Errorf("frozen tenant: got %d documents stored, want 2", n)
	}
	r.wantAdmin(200, "POST", "tenants/acme/thaw", `{"token": "x"}`)
	r.tenants.Expire()
	if n := r.stored("acme"); n != 1 {
		t.Errorf("got %d documents stored after the delete of the expired one, want 1", n)
	}
	r.want(201, "POST", "/t/acme/c", `{"n": 1}`)
}

func TestDocumentsThatExpireInAClosedTenantAreDeletedOnceItIsOpen(t *testing.T) {
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
		t.Errorf("got %s, want document 2 alone", got)
	}
	r.tenants.Expire()
	if n := r.stored("acme"); n != 1 {
		t.Errorf("got %d documents stored, want 1", n)
	}
	// Deleting expired documents does not count as use of the tenant.
	clock.Advance(24 * time.Hour)
	r.tenants.Expire()
	r.tenants.Sweep()
	if r.isOpen("acme") {
		t.Error("an unused tenant is still open")
	}
}
