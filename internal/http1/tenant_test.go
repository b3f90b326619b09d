package http1

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAPathIsSplitIntoTenantAndRest(t *testing.T) {
	long := strings.Repeat("a", MaxTenant)
	for _, one := range []struct {
		path, tenant, rest string
		ok, bad            bool
	}{
		{"/t/acme", "acme", "/", true, false},
		{"/t/acme/", "acme", "/", true, false},
		{"/t/acme/notes", "acme", "/notes", true, false},
		{"/t/acme//notes", "acme", "/notes", true, false},
		{"//t///acme///notes//1/", "acme", "/notes//1/", true, false},
		{"/t/a-b_9/x", "a-b_9", "/x", true, false},
		{"/t/" + long, long, "/", true, false},
		{"/t/" + long + "a", "", "", true, true},
		{"/t/Acme/x", "", "", true, true},
		{"/t/ac%6de/x", "", "", true, true},
		{"/t/a.b", "", "", true, true},
		{"/t/\xc3\xa4", "", "", true, true},
		{"/t", "", "", false, false},
		{"/t/", "", "", false, false},
		{"/t//", "", "", false, false},
		{"/", "", "", false, false},
		{"*", "", "", false, false},
		{"/T/acme", "", "", false, false},
		{"/%74/acme", "", "", false, false},
		{"/tt/acme", "", "", false, false},
		{"/_health", "", "", false, false},
	} {
		tenant, rest, ok, err := SplitTenant([]byte(one.path))
		if string(tenant) != one.tenant || string(rest) != one.rest || ok != one.ok || (err != nil) != one.bad {
			t.Errorf("%s: got %q %q %v %v", one.path, tenant, rest, ok, err)
		}
		if err != nil && (err.Status != 400 || err.Answer().Close) {
			t.Errorf("%s: refused with %d, close %v", one.path, err.Status, err.Answer().Close)
		}
	}
}

func TestARefusalIsJSON(t *testing.T) {
	message := "a \"quoted\" \\ name\n\x00\x1f\x7f <é\xff>"
	var got struct {
		Error string `json:"error"`
		Retry int    `json:"retry_after"`
	}
	a := ErrorAnswerRetry(503, message, 7)
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if want := strings.ToValidUTF8(message, "\ufffd"); got.Error != want || got.Retry != 7 {
		t.Errorf("got %q, %d", got.Error, got.Retry)
	}
	if len(JSON) != 1 || string(a.Headers[1].Name) != "Retry-After" || string(a.Headers[1].Value) != "7" {
		t.Errorf("headers %q", a.Headers)
	}
}
