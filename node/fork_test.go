package node

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// life is a tenant x on a file system that outlives its node.
type life struct {
	*running
	t        *testing.T
	fs       *crashfs.FS
	lost, of string // a lost position, and its history
}

func (l *life) start() {
	l.t.Helper()
	if err := l.fs.MkdirAll("/data", 0o700); err != nil {
		l.t.Fatal(err)
	}
	l.running = start(l.t, Config{Dir: "/data", FS: l.fs, Sync: wal.Policy{Every: time.Hour}})
}

// kill starts another node on the files that the current one leaves if its process is killed or, with kept 0, if the power
// fails.
func (l *life) kill(kept int) {
	l.t.Helper()
	l.fs = l.fs.CrashKeeping(func(n int) int { return n * kept })
	l.start()
}

// at returns the position of tenant x, with its history.
func (l *life) at() (seq, history string) {
	l.t.Helper()
	h := l.want(200, "GET", "/t/x/c?count", "", "Fenec-Read", "replica").header
	return h.Get("Fenec-Seq"), h.Get("Fenec-History")
}

// wantHolds checks that a position can be continued from, however it is named.
func (l *life) wantHolds(what, seq, history string) {
	l.t.Helper()
	l.want(200, "GET", "/t/x/c?count", "", "Fenec-After", seq, "Fenec-History", history)
	l.want(200, "GET", "/t/x/_changes?since="+seq, "", "Fenec-History", history)
	for _, headers := range [][]string{{"Last-Event-ID", seq + "@" + history}, {"Fenec-History", history}} {
		w := l.watch("/t/x/c/changes?since="+seq, headers...)
		l.query("x", "put c {n: 9}")
		if e := w.next(); e.name != "change" {
			l.t.Errorf("%s: live query from %s: got %s, want a change", what, seq, e)
		}
		w.stop()
	}
}

// wantApart checks that a position outside the tenant's history is refused at once, however it is named, and that a live
// query from it is seeded.
func (l *life) wantApart(what, seq, history string) {
	l.t.Helper()
	began := time.Now()
	got := l.want(504, "GET", "/t/x/c?count", "", "Fenec-After", seq, "Fenec-History", history, "Fenec-Wait", "30000")
	if !strings.Contains(got.body, "is of a branch that this copy is not on") || time.Since(began) > 20*time.Second {
		l.t.Errorf("%s: read that waits for %s: got %s after %v, want a refusal at once", what, seq, got.body, time.Since(began))
	}
	l.want(409, "GET", "/t/x/_changes?since="+seq, "", "Fenec-History", history)
	for _, headers := range [][]string{{"Last-Event-ID", seq + "@" + history}, {"Fenec-History", history}} {
		w := l.watch("/t/x/c/changes?since="+seq, headers...)
		if e := w.next(); e.name != "seed" {
			l.t.Errorf("%s: live query from %s: got %s, want a seed", what, seq, e)
		}
		w.stop()
	}
}

// TestOnlyCursorsOfLostChangesAreRefusedAfterReopening closes and reopens a tenant in each way, some of which lose the last
// three changes. It then tries each kind of cursor, before the next write and after.
func TestOnlyCursorsOfLostChangesAreRefusedAfterReopening(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(l *life)
		kept  string // the last change after it
		same  bool   // the history is unchanged until the next write
	}{
		{name: "clean shutdown", leave: func(l *life) { l.stop(); l.start() }, kept: "7", same: true},
		{name: "closed as idle", leave: func(l *life) { l.closeIdle("x") }, kept: "7", same: true},
		{name: "killed", leave: func(l *life) { l.kill(1) }, kept: "7"},
		{name: "power failure", leave: func(l *life) { l.kill(0) }, kept: "4"},
		{name: "older file restored", leave: func(l *life) {
			l.stop()
			yesterday := l.content("x.fenec")
			l.start()
			l.insert("x", 7, 3)
			l.lost, l.of = l.at()
			l.stop()
			l.write("x.fenec", yesterday)
			l.start()
		}, kept: "7", same: true},
		{name: "older file of a running node restored", leave: func(l *life) {
			yesterday := l.content("x.fenec")
			l.insert("x", 7, 3)
			l.lost, l.of = l.at()
			l.stop()
			l.write("x.fenec", yesterday)
			l.start()
		}, kept: "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &life{t: t, fs: crashfs.New(1)}
			l.start()
			l.fill("x", 3) // changes 1 to 4
			l.want(200, "GET", "/t/x/_changes?since=0", "")
			tenant := l.tenants.Find([]byte("x"))
			if err := tenant.DB.Sync(); err != nil {
				t.Fatal(err)
			}
			l.insert("x", 4, 3)
			_, was := l.at()
			l.lost, l.of = "8", was // a read may have returned it
			if c.kept == "4" {
				l.lost = "7"
			}
			c.leave(l)
			seq, now := l.at()
			if seq != c.kept || (now == was) != c.same {
				t.Errorf("got position %s of %s, want %s; the history before was %s", seq, now, c.kept, was)
			}
			l.wantApart("before a write", l.lost, l.of)
			l.query("x", "put c {n: 8}")
			l.wantApart("after a write", l.lost, l.of)
			for range 4 {
				l.query("x", "put c {n: 8}")
			}
			l.wantApart("after another change has the number", l.lost, l.of)
			l.wantHolds("at the fork", c.kept, was)
			l.wantHolds("before the fork", "2", was)
			_, now = l.at()
			l.wantHolds("before the fork, with the new history", "2", now)
			l.closeIdle("x")
			l.wantHolds("at the fork, after reopening", c.kept, was)
			l.wantHolds("after the fork, after reopening", "9", now)
		})
	}
}

func (l *life) content(name string) []byte {
	l.t.Helper()
	f, err := l.fs.OpenFile("/data/"+name, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		l.t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		l.t.Fatal(err)
	}
	return b
}

func (l *life) write(name string, b []byte) {
	l.t.Helper()
	f, err := l.fs.OpenFile("/data/"+name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		l.t.Fatal(err)
	}
}

// TestAThawForksIfAnotherCopyMayContinue freezes a tenant, installs its image as another, and thaws one of the two.
func TestAThawForksIfAnotherCopyMayContinue(t *testing.T) {
	const named = `{"token": "m1"}`
	for _, c := range []struct {
		name, freeze, install string
		thaw                  string // tenant
		with                  string
		forks                 bool
	}{
		{name: "the tenant itself, frozen without a token", thaw: "x"},
		{name: "the tenant itself, under its token", freeze: named, thaw: "x", with: named},
		{name: "the tenant itself, by force", freeze: named, thaw: "x", forks: true},
		{name: "a restored backup", thaw: "y", forks: true},
		{name: "a restored backup of a freeze with a token", freeze: named, thaw: "y", forks: true},
		{name: "a move's image", freeze: named, install: "?token=m1", thaw: "y", with: named},
		{name: "a move's image, installed without its token", freeze: named, thaw: "y", with: named},
		{name: "a move's image, by force", freeze: named, install: "?token=m1", thaw: "y", forks: true},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", c.name, restarts), func(t *testing.T) {
				l := &life{t: t, fs: crashfs.New(1)}
				l.start()
				l.fill("x", 3)
				_, was := l.at()
				l.wantAdmin(200, "POST", "tenants/x/freeze", c.freeze)
				l.wantAdmin(201, "PUT", "tenants/y/file"+c.install, l.image("x"))
				if restarts {
					l.stop()
					l.start()
				}
				where := func(status int, method, path, body string) (seq, history string) {
					t.Helper()
					h := l.want(status, method, "/t/"+c.thaw+path, body, "Fenec-Read", "replica").header
					return h.Get("Fenec-Seq"), h.Get("Fenec-History")
				}
				if seq, history := where(200, "GET", "/c", ""); seq != "4" || history != was {
					t.Errorf("while held: got position %s of %s, want 4 of %s", seq, history, was)
				}
				l.wantAdmin(200, "POST", "tenants/"+c.thaw+"/thaw", c.with)
				if _, now := where(200, "GET", "/c", ""); (now != was) != c.forks {
					t.Errorf("after the thaw: got history %s, before it %s", now, was)
				}
				l.want(200, "GET", "/t/"+c.thaw+"/c", "", "Fenec-After", "4", "Fenec-History", was)
				wrote := l.want(201, "POST", "/t/"+c.thaw+"/c", `{"n": 4}`).header.Get("Fenec-History")
				// A tenant that was reopened before the thaw writes a new history, unless it is the image of a move.
				if own := c.forks || restarts && c.thaw == "x"; (wrote != was) != own {
					t.Errorf("after a write: got history %s, before the thaw %s", wrote, was)
				}
			})
		}
	}
}
