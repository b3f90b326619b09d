package wal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"
)

const file = "/data/x.fenec"

// A database of the tests is a list of words. A block is one word; an image is the words before it.

func imageOf(words []string) []byte { return room(strings.Join(words, " ")) }

// words opens the file and returns the list it holds.
func words(fs vfs.FS, o Options) ([]string, error) {
	o.FS = fs
	var list []string
	l, err := Open(file, o, func(k Kind, data []byte, from, to int) error {
		payload := string(data[from:to])
		if k == Image {
			list = append(list, strings.Fields(payload)...)
		} else {
			list = append(list, payload)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, l.Close()
}

// history is what a run did: what it staged, in order, and how much of that was acknowledged.
type history struct {
	created  bool
	staged   []string
	answered int
	failed   []Ticket // what Options.Failed was called with
}

// run writes groups of words of various sizes, a rewrite among them, until something fails or it is done.
func run(fs *crashfs.FS, policy Policy) (h history, err error) {
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		return h, err
	}
	o := Options{FS: fs, Sync: policy, Failed: func(first Ticket, _ error) { h.failed = append(h.failed, first) }}
	l, err := Create(file, o, Record{Image, imageOf(nil)})
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	h.created = true
	write := func(group int) error {
		var last Ticket
		for range group {
			word := fmt.Sprintf("%d-%s", len(h.staged), strings.Repeat("x", len(h.staged)*37%200))
			last = l.Stage(Block, room(word))
			h.staged = append(h.staged, word)
		}
		if err := l.Commit(last); err != nil {
			return err
		}
		h.answered = len(h.staged)
		return nil
	}
	for _, group := range []int{1, 3, 2} {
		if err := write(group); err != nil {
			return h, err
		}
	}
	r, err := l.Rewrite()
	if err != nil {
		return h, err
	}
	defer r.Abort()
	if err := r.Append(Image, imageOf(h.staged)); err != nil {
		return h, err
	}
	if err := r.Sync(); err != nil {
		return h, err
	}
	before := len(h.staged)
	if err := write(2); err != nil {
		return h, err
	}
	h.staged = append(h.staged, "late") // staged, and never in the old file
	l.Stage(Block, room("late"))
	for _, word := range h.staged[before:] {
		if err := r.Append(Block, room(word)); err != nil {
			return h, err
		}
	}
	if err := r.Commit(); err != nil {
		return h, err
	}
	h.answered = len(h.staged)
	for _, group := range []int{1, 4} {
		if err := write(group); err != nil {
			return h, err
		}
	}
	return h, nil
}

// holds fails unless list is a prefix of what was staged that has at least everything acknowledged.
func (h history) holds(list []string) error {
	if len(list) < h.answered || len(list) > len(h.staged) || !slices.Equal(list, h.staged[:len(list)]) {
		return fmt.Errorf("found %q, of %q staged with %d acknowledged", list, h.staged, h.answered)
	}
	return nil
}

func operationsOfARun(t *testing.T, policy Policy) int {
	fs := crashfs.New(1)
	if _, err := run(fs, policy); err != nil {
		t.Fatal(err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are left open", n)
	}
	return fs.Ops()
}

func TestPowerLossAtEveryOperationKeepsWhatWasAcknowledged(t *testing.T) {
	always := Policy{Always: true}
	ops := operationsOfARun(t, always)
	for k := 1; k <= ops+1; k++ {
		for seed := range uint64(40) {
			fs := crashfs.New(seed)
			fs.PowerOffAt(k)
			h, err := run(fs, always)
			if (err == nil) != (k >= ops) { // the last operation writes the mark, which may be missing
				t.Fatalf("operation %d of %d: run returned %v", k, ops, err)
			}
			after := fs.Crash()
			list, err := words(after, Options{Sync: always})
			if !h.created && errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = h.holds(list)
			}
			if err != nil {
				t.Fatalf("power off at operation %d, seed %d: %v", k, seed, err)
			}
			names, err := after.ReadDir("/data")
			if err != nil || len(names) != 1 {
				t.Fatalf("power off at operation %d, seed %d: files %q are left, %v", k, seed, names, err)
			}
			if again, err := words(after.Crash(), Options{}); err != nil || !slices.Equal(again, list) {
				t.Fatalf("power off at operation %d, seed %d: a second crash found %q, %v after %q", k, seed, again, err, list)
			}
		}
	}
}

func TestPowerLossWithoutSyncKeepsABlockWholeOrNotAtAll(t *testing.T) {
	ops := operationsOfARun(t, Policy{})
	for k := 1; k <= ops+1; k++ {
		for seed := range uint64(40) {
			fs := crashfs.New(seed)
			fs.PowerOffAt(k)
			h, _ := run(fs, Policy{})
			list, err := words(fs.Crash(), Options{})
			if !h.created && errors.Is(err, os.ErrNotExist) {
				continue
			}
			h.answered = 0
			if err == nil {
				err = h.holds(list)
			}
			if err != nil {
				t.Fatalf("power off at operation %d, seed %d: %v", k, seed, err)
			}
		}
	}
}

func TestOneFailedOperationLosesNothingAcknowledged(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, policy := range []Policy{{Always: true}, {}} {
			ops := operationsOfARun(t, policy)
			for k := 1; k <= ops; k++ {
				for seed := range uint64(10) {
					oneFailure(t, fmt.Sprintf("%v, sync %v, operation %d, seed %d", cause, policy, k, seed), cause, policy, k, seed)
				}
			}
		}
	}
}

func oneFailure(t *testing.T, name string, cause error, policy Policy, k int, seed uint64) {
	fs := crashfs.New(seed)
	fs.FailAt(k, cause)
	h, err := run(fs, policy)
	if err != nil {
		want := fail.Storage
		if cause == syscall.ENOSPC {
			want = fail.Full
		}
		if !errors.Is(err, cause) || fail.KindOf(err) != want {
			t.Fatalf("%s: the run returned %v", name, err)
		}
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%s: %d files are left open", name, n)
	}
	fs.Heal()
	if !h.created {
		if _, err := words(fs, Options{}); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: a file that could not be created returns %v", name, err)
		}
		return
	}
	list, err := words(fs, Options{})
	if err == nil {
		err = h.holds(list)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(h.failed) > 1 {
		t.Fatalf("%s: Failed was called %d times", name, len(h.failed))
	}
	for _, first := range h.failed {
		if int(first) <= h.answered || int(first) > len(h.staged)+1 {
			t.Fatalf("%s: Failed was called with ticket %d, and %d are acknowledged", name, first, h.answered)
		}
	}
	if !policy.Always {
		return
	}
	list, err = words(fs.Crash(), Options{})
	if err == nil {
		err = h.holds(list)
	}
	if err != nil {
		t.Fatalf("%s, then a crash: %v", name, err)
	}
}

func TestManyWritersLoseNothingAcknowledgedToPowerLoss(t *testing.T) {
	for k := 4; k < 120; k++ {
		fs := crashfs.New(uint64(k))
		fs.PowerOffAt(k)
		o := Options{FS: fs, Sync: Policy{Always: true}}
		if err := fs.MkdirAll("/data", 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := Create(file, o)
		if err != nil {
			continue
		}
		var (
			order    sync.Mutex // the engine's lock: what is staged under it is in the order of the tickets
			h        history
			answered Ticket
			writers  sync.WaitGroup
		)
		for w := range 8 {
			writers.Go(func() {
				for i := range 20 {
					word := fmt.Sprintf("%d/%d", w, i)
					order.Lock()
					ticket := l.Stage(Block, room(word))
					h.staged = append(h.staged, word)
					order.Unlock()
					if l.Commit(ticket) != nil {
						return
					}
					order.Lock()
					answered = max(answered, ticket)
					order.Unlock()
				}
			})
		}
		writers.Wait()
		h.answered = int(answered)
		_ = l.Close()
		list, err := words(fs.Crash(), o)
		if err == nil {
			err = h.holds(list)
		}
		if err != nil {
			t.Fatalf("power off at operation %d: %v", k, err)
		}
	}
}
