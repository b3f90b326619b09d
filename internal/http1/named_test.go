package http1

import (
	"strings"
	"testing"
)

func TestWhatConnectionNamesIsNotTheRequests(t *testing.T) {
	for _, tc := range []struct{ name, lines, want string }{
		{"nothing named", "A: 1\r\nConnection: close\r\nB: 2\r\n", "A Connection B"},
		{"one in any case, at any place", "A: 1\r\nCONNECTION: b\r\nB: 2\r\nb: 3\r\nC: 4\r\n", "A CONNECTION C"},
		{"several in several lines", "Connection: a , ,b\r\nA: 1\r\nConnection:\tC\r\nB: 2\r\nC: 3\r\nD: 4\r\n", "Connection Connection D"},
		{"Connection itself stays", "Connection: connection, a\r\nA: 1\r\n", "Connection"},
		{"names that only Unicode holds equal stay", "Connection: \u212aey\r\nKey: 1\r\n", "Connection Key"},
		{"nor does a part of a name name it", "Connection: Idem\r\nIdempotency-Key: 1\r\n", "Connection Idempotency-Key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _, bad := readText([]byte("GET / HTTP/1.1\r\nHost: a\r\n" + tc.lines + "\r\n"))
			if bad != nil {
				t.Fatal(bad)
			}
			if got := names(r.Headers[1:]); got != tc.want {
				t.Errorf("the headers are %s, want %s", got, tc.want)
			}
			answer, err := parseResponse([]byte("HTTP/1.1 200 OK\r\n"+tc.lines+"\r\n"), "GET")
			if err != nil {
				t.Fatal(err)
			}
			if got := names(answer.Headers); got != tc.want {
				t.Errorf("an answer's headers are %s, want %s", got, tc.want)
			}
		})
	}
}

func names(headers []Header) string {
	var out []string
	for _, h := range headers {
		out = append(out, string(h.Name))
	}
	return strings.Join(out, " ")
}

func TestARequestIDThatConnectionNamesIsIgnored(t *testing.T) {
	for lines, want := range map[string]string{
		"X-Request-Id: one\r\n":                                              "one",
		"X-Request-Id: a b\r\nX-Request-Id: two\r\n":                         "two",
		"X-Request-Id: one\r\nConnection: x-request-id\r\n":                  "",
		"Connection: X-Request-Id\r\nX-Request-Id: 1\r\nx-request-id: 2\r\n": "",
	} {
		r, _, err := readText([]byte("GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"))
		if err != nil || string(r.ID) != want {
			t.Errorf("of %q the id is %q, %v, want %q", lines, r.ID, err, want)
		}
	}
}
