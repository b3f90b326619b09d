package router

import (
	"context"
	"testing"

	"fenec/engine"
	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// A router that was killed has written a change and not synced it. The next one reads it and acts on it, and then the
// power goes.
func TestRowsOfADirectoryAreOnDiskBeforeTheyAreUsed(t *testing.T) {
	begin := func(fs *crashfs.FS) *directory {
		d, err := openDirectory(fs, "shard.fenec", engine.Options{}, func(name, _, _ string) (*node, error) { return &node{name: name}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	fs := crashfs.New(1)
	d := begin(fs)
	for _, text := range []string{
		`insert nodes [{name: "n1", addr: "a:1", token: "x"}, {name: "n2", addr: "a:2", token: "x"}]`,
		`insert tenants {name: "acme", node: "n1", state: "active"}`,
	} {
		if err := d.exec(text); err != nil {
			t.Fatal(err)
		}
	}
	d.close()
	killed, err := engine.Open("shard.fenec", engine.Options{FS: fs, Sync: wal.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Exec(context.Background(), engine.Everything(), engine.Statement{Text: `set tenants {node: "n2"}`}, nil); err != nil {
		t.Fatal(err)
	}
	d = begin(fs)
	read := d.tenants.find("acme").node.name
	d = begin(fs.CrashKeeping(func(int) int { return 0 }))
	if now := d.tenants.find("acme").node.name; now != read || read != "n2" {
		t.Errorf("it was read to be on %s, and after the power went it is on %s", read, now)
	}
	d.close()
}
