package edge

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"fenec/internal/http1"
)

func request(method string, headers ...string) *http1.Request {
	r := &http1.Request{Method: method}
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, http1.Header{Name: []byte(headers[i]), Value: []byte(headers[i+1])})
	}
	return r
}

func TestATokenIsInARequest(t *testing.T) {
	token := NewToken("s3cret")
	for header, want := range map[string]bool{
		"Bearer s3cret": true, "bearer s3cret": true, "Bearer   s3cret": true,
		"Bearer s3cre": false, "Bearer s3crets": false, "Bearer S3cret": false, "Bearer ": false, "Bearer": false,
		"s3cret": false, "Basic s3cret": false, "Bearers3cret": false, "": false,
	} {
		if got := token.In(request("GET", "Authorization", header)); got != want {
			t.Errorf("Authorization: %s: %v", header, got)
		}
	}
	if token.In(request("GET")) {
		t.Error("a request without Authorization has the token")
	}
}

func TestNoRequestCarriesAnEmptyToken(t *testing.T) {
	for name, token := range map[string]Token{"zero": {}, "of an empty text": NewToken("")} {
		if token.Set() || token.In(request("GET", "Authorization", "Bearer ")) || token.In(request("GET")) {
			t.Errorf("the token %s is set or carried", name)
		}
	}
}

func TestAMethodIsCheckedAgainstASet(t *testing.T) {
	set := Get | Put
	for method, status := range map[string]int{"GET": 0, "HEAD": 0, "PUT": 0, "POST": 405, "DELETE": 405, "BREW": 405, "get": 405, "OPTIONS": 204} {
		a, done := set.Check(request(method))
		if done != (status != 0) || a.Status != status {
			t.Errorf("%s: %d, %v", method, a.Status, done)
		}
		if done && !slices.ContainsFunc(a.Headers, func(h http1.Header) bool {
			return string(h.Name) == "Allow" && string(h.Value) == "GET, HEAD, PUT, OPTIONS"
		}) {
			t.Errorf("%s: the headers are %v", method, a.Headers)
		}
	}
}

func TestAnAddressIsOfLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:80": "yes", "127.9.9.9:80": "yes", "[::1]:80": "yes", "[::ffff:127.0.0.1]:80": "yes", "localhost:80": "yes",
		"0.0.0.0:80": "no", ":80": "no", "[::]:80": "no", "10.0.0.1:80": "no", "example.com:80": "no", "localhost.example.com:80": "no",
		"127.0.0.1": "error", "": "error",
	} {
		loopback, err := IsLoopback(listen)
		got := map[bool]string{true: "yes", false: "no"}[loopback]
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", listen, got, want)
		}
	}
}

// FuzzPath: the segments of a path are what is between its slashes.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "/", "//", "/a/b", "a//b/", "/_admin/tenants/acme/frozen/"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		want := bytes.FieldsFunc(path, func(c rune) bool { return c == '/' })
		if got := SplitPath(nil, path); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	})
}

// FuzzWait: whatever a client sends, a wait is between zero and MaxWait.
func FuzzWait(f *testing.F) {
	for _, seed := range []string{"", "0", "250", "5s", "-1", "-5s", "99999999999999999999", "1h", "x", "1e3"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		wait, ok := ParseWait(text)
		if wait < 0 || wait > MaxWait || !ok && wait != 0 {
			t.Errorf("%q is a wait of %s, %v", text, wait, ok)
		}
	})
}

func TestAWaitIsMillisecondsOrADuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"250": 250 * time.Millisecond, "5s": 5 * time.Second, "1h": MaxWait, "99999999999999999999": MaxWait, "0": 0} {
		if got, ok := ParseWait([]byte(text)); got != want || !ok {
			t.Errorf("%s: %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "-5s", "x", "5" + "S"} {
		if _, ok := ParseWait([]byte(text)); ok {
			t.Errorf("%q is a wait", text)
		}
	}
}
