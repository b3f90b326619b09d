package tenants

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// TestConcurrentOperationsLeaveTheSetConsistent writes to, creates, deletes, freezes, thaws, installs and closes a few tenants
// concurrently. Each call returns nil or an error that some order of the calls allows. At the end no gate is held, no caller
// is in a tenant, and the budget counts the open tenants.
func TestConcurrentOperationsLeaveTheSetConsistent(t *testing.T) {
	const workers, steps = 8, 200
	c := over(crashfs.New(1))
	c.Budget = &Budget{MaxOpen: 2, MaxMemory: 1 << 20}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d"}
	if err := s.create("a", Condition{}); err != nil {
		t.Fatal(err)
	}
	first, err := readImage(s, "a")
	if err != nil {
		t.Fatal(err)
	}
	var calls, done atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			for range steps {
				calls.Add(1)
				what, allowed, err := anything(s, random, names[random.IntN(len(names))], first)
				switch {
				case err == nil:
					done.Add(1)
				case !slices.Contains(allowed, fail.KindOf(err)):
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	group.Wait()
	if done.Load() < calls.Load()/4 {
		t.Errorf("got %d of %d calls that succeeded, expected at least a quarter", done.Load(), calls.Load())
	}
	if len(s.gates.held) != 0 {
		t.Errorf("got %d held gates, expected 0", len(s.gates.held))
	}
	open := int64(0)
	s.registry.each(func(one *Tenant) bool {
		open++
		if n := one.uses.Load(); n != 0 {
			t.Errorf("%s: got %d requests, expected 0", one.Name, n)
		}
		return true
	})
	if n := c.Budget.Open(); n != open {
		t.Errorf("got %d tenants counted as open, expected %d", n, open)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if open, memory, files := c.Budget.Open(), c.Budget.Memory(), c.Budget.Files(); open != 0 || memory != 0 || files != 0 {
		t.Errorf("got %d tenants, %d bytes of memory and %d of files counted for a closed Set, expected 0", open, memory, files)
	}
}

// absentKind is the kind of an *Absent, which has none.
const absentKind = fail.Kind(0)

// anything runs a random operation on a tenant, and returns its name, the kinds of errors that are allowed, and its error.
func anything(s *Set, random *rand.Rand, name, image string) (what string, allowed []fail.Kind, err error) {
	switch random.IntN(16) {
	case 0, 1:
		return "create", []fail.Kind{fail.Conflict}, s.create(name, Condition{})
	case 2:
		return "delete", []fail.Kind{absentKind}, s.Delete(name, Condition{})
	case 3:
		_, err = s.Freeze(name, "", Condition{})
		return "freeze", []fail.Kind{absentKind}, err
	case 4, 5:
		_, err = s.Thaw(name, "", Condition{})
		return "thaw", []fail.Kind{absentKind}, err
	case 6:
		_, err = s.Install(name, "", Condition{}, strings.NewReader(image), int64(len(image)))
		return "install", []fail.Kind{fail.Conflict}, err
	case 7:
		_, err = readImage(s, name)
		return "image", []fail.Kind{absentKind}, err
	case 8:
		s.closeLeastUsed()
		return "close", nil, nil
	case 9:
		s.Sweep()
		return "sweep", nil, nil
	case 10:
		_, err = s.Renew(name, Condition{})
		return "renew", nil, err
	}
	return "write", []fail.Kind{absentKind, fail.Frozen}, write(s, name)
}

// write writes to a tenant as a request does.
func write(s *Set, name string) error {
	t := s.Find([]byte(name))
	if t == nil || !t.Enter() {
		var err error
		if t, err = s.Acquire(name); err != nil {
			return err
		}
	}
	defer s.Release(t)
	for _, text := range []string{"create collection if not exists c (n int)", "put c {n: 1}"} {
		if _, err := t.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil); err != nil {
			return err
		}
	}
	return nil
}
