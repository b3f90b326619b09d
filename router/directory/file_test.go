package directory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// copied returns what a router that starts on the same disk would read.
func copied(t testing.TB, fs *crashfs.FS) table {
	t.Helper()
	f, err := openOn(fs.CrashKeeping(func(int) int { return 0 }))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return shown(&f.Maps)
}

func TestMapsAreThoseOfAFreshOpen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fs := crashfs.New(1)
		f, err := openOn(fs)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		check := func(what string) {
			if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
				r.Fatalf("after %s: %s", what, diff)
			}
		}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				if err := f.store.db.Compact(context.Background()); err != nil {
					r.Fatal(err)
				}
				check("a compact")
			case 1, 2:
				name := rapid.StringMatching(`n[0-3]`).Draw(r, "node")
				old, _ := f.Node(name)
				next := &Node{Name: name, Addr: rapid.StringMatching(`[a-z]{3}:[0-9]`).Draw(r, "addr"), Token: "x"}
				if old != nil && rapid.Bool().Draw(r, "remove") {
					next = nil
				}
				err := f.ChangeNode(old, next)
				if held := (*Held)(nil); err != nil && !(errors.As(err, &held) && next == nil && holds(f, name) == *held) {
					r.Fatal(err)
				}
				check("a change of a node")
			default:
				name := rapid.StringMatching(`[a-f]`).Draw(r, "tenant")
				old := f.Tenant(name)
				next := drawTenant(r, name)
				if old != nil && rapid.IntRange(0, 3).Draw(r, "delete") == 0 {
					next = nil
				}
				now, err := f.Change(old, next)
				if missing := (*NoNode)(nil); err != nil && !(errors.As(err, &missing) && f.unknown(missing.Name)) {
					r.Fatal(err)
				}
				if err == nil && (now != f.Tenant(name) || !now.same(next) || now != nil && now.Version != f.Version()) {
					r.Fatalf("it returns %+v", now)
				}
				if err != nil && f.Tenant(name) != old {
					r.Fatal("it changed a row that it refused to change")
				}
				check("a change of a tenant")
			}
		}
	})
}

// holds returns the error that the removal of a node with tenants or replicas gets.
func holds(f *File[*object], node string) Held {
	replicas, _ := f.Replicas(node, "")
	return Held{node, f.Naming(node), replicas}
}

func TestAChangeOfAnotherRowThanTheCurrentOneConflicts(t *testing.T) {
	f := two(t, crashfs.New(1))
	a := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
	b := put(t, f, a, &Tenant{Name: "acme", Node: "n2", State: Active})
	n1, _ := f.Node("n1")
	for name, change := range map[string]func() error{
		"an earlier row":    func() error { _, err := f.Change(a, &Tenant{Name: "acme", Node: "n1", State: Active}); return err },
		"an earlier delete": func() error { _, err := f.Change(a, nil); return err },
		"no row":            func() error { _, err := f.Change(nil, &Tenant{Name: "acme", Node: "n1", State: Active}); return err },
		"a row that is not there": func() error {
			_, err := f.Change(&Tenant{Name: "other", Version: 3}, &Tenant{Name: "other", Node: "n1", State: Active})
			return err
		},
		"a node that is there": func() error { return f.ChangeNode(nil, &Node{Name: "n1", Addr: "x:1"}) },
		"an earlier node": func() error {
			return f.ChangeNode(&Node{Name: "n1", Version: n1.Version - 1}, &Node{Name: "n1", Addr: "x:1"})
		},
	} {
		if conflict := (*Conflict)(nil); !errors.As(change(), &conflict) {
			t.Errorf("%s: %v", name, change())
		}
	}
	if f.Tenant("acme") != b {
		t.Error("the row has changed")
	}
	if _, err := f.Change(b, &Tenant{Name: "acme", Node: "n3", State: Active}); !errors.As(err, new(*NoNode)) {
		t.Errorf("a node without a row: %v", err)
	}
	n2, _ := f.Node("n2")
	if held := (*Held)(nil); !errors.As(f.ChangeNode(n2, nil), &held) || held.Tenants != 1 {
		t.Errorf("the removal of a node with a tenant: %v", held)
	}
}

// Many change the same row at once: each row is replaced by exactly one.
func TestOneOfManyChangesOfARowIsMade(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	var made atomic.Int64
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for range 50 {
				old := f.Tenant("acme")
				next := &Tenant{Name: "acme", Node: "n1", State: Deleting, Token: fmt.Sprintf("%d/%d", i, made.Load())}
				if now, err := f.Change(old, next); err == nil {
					made.Add(1)
					if old != nil && now.Version <= old.Version {
						panic("a version went back")
					}
				} else if !errors.As(err, new(*Conflict)) {
					panic(err)
				}
			}
		})
	}
	work.Wait()
	// A row put by one change, two nodes and two collections: there is no other change in the file.
	if got := f.Version(); got != uint64(made.Load())+4 || made.Load() == 0 {
		t.Errorf("%d changes were made, and the file is at change %d", made.Load(), got)
	}
	if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
		t.Error(diff)
	}
}

// A node is removed while tenants are placed on it: no tenant names a node without a row.
func TestNoTenantIsPlacedOnANodeThatIsRemoved(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	fs.Hook(func(op crashfs.Op, _ string) error {
		for range 100 { // a disk takes its time
			runtime.Gosched()
		}
		return nil
	})
	var work, all sync.WaitGroup
	for i := range 2 {
		work.Go(func() {
			for range 100 {
				name := fmt.Sprintf("t%d", i)
				var err error
				if old := f.Tenant(name); old != nil {
					_, err = f.Change(old, nil)
				} else {
					_, err = f.Change(nil, &Tenant{Name: name, Node: "n1", State: Active})
				}
				if err != nil && !errors.As(err, new(*NoNode)) {
					panic(err)
				}
				copied(t, fs) // it does not open if a tenant is on a node without a row
			}
		})
	}
	stop := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			old, _ := f.Node("n1")
			next := &Node{Name: "n1", Addr: "n1:1", Token: "secret"}
			if old != nil {
				next = nil
			}
			if err := f.ChangeNode(old, next); err != nil && !errors.As(err, new(*Held)) {
				panic(err)
			}
		}
	})
	work.Wait()
	close(stop)
	all.Wait()
	if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
		t.Error(diff)
	}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	want := map[string]Tenant{}
	for _, one := range []Tenant{
		{Name: "a", Node: "n1", State: Active},
		{Name: "b", Node: "n1", State: Moving, Target: "n2", Token: "T1", Stale: []Leftover{{"n2", "T0", Copied}, {"n3", "", Copied}}},
		{Name: "c", Node: "n2", State: Settling, Token: "T1", Stale: []Leftover{{"n1", "T1", Copied}}},
		{Name: "d", Node: "n1", State: Deleting, Token: "T2"},
		{Name: "e", State: Gone, Stale: []Leftover{{"n1", "T1", Copied}, {"n2", "00c0ffee00c0ffee", Dead}}},
		{Name: "f", Node: "n1", State: Placing, Stale: []Leftover{{"n2", "", Copied}}},
		{Name: "g", Node: "n1", State: Active, Replica: "n2", Lineage: "00c0ffee00c0ffee"},
		{Name: "h", Node: "n1", State: Promoting, Target: "n2", Token: "T3", Replica: "n2", Lineage: "00c0ffee00c0ffee"},
		{Name: "i", Node: "n1", State: Active, Stale: []Leftover{{"n2", "", Follower}, {"n3", "T4", Former}, {"n4", "", Former}}},
	} {
		put(t, f, nil, &one)
		want[one.Name] = one
	}
	for what, got := range map[string]table{"from the feed": shown(&f.Maps), "from the file": copied(t, fs)} {
		if diff := cmp.Diff(want, got.Tenants); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// The owner is notified of each row, and of whether somebody works on it.
func TestTheOwnerIsNotifiedOfEveryRow(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	row := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
	put(t, f, row, nil)
	put(t, f, nil, &Tenant{Name: "other", Node: "n1", State: Active})
	f.Close()
	var e events
	f, err := Open(path, f.options(), e.owner())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := f.Begin(context.Background(), "other", Move)
	if err != nil {
		t.Fatal(err)
	}
	row = put(t, f, f.Tenant("other"), &Tenant{Name: "other", Node: "n2", State: Active})
	w.End()
	put(t, f, row, nil)
	if diff := cmp.Diff([]string{"other", "other!", "other"}, e.tenants); diff != "" {
		t.Error(diff)
	}
	n1, at := f.Node("n1")
	if err := f.ChangeNode(n1, nil); err != nil || !at.removed {
		t.Errorf("a removed node's object: %v, %v", at, err)
	}
}

func (f *File[N]) options() Options { return Options{FS: f.opts.FS, Clock: f.opts.Clock} }

// A router that was killed has written a change and not synced it. The next one reads it and acts on it, and then the
// power goes.
func TestRowsOfADirectoryAreOnDiskBeforeTheyAreUsed(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
	f.Close()
	killed, err := engine.Open(path, engine.Options{FS: fs, Sync: wal.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Exec(context.Background(), engine.Everything(), engine.Statement{Text: `set tenants {node: "n2"}`}, nil); err != nil {
		t.Fatal(err)
	}
	read := opened(t, fs).Tenant("acme").Node
	if now := copied(t, fs).Tenants["acme"].Node; now != read || read != "n2" {
		t.Errorf("it was read to be on %s, and after the power went it is on %s", read, now)
	}
}

// A directory that cannot be created, or be compacted, leaves no incomplete file beside it.
func TestADirectoryThatFailsLeavesNoSideFile(t *testing.T) {
	for name, do := range map[string]func(fs *crashfs.FS, fail func()) error{
		"created": func(fs *crashfs.FS, fail func()) error {
			fail()
			f, err := openOn(fs)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"compacted": func(fs *crashfs.FS, fail func()) error {
			f := opened(t, fs)
			defer f.Close() // it may have failed
			fail()
			return f.store.db.Compact(context.Background())
		},
	} {
		for k := 1; ; k++ {
			fs := crashfs.New(uint64(k))
			err := do(fs, func() { fs.FailAt(fs.Ops()+k, syscall.ENOSPC) })
			if err == nil {
				if k < 4 {
					t.Errorf("a directory is %s in %d steps", name, k-1)
				}
				break
			}
			names, err := fs.ReadDir("/")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range names {
				if file != path && file != path+".lock" {
					t.Errorf("failed at step %d of being %s it leaves %s", k, name, file)
				}
			}
		}
	}
}

func TestAFileIsOpenOnce(t *testing.T) {
	fs := crashfs.New(1)
	f := opened(t, fs)
	if _, err := openOn(fs); err == nil {
		t.Error("it is opened twice")
	}
	f.Close()
	if _, err := f.Change(nil, &Tenant{Name: "acme", Node: "n1", State: Active}); err == nil {
		t.Error("a closed directory is changed")
	}
	opened(t, fs)
}
