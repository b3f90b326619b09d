package directory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"github.com/google/go-cmp/cmp"
)

// The disk is full, and then has room again: changes are refused and then accepted, and the maps are what is on disk.
func TestAFullDiskStopsChangesOnlyWhileItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		f := two(t, fs)
		row := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
		before := f.Version()
		fs.SetSpace(10)
		for range 5 {
			_, err := f.Change(row, &Tenant{Name: "acme", Node: "n2", State: Active})
			if fail.KindOf(err) != fail.Full || errors.As(err, new(*Conflict)) {
				t.Fatalf("without room: %v", err)
			}
			if f.Tenant("acme") != row {
				t.Fatal("the row has changed")
			}
			time.Sleep(reopenEvery) // in the bubble
		}
		fs.SetSpace(-1)
		row = put(t, f, row, &Tenant{Name: "acme", Node: "n2", State: Active})
		put(t, f, nil, &Tenant{Name: "other", Node: "n1", State: Active})
		if row.Version <= before {
			t.Errorf("the version went from %d to %d", before, row.Version)
		}
		if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
			t.Error(diff)
		}
	})
}

// The disk fails at each of the operations of a change, once or until it is mended, and what was not synced is found later or
// not: a change that is in doubt is made or not made once the file is open again, and the maps are what is on disk.
func TestAChangeInDoubtIsResolved(t *testing.T) {
	for name, disk := range map[string]func(fs *crashfs.FS, k int){
		"fails once":               func(fs *crashfs.FS, k int) { fs.FailAt(fs.Ops()+k, syscall.EIO) },
		"is full once":             func(fs *crashfs.FS, k int) { fs.FailAt(fs.Ops()+k, syscall.ENOSPC) },
		"fails until it is mended": func(fs *crashfs.FS, k int) { fs.FailFrom(fs.Ops()+k, syscall.EIO) },
		"fails at two operations": func(fs *crashfs.FS, k int) {
			fs.Hook(func(crashfs.Op, string) error {
				if k--; k == 0 || k == -1 {
					return syscall.EIO
				}
				return nil
			})
		},
		"fails at four operations": func(fs *crashfs.FS, k int) {
			fs.Hook(func(crashfs.Op, string) error {
				if k--; k < 1 && k > -4 {
					return syscall.EIO
				}
				return nil
			})
		},
	} {
		outcomes := map[string]int{}
		for k := 1; k <= 12; k++ {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%s at %d, %d", name, k, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { outcomes[doubt(t, disk, k, seed)]++ })
				})
			}
		}
		want := "refused"
		if name == "fails at two operations" {
			want = "made although it failed" // the sync, and the truncation that takes the record back
		}
		if name == "fails until it is mended" || name == "fails at four operations" {
			want = "in doubt"
		}
		if outcomes["made"] == 0 || outcomes[want] == 0 {
			t.Errorf("a disk that %s: %v", name, outcomes)
		}
	}
}

func doubt(t *testing.T, disk func(fs *crashfs.FS, k int), k int, seed uint64) (outcome string) {
	fs := crashfs.New(seed)
	f := two(t, fs)
	old := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
	still := put(t, f, nil, &Tenant{Name: "still", Node: "n1", State: Active})
	ctx := context.Background()
	work, err := f.Begin(ctx, "acme", Move)
	if err != nil {
		t.Fatal(err)
	}
	disk(fs, k)
	next := &Tenant{Name: "acme", Node: "n2", State: Settling, Token: "T1"}
	on := f.store
	now, err := f.Change(old, next)
	work.End()
	switch {
	case err == nil:
		if outcome = "made"; f.store != on {
			outcome = "made although it failed"
		}
		if !now.same(next) || f.Tenant("acme") != now {
			t.Errorf("it was made, and the row is %+v", f.Tenant("acme"))
		}
	case errors.As(err, new(*InDoubt)):
		outcome = "in doubt"
		if f.Tenant("acme") != old {
			t.Errorf("it is in doubt, and the row is %+v", f.Tenant("acme"))
		}
		if w, err := f.TryBegin("acme", Repair); err == nil {
			w.End()
			t.Error("work begins on a row in doubt")
		}
	default:
		outcome = "refused"
		if f.Tenant("acme") != old {
			t.Errorf("it was refused, and the row is %+v", f.Tenant("acme"))
		}
	}
	fs.Heal()
	time.Sleep(reopenEvery)
	w, err := f.Begin(ctx, "acme", Repair)
	if err != nil {
		t.Fatal(err)
	}
	w.End()
	if f.Tenant("still") != still {
		t.Error("a row that has not changed is another value now")
	}
	now = f.Tenant("acme")
	if !now.same(next) && now != old {
		t.Errorf("the row is %+v", now)
	}
	if strings.HasPrefix(outcome, "made") && !now.same(next) || outcome == "refused" && now != old {
		t.Errorf("it was %s, and the row is %+v", outcome, now)
	}
	if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
		t.Error(diff)
	}
	put(t, f, now, &Tenant{Name: "acme", Node: "n1", State: Active})
	put(t, f, f.Tenant("still"), nil)
	if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
		t.Error(diff)
	}
	return outcome
}

// While the disk fails, the file is not opened again for each change.
func TestAFailingFileIsOpenedAgainOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := crashfs.New(1)
		f := two(t, fs)
		row := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
		syncs := 0
		fs.Hook(func(op crashfs.Op, _ string) error {
			if op == crashfs.Sync {
				syncs++
				return syscall.EIO
			}
			return nil
		})
		for range 100 {
			if _, err := f.Change(row, &Tenant{Name: "acme", Node: "n2", State: Active}); fail.KindOf(err) != fail.Storage {
				t.Fatal(err)
			}
		}
		if syncs > 4 {
			t.Errorf("100 changes of a directory whose disk fails tried to sync %d times", syncs)
		}
	})
}

// What a reader of the feed has missed because a compact removed it is read from the rows.
func TestWhatTheFeedNoLongerKeepsIsReadFromTheRows(t *testing.T) {
	fs := crashfs.New(1)
	f := two(t, fs)
	old := put(t, f, nil, &Tenant{Name: "acme", Node: "n1", State: Active})
	still := put(t, f, nil, &Tenant{Name: "still", Node: "n1", State: Active})
	put(t, f, nil, &Tenant{Name: "gone", Node: "n1", State: Active})
	// The file changes and is compacted while the maps do not follow.
	changes := append(deleteTenant("gone"), putTenant(&Tenant{Name: "acme", Node: "n2", State: Active}, false))
	if _, err := f.store.exec(changes...); err != nil {
		t.Fatal(err)
	}
	if err := f.store.db.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s, err := openStore(path, f.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := f.foldTo(s, 0); err != nil {
		t.Fatal(err)
	}
	if now := f.Tenant("acme"); now.Node != "n2" || now.Version <= old.Version {
		t.Errorf("the row is %+v", now)
	}
	if f.Tenant("still") != still || f.Tenant("gone") != nil {
		t.Error("the other rows are not as they were")
	}
	if diff := cmp.Diff(copied(t, fs), shown(&f.Maps)); diff != "" {
		t.Error(diff)
	}
}
