package tenants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/simnet"
	"fenec/internal/vfs/crashfs"
)

// wire connects Sets in memory by their names.
type wire struct {
	network *simnet.Network
	sets    map[string]*Set
}

// end is the Connector of one Set.
type end struct {
	*wire
	host *simnet.Host
}

func (e end) Connect(ctx context.Context, addr string) (net.Conn, error) {
	return e.host.Dial(ctx, "tcp", addr+":80")
}

func (e end) Image(_ context.Context, addr, tenant string) (io.ReadCloser, int64, error) {
	image, err := e.sets[addr].OpenImage(tenant)
	if err != nil {
		return nil, 0, err
	}
	return image, image.Size, nil
}

// open opens a Set over /data of a file system and serves it under a name until the returned function is called.
func (w *wire) open(name string, fs *crashfs.FS) (s *Set, stop func(), err error) {
	c := over(fs)
	host := w.network.Host(name)
	c.Connector = end{w, host}
	if s, err = Open(c); err != nil {
		return nil, nil, err
	}
	w.sets[name] = s
	l, err := host.Listen(80)
	if err != nil {
		return nil, nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = s.Serve(conn) })
		}
	})
	return s, func() {
		l.Close()
		_ = s.Close() // fails if its disk has failed
		serving.Wait()
	}, nil
}

// exec runs a statement in a tenant and returns its result.
func exec(s *Set, name, text string) (string, error) {
	t, err := s.Acquire(name)
	if err != nil {
		return "", err
	}
	defer s.Release(t)
	res, err := t.DB.Exec(context.Background(), engine.Everything(), engine.Statement{Text: text}, nil)
	return string(res.Body), err
}

// reaches waits, in virtual time, until a copy holds the rows, is connected to its primary and can be read.
func reaches(s *Set, name, rows string) error {
	for range 3000 {
		got, err := exec(s, name, "get c select n order n")
		p, lost := s.Position(name)
		if err == nil && lost == nil && got == rows && p.Status.Connected && s.CheckReadable(s.registry.get(name)) == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the copy does not reach its primary")
}

// role is the last step of a copy that was acknowledged before the power loss.
type role int

const (
	alone role = iota
	followed
	caughtUp
	promoted
	wrote
	demoted
	replaced
)

// play makes two follow the tenant of one, promotes the copy and writes to it. Then it writes to one, and makes two follow it
// again by force. It returns the last step that succeeded.
func play(two, one *Set) (done role) {
	steps := []func() error{
		followed: func() error {
			_, _, err := two.Follow("t", FollowRequest{From: "one"}, Condition{})
			return err
		},
		caughtUp: func() error { return reaches(two, "t", `[{"n":1}]`) },
		promoted: func() error { _, err := two.Promote("t", false, Condition{}); return err },
		wrote:    func() error { _, err := exec(two, "t", "put c {n: 2}"); return err },
		demoted: func() error {
			if _, err := exec(one, "t", "put c {n: 3}"); err != nil {
				return err
			}
			_, _, err := two.Follow("t", FollowRequest{From: "one", Force: true}, Condition{})
			return err
		},
		replaced: func() error { return reaches(two, "t", `[{"n":1},{"n":3}]`) },
	}
	for at := followed; at <= replaced; at++ {
		if err := steps[at](); err != nil {
			return at - 1
		}
	}
	return replaced
}

// If the power of a copy's node is lost at any operation, its acknowledged role holds, and acknowledged writes are in the copy
// or kept beside it.
func TestARoleSurvivesPowerLossAtAnyOperation(t *testing.T) {
	last := alone
	for k := 1; last < replaced; k++ {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{network: simnet.New(), sets: map[string]*Set{}}
			one, stopOne, err := w.open("one", withData(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			defer stopOne()
			for _, err := range []error{one.create("t", Condition{}), second(exec(one, "t", "create collection c (n int)")), second(exec(one, "t", "put c {n: 1}"))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			fs := withData(t, uint64(k))
			fs.PowerOffAt(fs.Ops() + k)
			two, stopTwo, err := w.open("two", fs)
			last = alone
			if err == nil {
				last = play(two, one)
				stopTwo()
			}
			after := setOn(t, fs.Crash())
			checkRole(t, fmt.Sprintf("power lost at operation %d", k), last, after)
		})
	}
}

// withData returns a file system with the directory /data.
func withData(t *testing.T, seed uint64) *crashfs.FS {
	t.Helper()
	fs := crashfs.New(seed)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	return fs
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

// checkRole checks a copy after a restart without a primary.
func checkRole(t *testing.T, when string, done role, s *Set) {
	t.Helper()
	rows, err := exec(s, "t", "get c select n order n")
	var absent *Absent
	if errors.As(err, &absent) {
		if done >= followed {
			t.Errorf("%s after step %d: the copy is absent", when, done)
		}
		return
	}
	if err != nil {
		rows = err.Error()
	}
	_, write := exec(s, "t", "create collection probe (n int)")
	follows := fail.KindOf(write) == fail.Follows
	kept := ""
	branches, err := s.Forked("t")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range branches {
		r, _, err := s.OpenForked("t", b.History)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		kept += string(text)
		r.Close()
	}
	check := func(holds bool, what string) {
		if !holds {
			t.Errorf("%s after step %d: %s: rows %s, follows %v (%v), kept %q", when, done, what, rows, follows, write, kept)
		}
	}
	check(write == nil || follows, "the copy accepts no writes and does not follow")
	check(done < followed || done >= promoted || follows || done == caughtUp, "a copy accepts writes after an acknowledged follow")
	check(done != promoted && done != wrote || !follows || done == wrote, "a promoted copy follows")
	check(done < demoted || follows, "a copy accepts writes after an acknowledged second follow")
	check(done < caughtUp || strings.Contains(rows, `{"n":1}`), "rows of the copy are lost")
	check(done < wrote || strings.Contains(rows, `{"n":2}`) || strings.Contains(kept, `"n":2}`), "an acknowledged write is neither in the copy nor kept")
	check(done < replaced || rows == `[{"n":1},{"n":3}]`, "the copy does not hold the rows of the image")
}
