package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fenec/client"
)

// tailing is a running fenec tail and the changes it has printed.
type tailing struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	read   chan struct{} // closed at the end of its output
	mu     sync.Mutex
	seqs   []uint64
	puts   map[int]int // how often each n was put
}

func startTail(t *testing.T, args ...string) *tailing {
	t.Helper()
	f := &tailing{t: t, cmd: exec.Command(binary(t), append([]string{"tail"}, args...)...), read: make(chan struct{}), puts: map[int]int{}}
	f.cmd.Stderr = &f.stderr
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.cmd.Process.Kill() })
	go f.follow(out)
	return f
}

func (f *tailing) follow(out io.Reader) {
	defer close(f.read)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Seq            uint64
			Collection, Op string
			Doc            struct{ N int }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			f.t.Errorf("tail prints %q", lines.Text())
			continue
		}
		f.mu.Lock()
		f.seqs = append(f.seqs, c.Seq)
		if c.Collection == "writes" && c.Op == "put" {
			f.puts[c.Doc.N]++
		}
		f.mu.Unlock()
	}
}

// has reports whether every acknowledged write has been printed.
func (f *tailing) has(w *writers) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, ok := range w.answered {
		if ok && f.puts[n] == 0 {
			return false
		}
	}
	return true
}

// stop ends it with SIGINT and checks that it has printed each change once, in order.
func (f *tailing) stop() {
	f.t.Helper()
	f.cmd.Process.Signal(syscall.SIGINT)
	receive(f.t, "tail ends", f.read)
	if err := f.cmd.Wait(); err != nil {
		f.t.Errorf("tail ended with %v: %s", err, f.stderr.String())
	}
	for i := 1; i < len(f.seqs); i++ {
		if f.seqs[i] != f.seqs[i-1]+1 { // no write here has a key
			f.t.Fatalf("change %d is printed after %d", f.seqs[i], f.seqs[i-1])
		}
	}
}

var continueWith = regexp.MustCompile(`^continue with --since (\d+)\n$`)

func TestTailFollowsThroughMovesAndCrashes(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	w := startWriters(2, c.tenant)
	f := startTail(t, c.tenant(), "--since", "0")
	c.movesAndCrashes(t, w)
	eventually(t, "every answered write is printed", func() bool { return f.has(w) })
	f.stop()
	since := continueWith.FindStringSubmatch(f.stderr.String())
	if since == nil {
		t.Fatalf("stderr of tail is %q", f.stderr.String())
	}
	if last := fmt.Sprint(f.seqs[len(f.seqs)-1]); since[1] != last || f.seqs[0] != 1 {
		t.Errorf("tail printed the changes %d to %s and then --since %s", f.seqs[0], last, since[1])
	}
	for n := range f.puts {
		if _, sent := w.answered[n]; !sent {
			t.Errorf("write %d was refused and is printed", n)
		}
	}
}

func TestATailThatIsKilledGoesOnFromItsConsumer(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir(), "--sync", "always")
	tenant := makeTenant(t, node, "acme")
	c := client.New(tenant, client.Options{Patience: -1})
	defer c.Close()
	w := startWriters(2, func() string { return tenant })
	if err := c.Consumer("printer").Commit(t.Context(), client.Position{}); err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for range 5 {
		w.more(t, 30)
		f := startTail(t, tenant, "--consumer", "printer")
		eventually(t, "something is printed", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.seqs) > 0
		})
		f.cmd.Process.Kill()
		receive(f.t, "tail ends", f.read)
		f.cmd.Wait() // killed
		for _, seq := range f.seqs {
			seen[seq] = true
		}
	}
	w.stop()
	f := startTail(t, "--once", "--consumer", "printer", tenant)
	receive(f.t, "tail ends", f.read)
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("tail ended with %v: %s", err, f.stderr.String())
	}
	for _, seq := range f.seqs {
		seen[seq] = true
	}
	for change, err := range c.Changes(t.Context(), client.Position{}, client.ChangeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		seq := change.Position.Seq
		if !seen[seq] {
			t.Errorf("change %d was not printed", seq)
		}
		delete(seen, seq)
	}
	if len(seen) != 0 {
		t.Errorf("%v were printed and are not changes", seen)
	}
	if all, err := c.Consumers(t.Context()); err != nil || len(all) != 1 || all[0].Behind != 0 {
		t.Errorf("consumers %+v, %v", all, err)
	}
}

func TestTailSaysWhatIsWrong(t *testing.T) {
	node := startNode(t, t.TempDir(), "--sync", "always")
	tenant := makeTenant(t, node, "acme")
	for _, tc := range []struct {
		code int
		args []string
		want string
	}{
		{2, nil, "expected one URL"},
		{2, []string{"acme"}, "invalid URL"},
		{2, []string{tenant, tenant}, "expected one URL"},
		{2, []string{tenant, "--since", "-1"}, "--since: expected the number of a change"},
		{2, []string{tenant, "--since", "x"}, "--since: expected the number of a change"},
		{2, []string{tenant, "--format", "xml"}, "--format: expected text or ndjson"},
		{1, []string{tenant, "--since", "77"}, "change 77 has not happened here: the last one is 1"},
		{1, []string{node.url() + "/t/other"}, "no tenant other"},
	} {
		code, stderr := fails(t, append([]string{"tail"}, tc.args...)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("tail %q ended with %d and %q, want %d and %q", tc.args, code, stderr, tc.code, tc.want)
		}
	}
	out, err := exec.Command(binary(t), "tail", tenant, "--since=0", "--once", "--format=text").Output()
	if err != nil || !strings.HasSuffix(string(out), "        1  create writes\n") {
		t.Errorf("with --format text it prints %q, %v", out, err)
	}
}

func TestChangesAndPositionsThroughTheRouter(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	header := func(status int, method, path, body string, headers ...string) http.Header {
		t.Helper()
		r, err := http.NewRequest(method, c.tenant()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		a, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != status {
			t.Fatalf("%s %s returned %d %s, %v, want %d", method, path, a.StatusCode, text, err, status)
		}
		return a.Header
	}
	wrote := header(201, "POST", "/writes", `{"n": 1}`)
	seq, history := wrote.Get("Fenec-Seq"), wrote.Get("Fenec-History")
	if a := c.move("n2"); a.status != 200 {
		t.Fatalf("the move returned %d %s", a.status, a.body)
	}
	header(200, "GET", "/writes", "", "Fenec-After", seq, "Fenec-History", history)
	late := header(504, "GET", "/writes", "", "Fenec-After", "99999", "Fenec-History", history, "Fenec-Wait", "10")
	if late.Get("Fenec-Seq") != seq || late.Get("Fenec-History") != history {
		t.Errorf("after a move the tenant is at %v, it was at %s of %s", late, seq, history)
	}
	header(409, "GET", "/_changes?since=99999", "")
}
