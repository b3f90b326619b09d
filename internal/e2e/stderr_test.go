package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deaf are the ways to start a process whose stderr is not read.
var deaf = map[string]func(t *testing.T, cmd *exec.Cmd){
	"a stderr whose reader has gone": func(t *testing.T, cmd *exec.Cmd) {
		r, w := pipe(t)
		cmd.Stderr = w
		begin(t, cmd, w)
		r.Close()
	},
	"a stderr that was closed": func(t *testing.T, cmd *exec.Cmd) {
		cmd.Args = append([]string{"bash", "-c", `exec "$0" "$@" 2>&-`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
		begin(t, cmd)
	},
	"every standard stream closed": func(t *testing.T, cmd *exec.Cmd) {
		cmd.Args = append([]string{"bash", "-c", `exec "$0" "$@" <&- >&- 2>&-`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
		begin(t, cmd)
	},
	"a full pipe that is never read": func(t *testing.T, cmd *exec.Cmd) {
		r, w := pipe(t)
		t.Cleanup(func() { r.Close() })
		fill(t, w)
		cmd.Stderr = w
		begin(t, cmd, w)
	},
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // a pipe of this process can wait
	for {
		if _, err := w.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	w.SetWriteDeadline(time.Time{})
}

// begin starts a command, gives up this process's ends of its pipes, and kills it with the test.
func begin(t *testing.T, cmd *exec.Cmd, ends ...*os.File) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range ends {
		f.Close()
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it may have ended already
		cmd.Wait()
	})
}

// terminates sends SIGTERM and checks that the exit code is 0.
func terminates(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Process.Signal(syscall.SIGTERM)
	if err := ended(cmd); err != nil {
		t.Errorf("after SIGTERM it ended with %v, want exit code 0", err)
	}
}

// answers waits until a server responds.
func answers(t *testing.T, url string) {
	t.Helper()
	eventually(t, url+" responds", func() bool {
		a, err := request("GET", url+"/_health", "")
		return err == nil && a.status == 200
	})
}

// unread is more log lines than are queued for a reader. Each admin request logs one.
const unread = 4000

func TestANodeOutlivesTheReaderOfItsLog(t *testing.T) {
	for how, run := range deaf {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir, addr := t.TempDir(), freePort(t)
			cmd := exec.Command(binary(t), "node", "--dir", dir, "--http", addr, "--admin-token", adminToken)
			run(t, cmd)
			node := "http://" + addr
			answers(t, node)
			must(t, 201, "PUT", node+"/_admin/tenants/acme", "")
			for range 20 {
				must(t, 200, "POST", node+"/_admin/tenants/acme/freeze", "") // logged
				must(t, 200, "POST", node+"/_admin/tenants/acme/thaw", "")
			}
			query(t, node+"/t/acme", "create collection writes (n int)")
			query(t, node+"/t/acme", "put writes {n: 1}")
			terminates(t, cmd)
			// Descriptor 2 was no file of a tenant's: nothing was written into it.
			if code, said := fails(t, "check", filepath.Join(dir, "acme.fenec")); code != 0 {
				t.Errorf("fenec check ends with %d: %s", code, said)
			}
		})
	}
}

func TestARouterOutlivesTheReaderOfItsLog(t *testing.T) {
	for how, run := range deaf {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			addr := freePort(t)
			cmd := exec.Command(binary(t), "shard", "--listen", addr, "--directory", filepath.Join(t.TempDir(), "shard.fenec"))
			run(t, cmd)
			router := "http://" + addr
			answers(t, router)
			node := startNode(t, t.TempDir())
			for i := range 20 {
				body := fmt.Sprintf(`{"addr": %q, "token": %q}`, node.addr, adminToken)
				if a, err := request("PUT", router+"/_shard/nodes/n1", body); err != nil || a.status/100 != 2 {
					t.Fatalf("recording a node: %v %d %s", err, a.status, a.body)
				}
				name := fmt.Sprintf("/_shard/tenants/t%d", i)
				must(t, 201, "PUT", router+name, "{}")
				must(t, 204, "DELETE", router+name, "")
			}
			terminates(t, cmd)
			node.stop()
		})
	}
}

func TestUpOutlivesTheReaderOfItsLog(t *testing.T) {
	for how, run := range deaf {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			addr := freePort(t)
			cmd := exec.Command(binary(t), "up", "--listen", addr)
			cmd.Dir = t.TempDir()
			run(t, cmd)
			router := "http://" + addr
			answers(t, router)
			eventually(t, "the demo tenant is there", func() bool {
				a, err := request("GET", router+"/t/demo/notes", "")
				return err == nil && a.status == 200
			})
			// A tenant that cannot be opened is an error in the log of up, which has no other lines.
			for i := range 20 {
				name := fmt.Sprintf("bad%d", i)
				for _, node := range upNodes {
					if err := os.WriteFile(filepath.Join(cmd.Dir, upData, node, name+".fenec"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				t.Fatal(err)
			}
			first, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				must(t, 500, "GET", fmt.Sprintf("http://%s:%d/t/bad%d/notes", host, first+1, i), "")
			}
			terminates(t, cmd)
		})
	}
}

// TestUpOutlivesTheReaderOfItsGreeting: what it prints is for a person, and it serves without one.
func TestUpOutlivesTheReaderOfItsGreeting(t *testing.T) {
	t.Parallel()
	addr := freePort(t)
	cmd := exec.Command(binary(t), "up", "--listen", addr)
	cmd.Dir = t.TempDir()
	r, w := pipe(t)
	cmd.Stdout = w
	r.Close()
	begin(t, cmd, w)
	answers(t, "http://"+addr)
	eventually(t, "the demo tenant is there", func() bool {
		a, err := request("GET", "http://"+addr+"/t/demo/notes", "")
		return err == nil && a.status == 200
	})
	terminates(t, cmd)
}

// TestACommandThatFailsEndsWithItsCode, whether or not somebody reads why.
func TestACommandThatFailsEndsWithItsCode(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"standby", "--of", "n1"}, exitUsage},
		{[]string{"check", "no-such-file.fenec"}, exitFailed},
		{[]string{"node"}, exitUsage},
	} {
		for how, run := range deaf {
			t.Run(c.args[0]+" with "+how, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(binary(t), c.args...)
				cmd.Dir = t.TempDir()
				run(t, cmd)
				timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
				defer timer.Stop()
				cmd.Wait() // the code is what counts
				if code := cmd.ProcessState.ExitCode(); code != c.code {
					t.Errorf("it ends with %s, want exit code %d", cmd.ProcessState, c.code)
				}
			})
		}
	}
}

// TestAnImportOutlivesTheReaderOfItsBadLines checks that bad lines are skipped although the reader of stderr is gone.
func TestAnImportOutlivesTheReaderOfItsBadLines(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	tenant := makeTenant(t, node, "acme")
	lines := strings.Repeat("bad\n{\"n\": 1}\n", 50)
	file := writeFile(t, filepath.Join(t.TempDir(), "n.ndjson"), lines)
	cmd := exec.Command(binary(t), "import", file, "--url", tenant, "--collection", "writes", "--batch", "2")
	r, w := pipe(t)
	cmd.Stderr = w
	r.Close()
	begin(t, cmd, w)
	if err := ended(cmd); err != nil {
		t.Errorf("the import ends with %v", err)
	}
	if n := len(numbers(t, tenant)); n != 1 || numbers(t, tenant)[1] != 50 {
		t.Errorf("got %v, want 50 times 1", numbers(t, tenant))
	}
	node.stop()
}

// TestTheLogSaysHowManyLinesWereLost to a reader that comes back, and the metrics say it at any time.
func TestTheLogSaysHowManyLinesWereLost(t *testing.T) {
	t.Parallel()
	addr := freePort(t)
	cmd := exec.Command(binary(t), "node", "--dir", t.TempDir(), "--http", addr, "--admin-token", adminToken)
	r, w := pipe(t)
	defer r.Close()
	cmd.Stderr = w
	begin(t, cmd, w)
	node := "http://" + addr
	answers(t, node)
	must(t, 201, "PUT", node+"/_admin/tenants/acme", "")
	for range unread {
		must(t, 200, "POST", node+"/_admin/tenants/acme/thaw", "")
	}
	metrics := must(t, 200, "GET", node+"/_metrics", "")
	lost := ""
	for line := range strings.Lines(metrics) {
		if n, ok := strings.CutPrefix(line, "fenec_log_lines_lost_total "); ok {
			lost = strings.TrimSpace(n)
		}
	}
	if lost == "" || lost == "0" {
		t.Fatalf("after %d unread lines fenec_log_lines_lost_total is %q", unread, lost)
	}
	reported := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(r)
		found := false
		for lines.Scan() {
			if !found && strings.Contains(lines.Text(), `"lines":`+lost) {
				found = true
				reported <- true
			}
		}
		if !found {
			reported <- false
		}
	}()
	select {
	case found := <-reported:
		if !found {
			t.Errorf("the log does not say that %s lines were lost", lost)
		}
	case <-time.After(patience):
		t.Errorf("the log does not say within %s that %s lines were lost", patience, lost)
	}
	terminates(t, cmd)
}

// TestStderrHasTheLogAlone, a JSON object a line, until the runtime reports a crash there.
func TestStderrHasTheLogAlone(t *testing.T) {
	for _, role := range []string{"node", "shard"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			args := []string{"node", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--admin-token", adminToken}
			if role == "shard" {
				args = []string{"shard", "--listen", "127.0.0.1:0", "--directory", filepath.Join(t.TempDir(), "shard.fenec")}
			}
			p := start(t, args...)
			for range 100 {
				must(t, 200, "GET", p.url()+"/_health", "")
			}
			p.cmd.Process.Signal(syscall.SIGQUIT) // the runtime prints why it ends and its goroutines
			receive(t, "it ends", p.exited)
			log, crash, crashed := strings.Cut(p.output(), "SIGQUIT: quit\n")
			for line := range strings.Lines(log) {
				if !json.Valid([]byte(line)) {
					t.Errorf("stderr has %q", line)
				}
			}
			if !crashed || !strings.Contains(crash, "\ngoroutine 1 ") || strings.Contains(crash, "SCHED") {
				t.Errorf("the crash is reported as\n%s", p.output())
			}
		})
	}
}
