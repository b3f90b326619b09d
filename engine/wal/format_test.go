package wal

import (
	"bytes"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

// The files are version 1 as docs/file-format.md describes it: one closed in order, and one from before records said
// how much of the file was on disk. Every file ever written must stay readable.
const (
	image1 = "46454e4543000100" + "3000000000000000" + "0a0b0c0d" + "242684a0" +
		"0800000001000000" + "ce5f1214" + "b5c5171e" + "6f6e652074776f20"
	version1 = image1 +
		"0500000002010000" + "865a4811" + "17e78bfe" + "7468726565" +
		"0400000003030000" + "2131ffe5" + "b52e0fcb" + "666f7572" +
		"0000000005010000" + "530b0c0d" + "6e1a67b8"
	earlier1 = image1 +
		"0500000002000000" + "865a4811" + "dfcb8896" + "7468726565" +
		"0400000003000000" + "2131ffe5" + "ed5b0a73" + "666f7572"
)

func TestTheFileIsAsItsPageSays(t *testing.T) {
	fs := crashfs.New(1)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs, Rand: strings.NewReader("\x0a\x0b\x0c\x0d")}, Record{Image, room("one two ")})
	if err != nil {
		t.Fatal(err)
	}
	l.Stage(Block, room("three"))
	l.Stage(Derived, room("four"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(version1)
	if err != nil {
		t.Fatal(err)
	}
	if got := stored(t, fs); !bytes.Equal(got, want) {
		t.Fatalf("written is\n%x, want\n%x", got, want)
	}
	for _, text := range []string{version1, earlier1} {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := words(store(t, data), Options{}); err != nil || !slices.Equal(list, []string{"one", "two", "three", "four"}) {
			t.Fatalf("the file of version 1 opens with %q, %v", list, err)
		}
	}
}

// discardFS discards writes, so that only the log's own allocations count.
type discardFS struct{ vfs.FS }

type discardFile struct{ vfs.File }

func (discardFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func (fs discardFS) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := fs.FS.OpenFile(name, flag, perm)
	return discardFile{f}, err
}

func TestACommitAllocatesNothing(t *testing.T) {
	for _, policy := range []Policy{{}, {Always: true}} {
		l, err := Create("/x", Options{FS: discardFS{crashfs.New(1)}, Sync: policy})
		if err != nil {
			t.Fatal(err)
		}
		rec := room("a document")
		commit := func() {
			if err := l.Commit(l.Stage(Block, rec)); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(100, commit); n != 0 {
			t.Errorf("with sync %v a commit allocates %v times", policy, n)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
