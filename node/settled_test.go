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

// TestAChangeIsSentOnlyOnceItIsDurable blocks a write in the disk call that its policy waits for. Plain reads see the write.
// Live queries and reads that wait for its change see it only after the disk call, and never if the call fails.
func TestAChangeIsSentOnlyOnceItIsDurable(t *testing.T) {
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
			inBubble(t, Config{FS: fs, Sync: c.policy}, func(r *running) { checkBlocked(r, fs, c.op, c.fails) })
		})
	}
}

// checkBlocked blocks a write in the disk operation op, which then returns fails, and checks what each client gets before and
// after.
func checkBlocked(r *running, fs *crashfs.FS, op crashfs.Op, fails error) {
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
	var got []string // the responses and events of each client in their order
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
		t.Errorf("got %s for a read before the disk call returned, expected 2 documents", seen)
	}
	if len(write)+len(after)+len(unnamed)+len(late)+len(events) > 0 {
		t.Errorf("before the disk call returned: got responses to %d writes and %d reads, %d streams and %d events, expected none",
			len(write), len(after)+len(unnamed), len(late), len(events))
	}
	if fails == nil {
		// A second write lands meanwhile and is blocked next. The event of both waits for it.
		second := make(chan reply, 1)
		go send(second, "POST", "/t/x/c", `{"n": 3, "s": "s3"}`)
		synctest.Wait()
		release <- nil
		synctest.Wait()
		if len(events) > 0 || len(second) > 0 || len(write) != 1 {
			t.Errorf("before the second disk call returned: got %d events and %d and %d responses to the writes, expected 0, 1 and 0", len(events), len(write), len(second))
		}
		release <- nil
		synctest.Wait()
		got = append(got, strconv.Itoa((<-write).status), strconv.Itoa((<-second).status), (<-after).body, (<-unnamed).body, <-late, <-events)
		want := []string{
			"201", "201", `{"count":3}`, `{"count":3}`, `3 seed 3 [{"id":1,"n":1,"s":"s1"} {"id":2,"n":2,"s":"s2"}]`,
			`change 4 [{"id":2,"n":2,"s":"s2"} {"id":3,"n":3,"s":"s3"}] [] false`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after the disk calls: got\n%q, expected\n%q", got, want)
		}
		fs.Hook(nil)
		w.stop()
		return
	}
	release <- fails
	synctest.Wait()
	fs.Hook(nil)
	if len(after) != 1 || len(unnamed) != 0 {
		t.Errorf("got %d and %d responses at once to the reads that wait for a failed write, expected 1 and 0", len(after), len(unnamed))
	}
	got = append(got, strconv.Itoa((<-write).status), strconv.Itoa((<-after).status), <-late)
	if want := []string{"500", "504", `2 seed 2 [{"id":1,"n":1,"s":"s1"}]`}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after the failure: got\n%q, expected\n%q", got, want)
	}
	if a := <-unnamed; a.status != 504 { // when its wait ends
		t.Errorf("got %v for the read that waits for a number, expected 504", a)
	}
	if len(events) > 0 && <-events != " " { // a heartbeat
		t.Error("a live query got an event of a failed write, expected none")
	}
	if seen := r.count("x"); seen != `{"count":1}` {
		t.Errorf("got %s after the failure, expected 1 document", seen)
	}
	w.stop()
	r.wantAdmin(204, "DELETE", "tenants/x", "") // otherwise the shutdown reports its failed disk
}
