package node

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// files are the names in the node's directory, its lock apart.
func files(t *testing.T, fs *crashfs.FS) string {
	t.Helper()
	names, err := fs.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, name := range names {
		if !strings.HasSuffix(name, ".lock") {
			kept = append(kept, name)
		}
	}
	return strings.Join(kept, " ")
}

// Every path that writes a file beside the tenants' own is failed at each of its steps: the request is refused, and the
// directory is as it was, now and for a node that starts on it.
func TestWhatFailsHalfWayLeavesNoFile(t *testing.T) {
	filled := func(t *testing.T, n *Node) {
		if err := n.create("acme", condition{}); err != nil {
			t.Fatal(err)
		}
		run(t, n, "acme", "create collection c (s text)")
		run(t, n, "acme", "put c {s: \""+strings.Repeat("x", 5000)+"\"}")
	}
	var image string
	{
		n := nodeOn(t, crashfs.New(1))
		filled(t, n)
		acme, err := n.acquire("acme")
		if err != nil {
			t.Fatal(err)
		}
		r, _, _, err := acme.db.OpenImage()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		image = string(text)
		r.Close()
		n.release(acme)
	}
	for _, c := range []struct {
		name   string
		before func(*testing.T, *Node)
		do     func(n *Node) error
	}{
		{"a freeze", filled, func(n *Node) error { _, err := n.freeze("acme", "x", condition{}); return err }},
		{"a create", nil, func(n *Node) error { return n.create("acme", condition{}) }},
		{"an install", nil, func(n *Node) error {
			_, err := n.installImage("acme", hold{Held: true}, condition{}, strings.NewReader(image), int64(len(image)))
			return err
		}},
		{"a compact", filled, func(n *Node) error {
			acme, err := n.acquire("acme")
			if err != nil {
				return err
			}
			defer n.release(acme)
			_, err = acme.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: "compact"}, nil)
			return err
		}},
	} {
		for _, fault := range []struct {
			name string
			make func(fs *crashfs.FS, k int)
		}{
			{"no room", func(fs *crashfs.FS, k int) { fs.FailAt(fs.Ops()+k, syscall.ENOSPC) }},
			{"a disk that fails", func(fs *crashfs.FS, k int) { fs.FailAt(fs.Ops()+k, syscall.EIO) }},
			{"room for some bytes", func(fs *crashfs.FS, k int) { fs.SetSpace(int64(k-1) * 97) }},
		} {
			failures, steps := 0, 0
			{ // some of which may fail and the whole succeed all the same
				fs := crashfs.New(1)
				n := nodeOn(t, fs)
				if c.before != nil {
					c.before(t, n)
				}
				steps = -fs.Ops()
				if err := c.do(n); err != nil {
					t.Fatal(err)
				}
				steps += fs.Ops()
			}
			for k, done := 1, false; !done || k <= steps; k++ {
				fs := crashfs.New(uint64(k))
				n := nodeOn(t, fs)
				if c.before != nil {
					c.before(t, n)
				}
				was := files(t, fs)
				fault.make(fs, k)
				err := c.do(n)
				fs.Heal()
				if done = err == nil; done {
					continue
				}
				failures++
				if now := files(t, fs); now != was {
					t.Errorf("%s with %s at step %d (%v): there was %q and is %q", c.name, fault.name, k, err, was, now)
				}
				if s := look(t, n, "acme"); s.there && c.before != nil && (!s.writes && c.name == "a freeze" || s.token != "") {
					t.Errorf("%s with %s at step %d (%v): the tenant is %+v", c.name, fault.name, k, err, s)
				}
			}
			if failures == 0 {
				t.Errorf("%s met no failure with %s", c.name, fault.name)
			}
		}
	}
}

// nodeOn is a node over /data of a file system, until the test ends.
func nodeOn(t *testing.T, fs *crashfs.FS) *Node {
	t.Helper()
	n, err := New(Config{Dir: "/data", FS: fs, Sync: wal.Policy{Always: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Shutdown(context.Background()); err != nil {
			t.Error(fmt.Errorf("shutdown: %w", err))
		}
	})
	return n
}

// run runs a statement in a tenant, which has to succeed.
func run(t *testing.T, n *Node, tenant, statement string) {
	t.Helper()
	one, err := n.acquire(tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer n.release(one)
	if _, err := one.db.Exec(context.Background(), engine.Everything(), engine.Statement{Text: statement}, nil); err != nil {
		t.Fatal(err)
	}
}
