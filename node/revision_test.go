package node

import (
	"os"
	"strings"
	"testing"
)

// revision returns the revision of a tenant's name.
func (r *running) revision(tenant string) string {
	r.t.Helper()
	got := r.admin("GET", "tenants/"+tenant+"/frozen", "").header.Get(revisionHeader)
	if got == "" {
		r.t.Fatalf("tenant %s shows no revision", tenant)
	}
	return got
}

// change sends an admin request. Its headers are pairs of name and value, which name the state it expects.
func (r *running) change(method, path, body string, names ...string) reply {
	r.t.Helper()
	return r.do(method, "/_admin/tenants/"+path, body, append([]string{"Authorization", "Bearer " + adminToken}, names...)...)
}

// snapshot returns what a change could change of a tenant: its freeze and the count of its documents.
func (r *running) snapshot(tenant string) string {
	r.t.Helper()
	return r.admin("GET", "tenants/"+tenant+"/frozen", "").body + r.do("GET", "/t/"+tenant+"/c?count", "").body
}

// A request with a revision of before another change is refused and changes nothing, even if the tenant looks the same again.
func TestAChangeWithAnOldRevisionIsRefused(t *testing.T) {
	source := start(t, Config{})
	source.fill("acme", 3)
	image := source.image("acme")
	put := func(r *running) { r.wantAdmin(201, "PUT", "tenants/acme/file", image) }
	thaw := func(r *running) { r.wantAdmin(200, "POST", "tenants/acme/thaw", "") }
	freeze := func(r *running) { r.wantAdmin(200, "POST", "tenants/acme/freeze", `{"token":"x"}`) }
	remove := func(r *running) { r.wantAdmin(204, "DELETE", "tenants/acme", "") }
	renew := func(r *running) { r.wantAdmin(200, "POST", "tenants/acme/revision", "") }
	nothing := func(r *running) {}
	steps := func(all ...func(*running)) func(*running) {
		return func(r *running) {
			for _, one := range all {
				one(r)
			}
		}
	}
	live, frozen := steps(put, thaw), steps(put, thaw, freeze)
	cases := []struct {
		name, method, path, body string
		status                   int            // of the request with the current revision
		before                   func(*running) // creates the state whose revision the request has
		meanwhile                map[string]func(*running)
	}{
		{"a freeze", "POST", "acme/freeze", `{"token":"late"}`, 200, live, map[string]func(*running){
			"a freeze and a thaw": steps(freeze, thaw), "a thaw of what was not frozen": thaw,
			"a delete and an install": steps(remove, put, thaw), "the delete": remove, "a renewal": renew,
		}},
		{"a thaw", "POST", "acme/thaw", `{"token":"x"}`, 200, frozen, map[string]func(*running){
			"a thaw and a freeze": steps(thaw, freeze), "a freeze that changed nothing": freeze,
			"a delete and an install": steps(remove, put, thaw, freeze), "the delete": remove, "a renewal": renew,
		}},
		{"a thaw without a token", "POST", "acme/thaw", "", 200, put, map[string]func(*running){
			"a thaw and a freeze": steps(thaw, freeze), "another image": steps(remove, put), "a renewal": renew,
		}},
		{"a delete", "DELETE", "acme", "", 204, frozen, map[string]func(*running){
			"a thaw": thaw, "a thaw and a freeze": steps(thaw, freeze),
			"a delete and an install": steps(remove, put, thaw, freeze), "a renewal": renew,
		}},
		{"a create", "PUT", "acme", "", 201, nothing, map[string]func(*running){
			"a create and a delete": steps(live, remove), "a create": live, "a renewal": renew,
		}},
		{"an install", "PUT", "acme/file?token=late", image, 201, nothing, map[string]func(*running){
			"an install and a delete": steps(put, remove), "an install": put, "a renewal": renew,
		}},
		{"a renewal", "POST", "acme/revision", "", 200, live, map[string]func(*running){
			"a freeze": freeze, "a delete and an install": steps(remove, live), "a renewal": renew,
		}},
	}
	for _, c := range cases {
		for name, meanwhile := range c.meanwhile {
			t.Run(c.name+" after "+name, func(t *testing.T) {
				r := start(t, Config{})
				c.before(r)
				decided := r.revision("acme")
				meanwhile(r)
				was := r.snapshot("acme")
				if got := r.change(c.method, c.path, c.body, revisionHeader, decided); got.status != 409 || !strings.Contains(got.body, decided) {
					t.Errorf("got %d %s with an old revision, expected 409", got.status, got.body)
				}
				if now := r.snapshot("acme"); now != was {
					t.Errorf("got the tenant %s after the refused request, expected %s", now, was)
				}
			})
		}
		t.Run(c.name+" after a restart", func(t *testing.T) {
			r := start(t, Config{})
			c.before(r)
			decided := r.revision("acme")
			r.stop()
			r = start(t, Config{Dir: r.config.Dir})
			if got := r.change(c.method, c.path, c.body, revisionHeader, decided); got.status != 409 {
				t.Errorf("got %d %s with an old revision, expected 409", got.status, got.body)
			}
		})
		t.Run(c.name+" twice", func(t *testing.T) {
			r := start(t, Config{})
			c.before(r)
			decided := r.revision("acme")
			for _, want := range []int{c.status, 409} {
				if got := r.change(c.method, c.path, c.body, revisionHeader, decided); got.status != want {
					t.Errorf("got %d %s, expected %d", got.status, got.body, want)
				}
			}
		})
	}
}

// Reads, writes, images and the close of an idle tenant do not change its revision.
func TestARevisionLastsUntilAChangeOfTheTenant(t *testing.T) {
	r := start(t, Config{})
	absent := r.revision("acme")
	if again := r.revision("acme"); again != absent {
		t.Errorf("got the revision %s of an absent tenant, expected %s again", again, absent)
	}
	r.fill("acme", 3)
	created := r.revision("acme")
	r.insert("acme", 4, 1)
	r.image("acme")
	r.closeIdle("acme")
	if now := r.revision("acme"); now != created || created == absent {
		t.Errorf("got the revisions %s when absent, %s when created and %s later, expected only the last two equal", absent, created, now)
	}
	if got := r.change("POST", "acme/revision", ""); got.header.Get(revisionHeader) != r.revision("acme") || r.revision("acme") == created {
		t.Errorf("got %v %s for a renewal, expected the new revision %s", got.header, got.body, r.revision("acme"))
	}
}

// A damaged tenant has a revision too, and can be deleted with it.
func TestADamagedTenantIsDeletedByItsRevision(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 3)
	r.stop()
	if err := os.WriteFile(r.file("acme.fenec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, Config{Dir: r.config.Dir})
	if got := r.change("DELETE", "acme", "", revisionHeader, "another"); got.status != 409 {
		t.Errorf("got %d %s with another revision, expected 409", got.status, got.body)
	}
	if got := r.change("DELETE", "acme", "", revisionHeader, r.revision("acme")); got.status != 204 {
		t.Errorf("got %d %s with its revision, expected 204", got.status, got.body)
	}
}

func TestAChangeWithAnotherSequenceNumberIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body, seq string
		status                        int
	}{
		{"a delete at the change", "DELETE", "acme", "", "6", 204},
		{"a delete at an earlier one", "DELETE", "acme", "", "5", 409},
		{"a delete at a later one", "DELETE", "acme", "", "7", 409},
		{"a freeze at the change", "POST", "acme/freeze", "", "6", 200},
		{"a freeze at an earlier one", "POST", "acme/freeze", "", "5", 409},
		{"a thaw at an earlier one", "POST", "acme/thaw", "", "5", 409},
		{"a create of an absent tenant", "PUT", "other", "", "0", 409},
		{"an install of an absent tenant", "PUT", "other/file", "", "0", 409},
		{"no number", "DELETE", "acme", "", "x", 400},
		{"a negative one", "DELETE", "acme", "", "-1", 400},
		{"an empty one", "DELETE", "acme", "", "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Config{})
			r.fill("acme", 3)
			r.insert("acme", 4, 1)
			r.query("acme", "del c where n = 4")
			if got := r.change(c.method, c.path, c.body, seqHeader, c.seq); got.status != c.status {
				t.Fatalf("got %d %s, expected %d", got.status, got.body, c.status)
			}
			if c.status >= 400 {
				r.insert("acme", 5, 1) // the tenant still accepts writes
			}
		})
	}
}

// An image is held under the token of its install. Only a thaw or freeze with that token, or a thaw without one, is accepted.
func TestAnImageIsHeldUnderItsToken(t *testing.T) {
	r := start(t, Config{})
	r.fill("source", 3)
	image := r.image("source")
	for _, c := range []struct {
		name, query, token, verb string
		status                   int
		frozen                   string
	}{
		{"a thaw under it", "?token=m1", "m1", "thaw", 200, `{"frozen":false,"held":false,"seq":4}`},
		{"a thaw without one", "?token=m1", "", "thaw", 200, `{"frozen":false,"held":false,"seq":4}`},
		{"a thaw under another", "?token=m1", "m2", "thaw", 409, `{"frozen":true,"token":"m1","held":true,"seq":4}`},
		{"a freeze under another", "?token=m1", "m2", "freeze", 409, `{"frozen":true,"token":"m1","held":true,"seq":4}`},
		{"a freeze under it", "?token=m1", "m1", "freeze", 200, `{"frozen":true,"token":"m1","held":true,"seq":4}`},
		{"a freeze that gives it a token", "", "m2", "freeze", 200, `{"frozen":true,"token":"m2","held":true,"seq":4}`},
		{"a thaw under one, installed without", "", "m2", "thaw", 200, `{"frozen":false,"held":false,"seq":4}`},
		{"an escaped token", "?token=m%2F1+x", "m/1 x", "thaw", 200, `{"frozen":false,"held":false,"seq":4}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.wantAdmin(201, "PUT", "tenants/copy/file"+c.query, image)
			r.closeIdle("copy")
			body := ""
			if c.token != "" {
				body = `{"token":"` + c.token + `"}`
			}
			r.wantAdmin(c.status, "POST", "tenants/copy/"+c.verb, body)
			if got := r.admin("GET", "tenants/copy/frozen", "").body; got != c.frozen {
				t.Errorf("got the state %s, expected %s", got, c.frozen)
			}
			r.wantAdmin(204, "DELETE", "tenants/copy", "")
		})
	}
	for _, query := range []string{"?tokn=x", "?token=x&y=z", "?token=%zz", "?token=" + strings.Repeat("x", 600)} {
		r.wantAdmin(400, "PUT", "tenants/copy/file"+query, image)
	}
	r.wantAdmin(404, "GET", "tenants/copy/frozen", "")
}
