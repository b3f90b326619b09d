package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests; nothing waits that long unless it
// is broken.
const patience = 60 * time.Second

// process is a running fenec.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	addr    string // where it listens; of up, the router's
	exited  chan struct{}
	drained chan struct{} // the log is read to its end
	mu      sync.Mutex
	log     bytes.Buffer
}

// start runs fenec and waits until its log says where it listens.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(binary(t), args...))
}

// startCommand is start for a command that ends up running fenec.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, exited: make(chan struct{}), drained: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go p.read(stderr, listening)
	go func() {
		<-p.drained // Wait closes the pipe, so the log is read first
		cmd.Wait()  // the exit code is asked where it matters
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	select {
	case p.addr = <-listening:
	case <-p.exited:
		t.Fatalf("fenec %s ended: %s", strings.Join(cmd.Args[1:], " "), p.output())
	case <-time.After(patience):
		t.Fatalf("fenec %s does not listen: %s", strings.Join(cmd.Args[1:], " "), p.output())
	}
	return p
}

func (p *process) read(stderr io.Reader, listening chan<- string) {
	defer close(p.drained)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.Write(lines.Bytes())
		p.log.WriteByte('\n')
		p.mu.Unlock()
		var event struct{ Message, Addr string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Message == "listening" && listening != nil {
			listening <- event.Addr
			listening = nil
		}
	}
	io.Copy(io.Discard, stderr) // a line too long must not block the process
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) url() string { return "http://" + p.addr }

// kill ends it as a crash does, and waits.
func (p *process) kill() {
	p.cmd.Process.Kill() // it may have ended already
	receive(p.t, "fenec ends after SIGKILL", p.exited)
}

// stop sends SIGTERM and wants exit code 0. Nothing the race detector found may
// be in its log.
func (p *process) stop() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Errorf("fenec did not end %s after SIGTERM: %s", patience, p.output())
		p.kill()
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("exit code %d, want 0: %s", code, p.output())
	}
	if strings.Contains(p.output(), "DATA RACE") {
		p.t.Errorf("a data race: %s", p.output())
	}
}

// crash runs fenec that has to end by itself, and answers its exit code and stderr.
func fails(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Start()
	if err == nil {
		err = ended(cmd)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// adminToken is the one every node of these tests has.
const adminToken = "adm1n"

var web = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// answered is one HTTP answer.
type answered struct {
	status int
	body   string
	header http.Header
}

// request sends one request under the admin token.
func request(method, url, body string) (answered, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	response, err := web.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, string(text), response.Header}, err
}

// must is request that has to be answered with a status.
func must(t *testing.T, status int, method, url, body string) string {
	t.Helper()
	a, err := request(method, url, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	if a.status != status {
		t.Fatalf("%s %s %s answered %d %s, want %d", method, url, body, a.status, a.body, status)
	}
	return a.body
}

// query runs a statement that has to succeed.
func query(t *testing.T, tenant, statement string) string {
	t.Helper()
	return must(t, 200, "POST", tenant+"/query", queryBody(statement))
}

func queryBody(statement string) string {
	text, err := json.Marshal(map[string]string{"query": statement})
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(text)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// receive waits for a value, or for the end of a channel.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
		panic("unreachable")
	}
}

// ended waits for a command that was started, and kills it if it does not end.
func ended(cmd *exec.Cmd) error {
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait()
}

// startNode runs a node on a directory.
func startNode(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return start(t, append([]string{"node", "--dir", dir, "--http", "127.0.0.1:0", "--admin-token", adminToken}, args...)...)
}

// startRouter runs a router on a directory file.
func startRouter(t *testing.T, file string, args ...string) *process {
	t.Helper()
	return start(t, append([]string{"shard", "--listen", "127.0.0.1:0", "--directory", file}, args...)...)
}

// record tells a router where a node is.
func record(t *testing.T, router *process, name, addr string) {
	t.Helper()
	body := fmt.Sprintf(`{"addr": %q, "token": %q}`, addr, adminToken)
	a, err := request("PUT", router.url()+"/_shard/nodes/"+name, body)
	if err != nil || a.status != 200 && a.status != 201 {
		t.Fatalf("recording %s: %v %d %s", name, err, a.status, a.body)
	}
}

// makeTenant makes a tenant with a collection writes (n int) on a node, and
// answers its URL.
func makeTenant(t *testing.T, node *process, name string) string {
	t.Helper()
	must(t, 201, "PUT", node.url()+"/_admin/tenants/"+name, "")
	tenant := node.url() + "/t/" + name
	query(t, tenant, "create collection writes (n int)")
	return tenant
}

var countAnswer = regexp.MustCompile(`"count":\s*(\d+)`)

// numbers are the values of n that a tenant holds, each with how often.
func numbers(t *testing.T, tenant string) map[int]int {
	t.Helper()
	var rows []struct{ N int }
	if err := json.Unmarshal([]byte(query(t, tenant, "get writes select n")), &rows); err != nil {
		t.Fatal(err)
	}
	got := make(map[int]int, len(rows))
	for _, r := range rows {
		got[r.N]++
	}
	return got
}

// writers write numbers, each its own, until told to stop.
type writers struct {
	stopping chan struct{}
	done     sync.WaitGroup
	mu       sync.Mutex
	answered map[int]bool // true: answered 2xx; false: sent, fate unknown
	next     int
	errors   map[string]int // by status or error
}

// startWriters runs n of them against the URL that tenant answers.
func startWriters(n int, tenant func() string) *writers {
	w := &writers{answered: make(map[int]bool), errors: make(map[string]int)}
	w.start(n, tenant)
	return w
}

// start runs n writers, after a stop with the numbers that follow.
func (w *writers) start(n int, tenant func() string) {
	stopping := make(chan struct{})
	w.stopping = stopping
	for range n {
		w.done.Add(1)
		go func() {
			defer w.done.Done()
			for {
				select {
				case <-stopping:
					return
				default:
					w.write(tenant())
				}
			}
		}()
	}
}

// write sends the next number, and says whether it was answered.
func (w *writers) write(tenant string) bool {
	w.mu.Lock()
	n := w.next
	w.next++
	w.answered[n] = false
	w.mu.Unlock()
	a, err := request("POST", tenant+"/writes", fmt.Sprintf(`{"n": %d}`, n))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && a.status == 201:
		w.answered[n] = true
	case err != nil:
		w.errors["no answer"]++
	default:
		w.errors[fmt.Sprint(a.status)]++
		if a.status != 502 && a.status != 504 {
			delete(w.answered, n) // refused: it must not be there
		}
	}
	return w.answered[n]
}

// count is how many writes were answered so far.
func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, ok := range w.answered {
		if ok {
			n++
		}
	}
	return n
}

// more waits for n more answered writes.
func (w *writers) more(t *testing.T, n int) {
	t.Helper()
	from := w.count()
	eventually(t, fmt.Sprintf("%d more writes", n), func() bool { return w.count() >= from+n })
}

func (w *writers) stop() {
	close(w.stopping)
	w.done.Wait()
}

// check compares what was answered with what is there: every answered write
// once, no refused one, and of those without an answer at most one each.
func (w *writers) check(t *testing.T, tenant string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := numbers(t, tenant)
	for n, ok := range w.answered {
		if ok && got[n] != 1 {
			t.Errorf("write %d was answered and is there %d times", n, got[n])
		}
	}
	for n, times := range got {
		if _, sent := w.answered[n]; !sent {
			t.Errorf("write %d was refused and is there", n)
		} else if times > 1 {
			t.Errorf("write %d is there %d times", n, times)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
