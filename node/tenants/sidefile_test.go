package tenants

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"fenec/engine"
	"fenec/internal/vfs/crashfs"
)

// files returns the names of the files in the directory except its lock.
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

// The disk fails at each step of each operation that writes a file beside those of the tenants. The operation returns an
// error, and the directory holds the same files as before.
func TestAFailedOperationLeavesNoFile(t *testing.T) {
	filled := func(t *testing.T, s *Set) {
		if err := s.create("acme", Condition{}); err != nil {
			t.Fatal(err)
		}
		run(t, s, "acme", "create collection c (s text)")
		run(t, s, "acme", "put c {s: \""+strings.Repeat("x", 5000)+"\"}")
	}
	var image string
	{
		s := setOn(t, crashfs.New(1))
		filled(t, s)
		var err error
		if image, err = readImage(s, "acme"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		before func(*testing.T, *Set)
		do     func(s *Set) error
	}{
		{"a freeze", filled, func(s *Set) error { _, err := s.Freeze("acme", "x", Condition{}); return err }},
		{"a create", nil, func(s *Set) error { return s.create("acme", Condition{}) }},
		{"an install", nil, func(s *Set) error {
			_, err := s.Install("acme", "", Condition{}, strings.NewReader(image), int64(len(image)))
			return err
		}},
		{"a compact", filled, func(s *Set) error {
			acme, err := s.Acquire("acme")
			if err != nil {
				return err
			}
			defer s.Release(acme)
			_, err = acme.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: "compact"}, nil)
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
			{ // an operation may succeed although one of its steps fails
				fs := crashfs.New(1)
				s := setOn(t, fs)
				if c.before != nil {
					c.before(t, s)
				}
				steps = -fs.Ops()
				if err := c.do(s); err != nil {
					t.Fatal(err)
				}
				steps += fs.Ops()
			}
			for k, done := 1, false; !done || k <= steps; k++ {
				fs := crashfs.New(uint64(k))
				s := setOn(t, fs)
				if c.before != nil {
					c.before(t, s)
				}
				was := files(t, fs)
				fault.make(fs, k)
				err := c.do(s)
				fs.Heal()
				if done = err == nil; done {
					continue
				}
				failures++
				if now := files(t, fs); now != was {
					t.Errorf("%s with %s at step %d (%v): got the files %q, expected %q", c.name, fault.name, k, err, now, was)
				}
				if acme := look(t, s, "acme"); acme.there && c.before != nil && (!acme.writes && c.name == "a freeze" || acme.token != "") {
					t.Errorf("%s with %s at step %d (%v): got the tenant %+v, expected no hold", c.name, fault.name, k, err, acme)
				}
			}
			if failures == 0 {
				t.Errorf("%s never failed with %s, expected a failure", c.name, fault.name)
			}
		}
	}
}

// run runs a statement in a tenant and fails the test if it returns an error.
func run(t *testing.T, s *Set, tenant, statement string) {
	t.Helper()
	one, err := s.Acquire(tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(one)
	if _, err := one.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: statement}, nil); err != nil {
		t.Fatal(err)
	}
}
