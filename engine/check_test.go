package engine

import (
	"os"
	"strings"
	"testing"

	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

func flip(t *testing.T, fs vfs.FS, offset int64) {
	t.Helper()
	f, err := fs.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b, offset); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSalvageKeepsReadableBlocks(t *testing.T) {
	fs := crashfs.New(1)
	db := inMemory(t, Options{FS: fs})
	mustExec(t, db, `create collection c (n int, tag text)`)
	mustExec(t, db, `put c {n: 1, tag: "kept"}`)
	from := db.Stats().FileBytes
	mustExec(t, db, `put c {n: 2, tag: "damaged"}`)
	mustExec(t, db, `put c {n: 3, tag: "kept too"}`)
	db.Close()
	report, err := Check(fs, file, "")
	if err != nil || !report.Sound() || report.Records != 5 || report.Collections[0].Documents != 3 {
		t.Fatalf("a sound file is reported as %+v, %v", report, err)
	}
	flip(t, fs, from+30)
	if _, err := Open(file, Options{FS: fs}); err == nil || !strings.Contains(err.Error(), "offset") {
		t.Errorf("the damaged file opened, or its error names no offset: %v", err)
	}
	report, err = Check(fs, file, "/saved.fenec")
	if err != nil || report.Sound() || report.Damage[0].Offset != from {
		t.Fatalf("damage at %d is reported as %+v, %v", from, report, err)
	}
	saved, err := Open("/saved.fenec", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	wantRows(t, saved, `get c`, `[{"id":1,"n":1,"tag":"kept"},{"id":3,"n":3,"tag":"kept too"}]`)
	mustExec(t, saved, `put c {n: 4}`)
	wantRows(t, saved, `get c where n = 4 select id`, `[{"id":4}]`)
}
