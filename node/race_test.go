package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fenec/node/tenants"
)

// TestConcurrentRequestsGetAnAllowedStatus sends requests, creates, deletes, freezes, images, installs and closes of a few
// tenants concurrently. Each response has a status that some order of them allows. At the end the count of open tenants is
// right, and each tenant can be deleted and created.
func TestConcurrentRequestsGetAnAllowedStatus(t *testing.T) {
	r := start(t, Config{MaxMemory: 1 << 20})
	r.budget.tenants.MaxOpen = 2
	names := []string{"a", "b", "c", "d"}
	allowed := map[string]string{
		"GET":        "200 404",
		"POST":       "201 404 503 507",
		"PUT":        "201 409",
		"DELETE":     "204 404",
		"FREEZE":     "200 404",
		"THAW":       "200 404",
		"IMAGE":      "200 404",
		"INSTALL":    "201 409",
		"COLLECTION": "200 404 409 503 507",
	}
	var image atomic.Pointer[string]
	r.fill("a", 3)
	first := r.image("a")
	image.Store(&first)
	until := time.Now().Add(1500 * time.Millisecond)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			for time.Now().Before(until) {
				name := names[random.IntN(len(names))]
				admin := "/_admin/tenants/" + name
				method, path, body, what := "GET", "/t/"+name+"/c", "", "GET"
				switch random.IntN(20) {
				case 0:
					method, path, what = "PUT", admin, "PUT"
				case 1:
					method, path, what = "DELETE", admin, "DELETE"
				case 2:
					method, path, what = "POST", admin+"/freeze", "FREEZE"
				case 3, 4, 5:
					method, path, what = "POST", admin+"/thaw", "THAW"
				case 6:
					path, what = admin+"/file", "IMAGE"
				case 7:
					method, path, body, what = "PUT", admin+"/file", *image.Load(), "INSTALL"
				case 8:
					method, path, body, what = "POST", "/t/"+name+"/query", `{"query": "create collection c (n int)"}`, "COLLECTION"
				case 9:
					if one := r.tenants.Find([]byte(name)); one != nil {
						r.tenants.CloseIfIdle(one)
					}
					continue
				case 10:
					r.tenants.Sweep()
					continue
				case 11, 12, 13, 14:
					method, path, body, what = "POST", "/t/"+name+"/c", `{"n": 1}`, "POST"
				}
				got, err := r.send(method, path, body, "Authorization", "Bearer "+adminToken)
				if err != nil && what != "IMAGE" { // an image ends with its tenant
					t.Errorf("%s of %s: %v", what, name, err)
					return
				}
				if err == nil && !strings.Contains(allowed[what], fmt.Sprint(got.status)) {
					t.Errorf("%s of %s: got %d %s, expected one of %s", what, name, got.status, got.body, allowed[what])
					return
				}
			}
		})
	}
	group.Wait()
	open := int64(0)
	r.tenants.Each(func(*tenants.Tenant) { open++ })
	if n := r.budget.tenants.Open(); n != open {
		t.Errorf("got %d tenants counted as open, expected %d", n, open)
	}
	for _, name := range names {
		r.closeIdle(name)
		r.admin("DELETE", "tenants/"+name, "")
		r.fill(name, 1)
	}
}

func TestConcurrentFirstRequestsOpenATenantOnce(t *testing.T) {
	r := start(t, Config{})
	r.fill("acme", 5)
	opens := r.counter("fenec_tenants_opened_total")
	for range 20 {
		r.closeIdle("acme")
		before := opens.Get()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if got, err := r.send("GET", "/t/acme/c?count", ""); err != nil || got.body != `{"count":5}` {
					t.Error(got, err)
				}
			})
		}
		group.Wait()
		if opened := opens.Get() - before; opened != 1 {
			t.Fatalf("got %d opens of the tenant, expected 1", opened)
		}
	}
}

func TestOneOfManyConcurrentCreatesSucceeds(t *testing.T) {
	r := start(t, Config{})
	for round := range 10 {
		var created, refused atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, err := r.send("PUT", fmt.Sprintf("/_admin/tenants/t%d", round), "", "Authorization", "Bearer "+adminToken)
				switch {
				case err != nil:
					t.Error(err)
				case got.status == 201:
					created.Add(1)
				case got.status == 409:
					refused.Add(1)
				}
			})
		}
		group.Wait()
		if created.Load() != 1 || refused.Load() != 7 {
			t.Fatalf("got %d creates and %d conflicts, expected 1 and 7", created.Load(), refused.Load())
		}
	}
}
