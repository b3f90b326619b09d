package feed

import (
	"fmt"
	"syscall"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// ends returns the end of the feed in each reach.
func (f *followed) ends() string {
	return fmt.Sprintf("landed %d, settled %d, durable %d", f.End(Landed), f.End(Settled), f.End(Durable))
}

// TestABlockIsSettledWhenItsWriteIsAcknowledged checks the feed at each operation on the disk that a put makes.
func TestABlockIsSettledWhenItsWriteIsAcknowledged(t *testing.T) {
	const create = "create collection c (n int)"
	for _, c := range []struct {
		policy      wal.Policy
		at          crashfs.Op // which fails at the second put
		write, sync string     // the ends then, at the first put
		after       string
	}{
		{wal.Policy{}, crashfs.Write, "landed 2, settled 1, durable 0", "", "landed 2, settled 2, durable 0"},
		{always, crashfs.Sync, "landed 2, settled 1, durable 1", "landed 2, settled 1, durable 1", "landed 2, settled 2, durable 2"},
	} {
		t.Run(c.policy.String(), func(t *testing.T) {
			fs := crashfs.New(1)
			f := fresh(t, DefaultKeep, engine.Options{FS: fs, Sync: c.policy})
			f.exec(create)
			moved := f.Moved(Settled)
			var seen [2]string
			fs.Hook(func(op crashfs.Op, _ string) error {
				if op == crashfs.Write {
					seen[0] = f.ends()
				} else {
					seen[1] = f.ends()
				}
				select {
				case <-moved:
					t.Error("those who wait for it are woken before the disk is done")
				default:
				}
				return nil
			})
			f.exec("put c {n: 1}")
			<-moved
			if seen != [2]string{c.write, c.sync} || f.ends() != c.after {
				t.Errorf("at its write the feed has %s, at its sync %s, and after them %s", seen[0], seen[1], f.ends())
			}
			fs.Hook(func(op crashfs.Op, _ string) error {
				if op == c.at {
					return syscall.EIO
				}
				return nil
			})
			moved = f.Moved(Settled)
			if _, err := f.Exec(t.Context(), engine.Everything(), engine.Statement{Text: "put c {n: 2}"}, nil); err == nil {
				t.Error("a put that failed is acknowledged")
			}
			<-moved // closed although the block was undone
			if f.ends() != c.after {
				t.Errorf("after a put that failed the feed has %s, before it %s", f.ends(), c.after)
			}
		})
	}
}

// TestOfAKilledProcessOnlyBlocksKnownToBeOnDiskAreDurable reads the file of a killed process. Opening it for
// writing syncs it; opened for reading only, the durable blocks are those that the records report as on disk.
func TestOfAKilledProcessOnlyBlocksKnownToBeOnDiskAreDurable(t *testing.T) {
	fs := crashfs.New(1)
	killed := fresh(t, DefaultKeep, engine.Options{FS: fs})
	killed.exec("create collection c (n int)")
	killed.exec("put c {n: 1}")
	if err := killed.Cover(); err != nil {
		t.Fatal(err)
	}
	killed.exec("put c {n: 2}") // its record reports the two before it as on disk
	killed.exec("put c {n: 3}")
	reader := reopen(t, DefaultKeep, engine.Options{FS: fs, ReadOnly: true})
	if err := reader.Cover(); err != nil {
		t.Fatal(err)
	}
	if got, want := reader.ends(), "landed 4, settled 4, durable 2"; got != want {
		t.Errorf("open for reading the feed has %s, want %s", got, want)
	}
	blocks, err := reader.Read(engine.Everything(), nil, 0, Durable, 1<<20)
	if err != nil || len(blocks) != 2 || blocks[1].After != 2 {
		t.Errorf("handed out are %d blocks, %v", len(blocks), err)
	}
	if n, err := reader.Behind(engine.Everything(), 0); n != 2 || err != nil {
		t.Errorf("behind are %d, %v", n, err)
	}
	writer := reopen(t, DefaultKeep, engine.Options{FS: fs})
	if got, want := writer.ends(), "landed 4, settled 4, durable 4"; got != want {
		t.Errorf("open for writing the feed has %s, want %s", got, want)
	}
	after := reopen(t, DefaultKeep, engine.Options{FS: fs.CrashKeeping(func(int) int { return 0 })})
	if got := after.End(Durable); got != 4 {
		t.Errorf("after a power loss the file ends at %d", got)
	}
}

// TestTheHistoryThatIsNamedIsOnDisk opens and writes a file, whose history then begins in a record of its own.
func TestTheHistoryThatIsNamedIsOnDisk(t *testing.T) {
	fs := crashfs.New(1)
	f := fresh(t, DefaultKeep, engine.Options{FS: fs})
	f.exec("create collection c (n int)")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = reopen(t, DefaultKeep, engine.Options{FS: fs})
	syncs := fs.Count(crashfs.Sync)
	if err := f.CoverHistory(); err != nil || fs.Count(crashfs.Sync) != syncs {
		t.Errorf("with nothing written: %v, %d syncs", err, fs.Count(crashfs.Sync)-syncs)
	}
	f.exec("put c {n: 1}")
	for range 2 {
		if err := f.CoverHistory(); err != nil || fs.Count(crashfs.Sync) != syncs+1 {
			t.Errorf("written: %v, %d syncs", err, fs.Count(crashfs.Sync)-syncs)
		}
		f.exec("put c {n: 2}")
	}
	_, named := f.Position()
	after := reopen(t, DefaultKeep, engine.Options{FS: fs.CrashKeeping(func(int) int { return 0 })})
	if relation, err := after.Relation(1, []byte(named)); relation != engine.Included || err != nil {
		t.Errorf("after a power loss change 1 of the named history is at %d, %v", relation, err)
	}
}
