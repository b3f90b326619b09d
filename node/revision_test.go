package node

import (
	"os"
	"strings"
	"testing"
)

// revision is what a tenant's name is at.
func (r *running) revision(tenant string) string {
	r.t.Helper()
	got := r.admin("GET", "tenants/"+tenant+"/frozen", "").header.Get(revisionHeader)
	if got == "" {
		r.t.Fatalf("tenant %s shows no revision", tenant)
	}
	return got
}

// change sends an admin request that names what it was decided on.
func (r *running) change(method, path, body string, names ...string) reply {
	r.t.Helper()
	return r.do(method, "/_admin/tenants/"+path, body, append([]string{"Authorization", "Bearer " + adminToken}, names...)...)
}

// stands is all that a change could change of a tenant.
func (r *running) stands(tenant string) string {
	r.t.Helper()
	return r.admin("GET", "tenants/"+tenant+"/frozen", "").body + r.do("GET", "/t/"+tenant+"/c?count", "").body
}

// Whatever has become of a tenant in between, and though it looks as it did: a request that was decided before is
// refused and changes nothing, and decided again it is done.
func TestAChangeActsOnlyOnWhatItWasDecidedOn(t *testing.T) {
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
		status                   int            // of the request that is not late
		before                   func(*running) // brings about what it is decided on
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
				was := r.stands("acme")
				if got := r.change(c.method, c.path, c.body, revisionHeader, decided); got.status != 409 || !strings.Contains(got.body, decided) {
					t.Errorf("late it is answered %d %s", got.status, got.body)
				}
				if now := r.stands("acme"); now != was {
					t.Errorf("it was %s and late it made %s of it", was, now)
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
				t.Errorf("late it is answered %d %s", got.status, got.body)
			}
		})
		t.Run(c.name+" twice", func(t *testing.T) {
			r := start(t, Config{})
			c.before(r)
			decided := r.revision("acme")
			for _, want := range []int{c.status, 409} {
				if got := r.change(c.method, c.path, c.body, revisionHeader, decided); got.status != want {
					t.Errorf("it is answered %d %s, want %d", got.status, got.body, want)
				}
			}
		})
	}
}

// Reads, writes and what is only looked at end no revision, and closing a tenant that is idle does not either.
func TestARevisionLastsUntilAChangeOfTheTenant(t *testing.T) {
	r := start(t, Config{})
	absent := r.revision("acme")
	if again := r.revision("acme"); again != absent {
		t.Errorf("a name without a tenant was at %s and is at %s", absent, again)
	}
	r.fill("acme", 3)
	made := r.revision("acme")
	r.insert("acme", 4, 1)
	r.image("acme")
	r.closeIdle("acme")
	if now := r.revision("acme"); now != made || made == absent {
		t.Errorf("it was at %s, then made at %s, and is at %s", absent, made, now)
	}
	if got := r.change("POST", "acme/revision", ""); got.header.Get(revisionHeader) != r.revision("acme") || r.revision("acme") == made {
		t.Errorf("a renewal answers %v %s, and it is at %s", got.header, got.body, r.revision("acme"))
	}
}

// A damaged tenant has a revision too, by which it can be deleted.
func TestADamagedTenantIsDeletedByItsRevision(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 3)
	r.stop()
	if err := os.WriteFile(r.file("acme.fenec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, Config{Dir: r.config.Dir})
	if got := r.change("DELETE", "acme", "", revisionHeader, "another"); got.status != 409 {
		t.Errorf("by another revision: %d %s", got.status, got.body)
	}
	if got := r.change("DELETE", "acme", "", revisionHeader, r.revision("acme")); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAChangeNamesTheChangeItWasDecidedOn(t *testing.T) {
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
		{"a create, which is at none", "PUT", "other", "", "0", 409},
		{"an install, which is at none", "PUT", "other/file", "", "0", 409},
		{"no number", "DELETE", "acme", "", "x", 400},
		{"a negative one", "DELETE", "acme", "", "-1", 400},
		{"nothing", "DELETE", "acme", "", "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Config{})
			r.fill("acme", 3)
			r.insert("acme", 4, 1)
			r.query("acme", "del c where n = 4")
			if got := r.change(c.method, c.path, c.body, seqHeader, c.seq); got.status != c.status {
				t.Fatalf("answered %d %s, want %d", got.status, got.body, c.status)
			}
			if c.status >= 400 {
				r.insert("acme", 5, 1) // it goes on
			}
		})
	}
}

// An image is held under the token it was installed with: only a request that names it, or none, ends that.
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
		{"a freeze that gives it its name", "", "m2", "freeze", 200, `{"frozen":true,"token":"m2","held":true,"seq":4}`},
		{"a thaw that gives it its name", "", "m2", "thaw", 200, `{"frozen":false,"held":false,"seq":4}`},
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
				t.Errorf("it is %s, want %s", got, c.frozen)
			}
			r.wantAdmin(204, "DELETE", "tenants/copy", "")
		})
	}
	for _, query := range []string{"?tokn=x", "?token=x&y=z", "?token=%zz", "?token=" + strings.Repeat("x", 600)} {
		r.wantAdmin(400, "PUT", "tenants/copy/file"+query, image)
	}
	r.wantAdmin(404, "GET", "tenants/copy/frozen", "")
}
