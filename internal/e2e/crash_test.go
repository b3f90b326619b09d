package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestEveryAnsweredWriteIsThereAfterSIGKILL(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"250", "always"} {
		t.Run("sync "+sync, func(t *testing.T) {
			dir := t.TempDir()
			node := startNode(t, dir, "--sync", sync)
			tenant := makeTenant(t, node, "acme")
			w := startWriters(4, func() string { return tenant })
			w.more(t, 200)
			node.kill()
			w.stop()
			node = startNode(t, dir, "--sync", sync)
			tenant = node.url() + "/t/acme"
			w.check(t, tenant)

			// And again, onto a file that was replayed.
			w.start(4, func() string { return tenant })
			w.more(t, 100)
			node.kill()
			w.stop()
			node = startNode(t, dir, "--sync", sync)
			w.check(t, node.url()+"/t/acme")
			node.stop()
		})
	}
}

func TestSIGTERMLosesNothingAndEndsWithZero(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, dir, "--sync", "off")
	tenant := makeTenant(t, node, "acme")
	w := startWriters(4, func() string { return tenant })
	w.more(t, 100)
	node.stop()
	w.stop()
	if w.errors["500"] > 0 {
		t.Errorf("writes were answered 500 in the drain: %v", w.errors)
	}
	node = startNode(t, dir)
	w.check(t, node.url()+"/t/acme")
	node.stop()
}

// halfSent opens a connection and sends a write of which the last byte is kept
// back.
func halfSent(t *testing.T, node *process, tenant string) (conn net.Conn, last string) {
	t.Helper()
	conn, err := net.Dial("tcp", node.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	body := `{"n": 1}`
	path := strings.TrimPrefix(tenant, node.url()) + "/writes"
	// The answer to a request before it tells that the node has read this far.
	_, err = fmt.Fprintf(conn, "GET /_health HTTP/1.1\r\nHost: x\r\n\r\nPOST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		path, len(body))
	if err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(conn)
	for _, want := range []int{200, 100} {
		response, err := http.ReadResponse(read, nil)
		if err != nil || response.StatusCode != want {
			t.Fatalf("answered %v, %v, want %d", response, err, want)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	if _, err := io.WriteString(conn, body[:len(body)-1]); err != nil {
		t.Fatal(err)
	}
	return conn, body[len(body)-1:]
}

func TestARequestInFlightIsFinishedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, dir, "--drain", "1m")
	conn, last := halfSent(t, node, makeTenant(t, node, "acme"))
	node.cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, "the drain has begun", func() bool { return strings.Contains(node.output(), "draining") })
	if _, err := io.WriteString(conn, last); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 201 {
		t.Errorf("the request in flight was answered %v, %v", response, err)
	}
	receive(t, "the node ends", node.exited)
	if code := node.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, node.output())
	}
	node = startNode(t, dir)
	if got := numbers(t, node.url()+"/t/acme"); got[1] != 1 {
		t.Errorf("holds %v, want what was answered in the drain", got)
	}
	node.stop()
}

func TestTheDrainHasAnEnd(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir(), "--drain", "200ms")
	halfSent(t, node, makeTenant(t, node, "acme"))
	node.stop() // wants exit code 0
	if !strings.Contains(node.output(), "cut off") {
		t.Errorf("the log does not tell that a request was cut off: %s", node.output())
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir(), "--drain", "1h")
	tenant := makeTenant(t, node, "acme")
	halfSent(t, node, tenant) // holds the drain up
	node.cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, "the drain has begun", func() bool { return strings.Contains(node.output(), "draining") })
	node.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-node.exited:
	case <-time.After(patience):
		t.Fatalf("still there after a second SIGTERM: %s", node.output())
	}
	if code := node.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
}

func TestASecondProcessOnADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, dir)
	code, stderr := fails(t, "node", "--dir", dir, "--http", "127.0.0.1:0")
	if code != exitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, dir) {
		t.Errorf("exit code %d, %q: want 1 and a sentence that names the directory", code, stderr)
	}
	node.stop()

	file := filepath.Join(t.TempDir(), "one.fenec")
	one := start(t, "node", "--file", file, "--http", "127.0.0.1:0")
	code, stderr = fails(t, "node", "--file", file, "--http", "127.0.0.1:0")
	if code != exitFailed || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q: want 1 and a sentence", code, stderr)
	}
	one.stop()

	directory := filepath.Join(t.TempDir(), "shard.fenec")
	router := startRouter(t, directory)
	code, stderr = fails(t, "shard", "--directory", directory, "--listen", "127.0.0.1:0")
	if code != exitFailed || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q: want 1 and a sentence", code, stderr)
	}
	router.stop()
}

func TestAPortThatIsTakenIsSaid(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	code, stderr := fails(t, "node", "--dir", t.TempDir(), "--http", node.addr)
	if want := "fenec: cannot listen on " + node.addr + ": address already in use\n"; code != exitFailed || stderr != want {
		t.Errorf("exit code %d, %q, want 1 and %q", code, stderr, want)
	}
	node.stop()
}

// mounted runs fenec in a mount namespace of its own, after the shell commands.
// Whoever is not root is root in there.
func mounted(t *testing.T, prepare string, args ...string) *exec.Cmd {
	t.Helper()
	script := prepare + ` && exec "$0" "$@"`
	namespaces := []string{"-m"}
	if os.Geteuid() != 0 {
		namespaces = []string{"-r", "-m"}
	}
	return exec.Command("unshare", slices.Concat(namespaces, []string{"bash", "-c", script, binary(t)}, args)...)
}

func TestAReadOnlyDirectoryIsRefusedUnlessToldSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, dir)
	tenant := makeTenant(t, node, "acme")
	query(t, tenant, "put writes {n: 7}")
	node.stop()

	readOnly := fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,ro,bind %[1]s", dir)
	args := []string{"node", "--dir", dir, "--http", "127.0.0.1:0", "--admin-token", adminToken}
	out, err := mounted(t, readOnly, args...).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), dir) {
		t.Errorf("a node on a read-only directory: %v, %q; want a sentence that names it", err, out)
	}

	p := startCommand(t, mounted(t, readOnly, append(args, "--http-read-only")...))
	tenant = p.url() + "/t/acme"
	if got := numbers(t, tenant); got[7] != 1 {
		t.Errorf("the tenant holds %v, want 7 once", got)
	}
	must(t, 403, "POST", tenant+"/writes", `{"n": 8}`)
	must(t, 403, "PUT", p.url()+"/_admin/tenants/other", "")
	p.stop()
}

func TestAFullDiskAnswers507AndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := fmt.Sprintf("mount -t tmpfs -o size=4m tmpfs %[1]s && head -c 2M /dev/zero >%[1]s/ballast", dir)
	p := startCommand(t, mounted(t, small, "node", "--dir", dir, "--http", "127.0.0.1:0", "--admin-token", adminToken, "--idle-close", "1"))
	tenant := makeTenant(t, p, "acme")
	query(t, tenant, "create collection blobs (n int, text text)")
	filler := strings.Repeat("x", 10_000)
	written := 0
	var refused answered
	for refused.status == 0 && written < 1000 {
		a, err := request("POST", tenant+"/blobs", fmt.Sprintf(`{"n": %d, "text": %q}`, written, filler))
		if err != nil {
			t.Fatal(err)
		}
		if a.status == 201 {
			written++
			continue
		}
		refused = a
	}
	if refused.status != 507 || written < 50 {
		t.Fatalf("after %d writes: %d %s, want 507 past a hundred or so", written, refused.status, refused.body)
	}
	if strings.Contains(refused.body, dir) {
		t.Errorf("the refusal shows a path: %s", refused.body)
	}
	// Writes stop, reads go on.
	must(t, 507, "POST", tenant+"/writes", `{"n": 1}`)
	if got := countAnswer.FindStringSubmatch(must(t, 200, "GET", tenant+"/blobs?count", "")); got == nil || got[1] != fmt.Sprint(written) {
		t.Errorf("count %v, want %d", got, written)
	}
	metrics := must(t, 200, "GET", p.url()+"/_metrics", "")
	if !strings.Contains(metrics, "fenec_storage_failed 1") {
		t.Errorf("the metrics do not tell of the failure:\n%s", metrics)
	}
	// Closed as idle and opened again it takes what fits, and has what it answered.
	// The process's own view of the file system is the only one that has the mount.
	if err := os.Remove(fmt.Sprintf("/proc/%d/root%s/ballast", p.cmd.Process.Pid, dir)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tenant takes writes again", func() bool {
		a, err := request("GET", p.url()+"/_admin/open", "")
		if err != nil || strings.Contains(a.body, "acme") {
			return false // still open: asking it would keep it so
		}
		a, err = request("POST", tenant+"/writes", `{"n": 2}`)
		return err == nil && a.status == 201
	})
	if got := countAnswer.FindStringSubmatch(must(t, 200, "GET", tenant+"/blobs?count", "")); got == nil || got[1] != fmt.Sprint(written) {
		t.Errorf("with room again: count %v, want %d", got, written)
	}
	p.stop()
}

func TestFiveThousandTenantsAnswerWithFewFilesAndLittleMemory(t *testing.T) {
	t.Parallel()
	const tenants = 5000
	dir := t.TempDir()
	seed := startNode(t, dir, "--sync", "off")
	template := makeTenant(t, seed, "t0000")
	for n := range 10 {
		query(t, template, fmt.Sprintf("put writes {n: %d}", n))
	}
	seed.stop()
	content := readFile(t, filepath.Join(dir, "t0000.fenec"))
	for i := 1; i < tenants; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("t%04d.fenec", i)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	limited := exec.Command("bash", "-c", `ulimit -n 256 && exec "$0" "$@"`, binary(t),
		"node", "--dir", dir, "--http", "127.0.0.1:0", "--admin-token", adminToken, "--max-memory", "64", "--sync", "off")
	p := startCommand(t, limited)
	missed := make(chan string, tenants)
	jobs := make(chan int)
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range jobs {
				url := fmt.Sprintf("%s/t/t%04d/writes?count", p.url(), i)
				a, err := request("GET", url, "")
				if err != nil {
					missed <- err.Error()
				} else if a.status != 200 || !strings.Contains(a.body, "10") {
					missed <- fmt.Sprintf("%s answered %d %s", url, a.status, a.body)
				}
			}
		}()
	}
	for i := range tenants {
		jobs <- i
	}
	close(jobs)
	for range 8 {
		<-done
	}
	close(missed)
	shown := 0
	for m := range missed {
		if shown++; shown <= 5 {
			t.Error(m)
		}
	}
	if shown > 0 {
		t.Errorf("%d of %d tenants did not answer", shown, tenants)
	}
	p.stop()
}
