package node

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"

	"fenec/engine/wal"
	"fenec/internal/vfs/crashfs"
)

// TestWhatIsToldByItsNumberIsAsDurableAsItsAnswer holds a write in the disk, at the call its policy waits for. Reads see
// it; live queries, new ones too, and reads that wait for its change do not until the disk is done, and never where it
// fails.
func TestWhatIsToldByItsNumberIsAsDurableAsItsAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy wal.Policy
		op     crashfs.Op
		fails  error
	}{
		{"written under off", wal.Policy{}, crashfs.Write, nil},
		{"synced under always", wal.Policy{Always: true}, crashfs.Sync, nil},
		{"not written under off", wal.Policy{}, crashfs.Write, syscall.EIO},
		{"not synced under always", wal.Policy{Always: true}, crashfs.Sync, syscall.EIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := crashfs.New(1)
			inBubble(t, Config{FS: fs, Sync: c.policy}, func(r *running) { heldInTheDisk(r, fs, c.op, c.fails) })
		})
	}
}

func heldInTheDisk(r *running, fs *crashfs.FS, op crashfs.Op, fails error) {
	t := r.t
	r.fill("x", 1)
	history := r.want(200, "GET", "/t/x/c", "", "Fenec-Read", "replica").header.Get("Fenec-History")
	w := r.watch("/t/x/c/changes")
	w.expect(`seed 2 [{"id":1,"n":1,"s":"s1"}]`)

	release := make(chan error)
	fs.Hook(func(o crashfs.Op, _ string) error {
		if o == op {
			return <-release
		}
		return nil
	})
	var got []string // in the order they come, of each client apart
	write, after, unnamed, late := make(chan reply, 1), make(chan reply, 1), make(chan reply, 1), make(chan string, 1)
	events := make(chan string, 1)
	send := func(to chan<- reply, method, path, body string, headers ...string) {
		got, err := r.send(method, path, body, headers...)
		if err != nil {
			t.Error(err)
		}
		to <- got
	}
	go send(write, "POST", "/t/x/c", `{"n": 2, "s": "s2"}`)
	synctest.Wait()
	go send(after, "GET", "/t/x/c?count", "", "Fenec-After", "3", "Fenec-History", history)
	go send(unnamed, "GET", "/t/x/c?count", "", "Fenec-After", "3")
	go func() {
		if e, err := w.read(); err == nil {
			events <- e.String()
		}
	}()
	go func() {
		one, status, err := r.tryWatch("/t/x/c/changes")
		if err != nil {
			late <- fmt.Sprint(status, err)
			return
		}
		defer one.stop()
		late <- one.header.Get("Fenec-Seq") + " " + one.next().String()
	}()
	synctest.Wait()
	if seen := r.count("x"); seen != `{"count":2}` {
		t.Errorf("a read does not see what has landed: %s", seen)
	}
	if len(write)+len(after)+len(unnamed)+len(late)+len(events) > 0 {
		t.Errorf("before the disk is done: %d writes, %d reads, %d streams and %d events are answered",
			len(write), len(after)+len(unnamed), len(late), len(events))
	}
	if fails == nil {
		// Another lands meanwhile and is held in its turn: an event of both waits for it.
		second := make(chan reply, 1)
		go send(second, "POST", "/t/x/c", `{"n": 3, "s": "s3"}`)
		synctest.Wait()
		release <- nil
		synctest.Wait()
		if len(events) > 0 || len(second) > 0 || len(write) != 1 {
			t.Errorf("before the disk is done with the second: %d events, %d and %d writes are answered", len(events), len(write), len(second))
		}
		release <- nil
		synctest.Wait()
		got = append(got, strconv.Itoa((<-write).status), strconv.Itoa((<-second).status), (<-after).body, (<-unnamed).body, <-late, <-events)
		want := []string{
			"201", "201", `{"count":3}`, `{"count":3}`, `3 seed 3 [{"id":1,"n":1,"s":"s1"} {"id":2,"n":2,"s":"s2"}]`,
			`change 4 [{"id":2,"n":2,"s":"s2"} {"id":3,"n":3,"s":"s3"}] [] false`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("once it is done came\n%q, want\n%q", got, want)
		}
		fs.Hook(nil)
		w.stop()
		return
	}
	release <- fails
	synctest.Wait()
	fs.Hook(nil)
	if len(after) != 1 || len(unnamed) != 0 {
		t.Errorf("of the reads that wait for what could not be written, %d and %d are answered at once", len(after), len(unnamed))
	}
	got = append(got, strconv.Itoa((<-write).status), strconv.Itoa((<-after).status), <-late)
	if want := []string{"500", "504", `2 seed 2 [{"id":1,"n":1,"s":"s1"}]`}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("once it has failed came\n%q, want\n%q", got, want)
	}
	if a := <-unnamed; a.status != 504 { // as its wait is over
		t.Errorf("the read that waits for a number is answered %v", a)
	}
	if len(events) > 0 && <-events != " " { // a heartbeat
		t.Error("a live query was sent changes that could not be written")
	}
	if seen := r.count("x"); seen != `{"count":1}` {
		t.Errorf("after the failure there is %s", seen)
	}
	w.stop()
	r.wantAdmin(204, "DELETE", "tenants/x", "") // which a shutdown would close with an error
}
