package tenants

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"
)

// stage is the last step of a move that was acknowledged before the power loss.
type stage int

const (
	nothing stage = iota
	created
	filled
	frozen
	installed
	thawed
	deleted
	recreated
	deletedAgain
)

// move runs the steps of a router's move: it creates, fills and freezes a, installs its image as b, thaws b and deletes a.
// Then it creates a again and deletes it. It returns the last step that succeeded.
func move(s *Set) (done stage) {
	run := func(name, statement string) error {
		t, err := s.Acquire(name)
		if err != nil {
			return err
		}
		defer s.Release(t)
		_, err = t.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: statement}, nil)
		return err
	}
	steps := []func() error{
		created: func() error { return s.create("a", Condition{}) },
		filled: func() error {
			return errors.Join(run("a", "create collection c (n int)"), run("a", "put c [{n: 1}, {n: 2}]"), run("a", "put c {n: 3}"))
		},
		frozen: func() error { _, err := s.Freeze("a", "move", Condition{}); return err },
		installed: func() error {
			image, err := s.OpenImage("a")
			if err != nil {
				return err
			}
			defer image.Close()
			_, err = s.Install("b", "", Condition{}, image, image.Size)
			return err
		},
		thawed:       func() error { _, err := s.Thaw("b", "", Condition{}); return err },
		deleted:      func() error { return s.Delete("a", Condition{}) },
		recreated:    func() error { return s.create("a", Condition{}) },
		deletedAgain: func() error { return s.Delete("a", Condition{}) },
	}
	for at := created; at <= deletedAgain; at++ {
		if err := steps[at](); err != nil {
			return at - 1
		}
	}
	return deletedAgain
}

// state is the state of a tenant after a restart.
type state struct {
	there, writes bool
	token         string
	documents     string
}

// look returns the state of a tenant.
func look(t *testing.T, set *Set, name string) (s state) {
	t.Helper()
	one, err := set.Acquire(name)
	var none *Absent
	if errors.As(err, &none) {
		return s
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer set.Release(one)
	s.there = true
	if h := one.hold.Load(); h != nil {
		s.token = h.Token
	}
	res, err := one.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: "get c count"}, nil)
	if err == nil {
		s.documents = string(res.Body)
	}
	_, err = one.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: "create collection probe (n int)"}, nil)
	s.writes = fail.KindOf(err) != fail.Frozen
	return s
}

// If the power is lost at any operation of a move, no acknowledged step is lost, a freeze holds, and two copies never both
// accept writes.
func TestAMoveSurvivesPowerLossAtAnyOperation(t *testing.T) {
	for seed := range uint64(4) {
		for k := 1; ; k++ {
			fs := crashfs.New(seed)
			if err := fs.MkdirAll("/data", 0o700); err != nil {
				t.Fatal(err)
			}
			fs.PowerOffAt(k)
			s, err := Open(over(fs))
			done := nothing
			if err == nil {
				done = move(s)
				_ = s.Close() // its file system has failed
			}
			crashed := fs.Crash()
			t.Run(fmt.Sprintf("seed %d operation %d after stage %d", seed, k, done), func(t *testing.T) {
				after, err := Open(over(crashed))
				if err != nil {
					t.Fatal(err)
				}
				defer after.Close()
				checkMove(t, done, look(t, after, "a"), look(t, after, "b"))
			})
			if done == deletedAgain {
				break
			}
		}
	}
}

// checkMove checks the tenants of a move that was acknowledged up to a stage.
func checkMove(t *testing.T, done stage, a, b state) {
	const all = `[{"count":3}]`
	check := func(holds bool, what string) {
		if !holds {
			t.Errorf("%s: a is %+v, b is %+v", what, a, b)
		}
	}
	check(!(a.there && b.there && a.writes && b.writes) || done >= deleted, "two copies accept writes")
	check(done != created && done != filled || a.there, "a created tenant is absent")
	check(done != filled || a.documents == all, "acknowledged documents are lost")
	check(done < frozen || done > thawed || !a.there || !a.writes && a.token == "move", "an acknowledged freeze does not hold")
	check(done < frozen || done > installed || a.there && a.documents == all, "a frozen tenant is lost")
	check(done != frozen || !b.there || !b.writes, "an image accepts writes before its thaw")
	check(done < installed || b.there && b.documents == all, "an installed image is lost")
	check(done < thawed || b.writes, "an acknowledged thaw does not hold")
	check(done != deleted || !a.there || a.documents == "", "a deleted tenant exists")
	check(done != recreated || !a.there || a.writes && a.documents == "", "a tenant that was created again is not empty and writable")
	check(done != deletedAgain || !a.there, "a tenant that was deleted again exists")
}

// The disk fails at each operation of a freeze, and of a thaw that is tried twice. A tenant that is reported as not frozen is
// not frozen after a restart, with all unsynced data kept or lost. A router relies on the report.
func TestATenantReportedAsNotFrozenIsNotFrozenAfterARestart(t *testing.T) {
	for what, disk := range map[string]func(fs *crashfs.FS, k int){
		"fails once":               func(fs *crashfs.FS, k int) { fs.FailAt(fs.Ops()+k, syscall.EIO) },
		"fails until it is healed": func(fs *crashfs.FS, k int) { fs.FailFrom(fs.Ops()+k, syscall.EIO) },
	} {
		for _, kept := range []string{"nothing", "everything"} {
			keep := func(n int) int { return map[string]int{"nothing": 0, "everything": n}[kept] }
			for _, freezes := range []bool{true, false} {
				for k, failed := 1, true; failed; k++ {
					t.Run(fmt.Sprintf("a disk that %s at %d and keeps %s, of a freeze: %v", what, k, kept, freezes), func(t *testing.T) {
						failed = checkReport(t, freezes, func(fs *crashfs.FS) { disk(fs, k) }, keep)
					})
				}
			}
		}
	}
}

// checkReport fails the disk in a freeze or a thaw, compares the reported state with that after a restart, and reports whether
// the request failed.
func checkReport(t *testing.T, freezes bool, disk func(*crashfs.FS), keep func(int) int) (failed bool) {
	fs := crashfs.New(1)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(over(fs))
	if err == nil {
		err = s.create("a", Condition{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if freezes {
		disk(fs)
		_, err = s.Freeze("a", "move", Condition{})
	} else if _, err = s.Freeze("a", "move", Condition{}); err == nil {
		disk(fs)
		if _, err = s.Thaw("a", "move", Condition{}); err != nil {
			s.Thaw("a", "move", Condition{}) // it may fail again
		}
	}
	failed = err != nil
	one, err := s.Acquire("a")
	if err != nil {
		t.Fatal(err)
	}
	reported := one.hold.Load() != nil
	s.Release(one)
	crashed := fs.CrashKeeping(keep)
	fs.Heal()
	s.Close() // its disk may have failed
	after, err := Open(over(crashed))
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if now := look(t, after, "a"); !now.writes && !reported {
		t.Errorf("got a tenant frozen under %q after a restart, expected it as reported: not frozen", now.token)
	}
	return failed
}
