package node

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzCursor reads any text as a cursor: what is one is written as it was read, but for zeros in front.
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
			t.Errorf("%q is read as %q", text, again)
		}
	})
}

// FuzzShape asks for a live query with any query string: it is one or is refused, and nothing of it is left either way.
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
			t.Fatalf("%s: %d", query, status)
		}
		if n := w.node.streaming.Load(); n != 0 {
			t.Fatalf("%s: %d streams are left", query, n)
		}
	})
}
