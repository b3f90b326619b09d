package e2e

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// upData is where fenec up keeps what it has.
const upData = "fenec-data"

var upNodes = []string{"n1", "n2"}

// upProcess is a running fenec up and what it printed.
type upProcess struct {
	cmd     *exec.Cmd
	printed string
	stderr  *bytes.Buffer
}

// startUp runs fenec up in a directory and waits for its last line.
func startUp(t *testing.T, dir string, listen string, flags ...string) *upProcess {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"up", "--listen", listen}, flags...)...)
	cmd.Dir = dir
	up := &upProcess{cmd: cmd, stderr: new(bytes.Buffer)}
	cmd.Stderr = up.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		up.printed += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			return up
		}
	}
	cmd.Wait()
	t.Fatalf("fenec up ended or hung: %s%s", up.printed, up.stderr)
	return nil
}

func (up *upProcess) stop(t *testing.T) {
	t.Helper()
	up.cmd.Process.Signal(syscall.SIGTERM)
	if err := ended(up.cmd); err != nil {
		t.Errorf("fenec up ended with %v: %s", err, up.stderr)
	}
	if strings.Contains(up.stderr.String(), "DATA RACE") {
		t.Errorf("a data race: %s", up.stderr)
	}
}

// router is the router's URL as printed.
func (up *upProcess) router(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(up.printed) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "router" {
			return f[1]
		}
	}
	t.Fatalf("no router in %q", up.printed)
	return ""
}

func TestUpPrintsThreeCurlLinesThatWorkOnEveryStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for start := range 3 {
		up := startUp(t, dir, "127.0.0.1:0")
		var ran []string
		for line := range strings.Lines(up.printed) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "curl ") {
				continue
			}
			// With --fail-with-body curl fails on an error status; the line is as printed.
			shell := exec.Command("bash", "-c", "curl() { command curl -sS --fail-with-body \"$@\"; }\n"+line)
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Errorf("start %d: %s: %v %s", start, line, err, out)
			}
			ran = append(ran, string(out))
		}
		if len(ran) != 3 {
			t.Fatalf("start %d: %d curl lines in %q, want 3", start, len(ran), up.printed)
		}
		if !strings.Contains(ran[0], "the first note") || !strings.Contains(ran[2], "from the shell") {
			t.Errorf("start %d: the lines print %q", start, ran)
		}
		if start > 0 && !strings.Contains(ran[0], "from the shell") {
			t.Errorf("start %d: data of an earlier start is missing: %q", start, ran[0])
		}
		if start == 1 { // once without a goodbye
			up.cmd.Process.Kill()
			up.cmd.Wait()
		} else {
			up.stop(t)
		}
	}
}

// TestTheNodesOfUpCompactFiles deletes most of a tenant through the router of one that does not compact. The next one does as
// soon as it opens the tenant.
func TestTheNodesOfUpCompactFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := func() (n int64) {
		files, err := filepath.Glob(filepath.Join(dir, upData, "n?", "demo.fenec"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the files of the tenant demo are %v, %v", files, err)
		}
		if info, err := os.Stat(files[0]); err == nil {
			n = info.Size()
		}
		return n
	}
	up := startUp(t, dir, "127.0.0.1:0", "--compact-at", "0")
	tenant := up.router(t) + "/t/demo"
	query(t, tenant, "create collection c (s text)")
	body := `{"s": "` + strings.Repeat("x", 1<<20) + `"}`
	for range 24 {
		must(t, 201, "POST", tenant+"/c", body)
	}
	query(t, tenant, "del c where id > 1")
	up.stop(t)
	if n := size(); n < 24<<20 {
		t.Fatalf("the file has %d bytes: it was compacted with --compact-at 0", n)
	}
	up = startUp(t, dir, "127.0.0.1:0")
	if got := query(t, up.router(t)+"/t/demo", "get c count"); !strings.Contains(got, `"count":1`) {
		t.Errorf("got %s, want one document", got)
	}
	eventually(t, "the file is compacted", func() bool { return size() < 4<<20 })
	up.stop(t)
}

func TestUpTwiceInOneDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	up := startUp(t, dir, "127.0.0.1:0")
	second := exec.Command(binary(t), "up", "--listen", "127.0.0.1:0")
	second.Dir = dir
	out, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != exitFailed || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("a second fenec up: %v %q, want exit code 1 and a sentence", err, out)
	}
	info, err := os.Stat(filepath.Join(dir, upData, "n1.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v %v, want mode 0600", info, err)
	}
	up.stop(t)
}
