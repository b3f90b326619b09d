package node

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzCursor parses any text as a cursor. A valid cursor is written as it was read, except for leading zeros.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"0", "12@1-000102030405060708090a0b0c0d0e0f", "@", "-1", "007@x", "9223372036854775807", "9223372036854775808", "1@2@3", "+1", " 1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCursor("since", text)
		if err != nil {
			return
		}
		again := appendCursor(nil, c.seq, string(c.history))
		if len(c.history) == 0 {
			again = bytes.TrimSuffix(again, at)
			text = bytes.TrimSuffix(text, at)
		}
		if want := strings.TrimLeft(string(text), "0"); strings.TrimLeft(string(again), "0") != want {
			t.Errorf("the cursor %q is written as %q", text, again)
		}
	})
}

// FuzzShape requests a live query with any query string. It is accepted or refused, and no stream is left in either case.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{
		"", "n=gt.1", "n=in.(1,2)&select=s,n&since=3", "where=n+%3E+1+or+s+is+null", "where=now()=t", "select=id", "select=id,id", "select=*", "since=0@1-00",
		"where=n+in+(get+c+select+n)", "count=1", "order=n", "where=(n=1)--", "where=1%0A", "s=like.a*&s=not.is.null", "select=meta.a.b,id&meta.a.b=1", "near=1", "where=$1=n",
	} {
		f.Add(seed)
	}
	w := wired(f)
	f.Fuzz(func(t *testing.T, query string) {
		for _, c := range []byte(query) {
			if c <= ' ' || c == 0x7f {
				return // no target: the connection loop refuses it before a node sees it
			}
		}
		status, _ := w.send(t, "HEAD", "/t/x/c/changes?"+query, nil)
		switch status {
		case 200, 400, 404, 501:
		default:
			t.Fatalf("%s: got status %d, expected 200, 400, 404 or 501", query, status)
		}
		if n := w.node.streaming.Load(); n != 0 {
			t.Fatalf("%s: got %d streams after the response, expected 0", query, n)
		}
	})
}
