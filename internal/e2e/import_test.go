package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// imported is one run of fenec import.
type imported struct {
	code           int
	stdout, stderr string
}

func runImporter(t *testing.T, stdin string, args ...string) imported {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"import"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended(cmd) // the test checks the exit code
	return imported{cmd.ProcessState.ExitCode(), took.ReplaceAllString(stdout.String(), " in TIME"), stderr.String()}
}

var took = regexp.MustCompile(` in [0-9.]+[mµn]?s`)

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clean checks that nothing is left of an import, neither its position nor its state.
func clean(t *testing.T, tenant string, files ...string) {
	t.Helper()
	if names := must(t, 200, "GET", tenant+"/", ""); strings.Contains(names, "fenec_imports") {
		t.Errorf("the position of an import is left: %s", names)
	}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("%s is left", f)
		}
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	dir := t.TempDir()
	tenants := 0
	tenant := func() string {
		tenants++
		name := fmt.Sprintf("t%d", tenants)
		must(t, 201, "PUT", node.url()+"/_admin/tenants/"+name, "")
		return node.url() + "/t/" + name
	}

	t.Run("bad lines are left out and reported in order, the rest is there", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection c (n int, s text @unique)")
		file := writeFile(t, filepath.Join(dir, "a.ndjson"), strings.Join([]string{
			`{"n": 1, "s": "a"}`, `{"n": "x"}`, ``, `nope`, `{"n": 2, "s": "ü \"q\" \\ 🦊"}`,
			`{"m": 1}`, `{"n": 3, "s": "a"}`, `[1]`, `{"n": 9223372036854775807}`, `{"n": 9223372036854775808}`,
		}, "\n"))
		got := runImporter(t, "", file, "--url", to, "--collection", "c")
		wantLines := []string{"line 2: ", "line 4: ", "line 6: ", "line 7: ", "line 8: ", "line 10: "}
		lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
		if got.code != 0 || len(lines) != len(wantLines) {
			t.Fatalf("%+v, want exit code 0 and %d bad lines", got, len(wantLines))
		}
		for i, want := range wantLines {
			if !strings.HasPrefix(lines[i], want) || strings.Contains(lines[i], " line 1 column ") {
				t.Errorf("bad line %d is %q, want %q and no place in a statement", i, lines[i], want)
			}
		}
		if got.stdout != "imported 3 documents into c in TIME, skipped 6 bad lines\n" {
			t.Errorf("stdout %q", got.stdout)
		}
		rows := query(t, to, "get c select n, s order n")
		if want := `[{"n":1,"s":"a"},{"n":2,"s":"ü \"q\" \\ 🦊"},{"n":9223372036854775807,"s":null}]`; strings.TrimSpace(rows) != want {
			t.Errorf("rows %s\nwant %s", rows, want)
		}
		clean(t, to, file+".fenec-import")
	})

	t.Run("strict stops at the first bad line, and goes on once it is mended", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection writes (n int)")
		file := writeFile(t, filepath.Join(dir, "s.ndjson"), "{\"n\":0}\n{\"n\":1}\n{\"n\":\"x\"}\n{\"n\":3}\n")
		args := []string{"--url", to, "--collection", "writes", "--strict", file}
		got := runImporter(t, "", args...)
		if got.code != exitFailed || !strings.HasPrefix(got.stderr, "fenec: line 3: ") || strings.Count(got.stderr, "\n") != 1 {
			t.Fatalf("%+v, want exit code 1 and line 3", got)
		}
		if n := numbers(t, to); len(n) != 2 {
			t.Errorf("holds %v, want the two lines before the bad one", n)
		}
		again := runImporter(t, "", args...)
		if again.code != exitFailed || !strings.HasPrefix(again.stderr, "fenec: line 3: ") {
			t.Errorf("again: %+v, want line 3 again", again)
		}
		writeFile(t, file, "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")
		got = runImporter(t, "", args...)
		if got.code != 0 || !strings.Contains(got.stdout, "resumed after line 2\nimported 4 documents") {
			t.Errorf("mended: %+v", got)
		}
		for n, times := range numbers(t, to) {
			if times != 1 {
				t.Errorf("%d is there %d times", n, times)
			}
		}
		clean(t, to, file+".fenec-import")
	})

	t.Run("another file under the state of an unfinished import is refused", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection writes (n int)")
		file := writeFile(t, filepath.Join(dir, "o.ndjson"), "{\"n\":0}\nx\n")
		args := []string{"--url", to, "--collection", "writes", "--strict", file}
		if got := runImporter(t, "", args...); got.code != exitFailed {
			t.Fatalf("%+v", got)
		}
		writeFile(t, file, "{\"n\":5}\n{\"n\":6}\n")
		got := runImporter(t, "", args...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "have changed since they were imported") {
			t.Errorf("%+v", got)
		}
		args[1] = tenant()
		got = runImporter(t, "", args...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "belongs to an unfinished import into writes of "+to) {
			t.Errorf("%+v", got)
		}
	})

	t.Run("a collection is created from CSV on stdin", func(t *testing.T) {
		to := tenant()
		csv := "name,size,ratio,installed,at,note\n\"a, b\",10,0.5,true,2024-05-01T10:00:00Z,\nü,-3,2,false,2024-05-01T12:00:00+02:00,\"two\nlines\"\n"
		got := runImporter(t, csv, "--url", to, "--collection", "c", "--create")
		if want := "create collection if not exists c (name text, size int, ratio float, installed bool, at timestamp, note text)\n" +
			"imported 2 documents into c in TIME\n"; got.code != 0 || got.stdout != want || got.stderr != "" {
			t.Fatalf("%+v\nwant %s", got, want)
		}
		rows := strings.TrimSpace(query(t, to, "get c select name, size, ratio, installed, at, note order id"))
		want := `[{"name":"a, b","size":10,"ratio":0.5,"installed":true,"at":"2024-05-01T10:00:00Z","note":null},` +
			`{"name":"ü","size":-3,"ratio":2,"installed":false,"at":"2024-05-01T10:00:00Z","note":"two\nlines"}]`
		if rows != want {
			t.Errorf("rows %s\nwant %s", rows, want)
		}
		clean(t, to)
	})

	t.Run("the JSON of a CSV cell may span lines", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection c (n int, j json)")
		got := runImporter(t, "n,j\n1,\"{\"\"a\"\":\n[1,\n2]}\"\n2,3\n", "--url", to, "--collection", "c")
		if got.code != 0 || got.stderr != "" {
			t.Fatalf("%+v", got)
		}
		if rows := strings.TrimSpace(query(t, to, "get c select n, j order n")); rows != `[{"n":1,"j":{"a":[1,2]}},{"n":2,"j":3}]` {
			t.Errorf("rows %s", rows)
		}
	})

	t.Run("a key makes it an upsert", func(t *testing.T) {
		to := tenant()
		first := runImporter(t, "{\"k\":7,\"s\":\"a\"}\n{\"k\":9,\"s\":\"b\"}\n", "--url", to, "--collection", "c", "--key", "k", "--create")
		second := runImporter(t, "k,s\n9,c\n11,d\nx,e\n", "--url", to, "--collection", "c", "--key", "k")
		if first.code != 0 || second.code != 0 || !strings.HasPrefix(second.stderr, "line 4: ") {
			t.Fatalf("%+v %+v", first, second)
		}
		rows := strings.TrimSpace(query(t, to, "get c order id"))
		if want := `[{"id":7,"s":"a"},{"id":9,"s":"c"},{"id":11,"s":"d"}]`; rows != want {
			t.Errorf("rows %s, want %s", rows, want)
		}
	})

	// A refused import leaves no collection, no position and no state file.
	for _, c := range []struct {
		name, file, text, args, want string
	}{
		{
			"a CSV without the key's column", "k.csv", "sku,n\n1,2\n1,3\n", "--create --key code",
			"FILE has no column code, which --key names; its columns are sku, n",
		},
		{
			"a CSV without a column id that is the key", "i.csv", "sku,n\n1,2\n", "--create --key id",
			"FILE has no column id, which --key names; its columns are sku, n",
		},
		{
			"a CSV with an id beside the key", "b.csv", "id,k\n1,2\n", "--create --key k",
			"FILE has a column id as well as the key k; --id-as FIELD imports it under another name",
		},
		{
			"lines of which none has the key", "k.ndjson", "{\"sku\":1}\nnope\n{\"n\":2}\n", "--create --key code",
			"FILE has no field code, which --key names; the fields of its first lines are sku, n",
		},
		{
			"ids that are text", "t.ndjson", "{\"id\":\"AAPL\",\"n\":1}\n", "--create",
			`line 1 of FILE: field id: expected a positive int as the id, got "AAPL"; use --id-as FIELD to import it under another name, or --key FIELD to use another field as the id`,
		},
		{
			"ids that are text in a CSV", "t.csv", "id,n\n7,1\nA7,1\n", "--create",
			`line 3 of FILE: field id: expected a positive int as the id, got "A7"; use --id-as FIELD to import it under another name, or --key FIELD to use another field as the id`,
		},
		{
			"ids from zero", "z.csv", "id,n\n0,1\n1,1\n", "--create",
			`line 2 of FILE: field id: expected a positive int as the id, got 0; use --id-as FIELD to import it under another name, or --key FIELD to use another field as the id`,
		},
		{
			"a key that is text", "u.csv", "k,n\nx,1\n", "--create --key k",
			`line 2 of FILE: field k: expected a positive int as the id, got "x"; use --key with another field, or leave it out to give each document a new id`,
		},
		{
			"a CSV of a header alone", "h.csv", "a,b\n", "--create",
			"nothing was imported: FILE has no row after its field names; the collection c, which was created for it, was dropped again",
		},
		{
			"lines that are all bad", "n.csv", "a,b\n1\n2\n", "--create",
			"nothing was imported: FILE has only bad lines (2); the collection c, which was created for it, was dropped again",
		},
		{
			"lines that are all bad, strictly", "s.csv", "a,b\n1\n2\n", "--create --strict",
			"line 2: expected 2 columns as in the first row, got 1",
		},
	} {
		t.Run(c.name+" is refused and leaves nothing", func(t *testing.T) {
			to := tenant()
			file := writeFile(t, filepath.Join(dir, c.file), c.text)
			got := runImporter(t, "", append(strings.Fields(c.args), file, "--url", to, "--collection", "c")...)
			want := "fenec: " + strings.ReplaceAll(c.want, "FILE", file) + "\n"
			if got.code != exitFailed || got.stdout != "" || !strings.HasSuffix(got.stderr, want) {
				t.Errorf("%+v\nwant %s", got, want)
			}
			if names := strings.TrimSpace(must(t, 200, "GET", to+"/", "")); strings.Contains(names, `"c"`) {
				t.Errorf("a collection is left: %s", names)
			}
			clean(t, to, file+".fenec-import")
		})
	}

	t.Run("what nothing can be imported of leaves a collection that was there", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection c (n int)")
		for text, want := range map[string]string{
			"":                           "nothing was imported: stdin has no lines",
			"{\"n\":\"x\"}\n{\"m\":1}\n": "nothing was imported: stdin has only bad lines (2)",
		} {
			got := runImporter(t, text, "--url", to, "--collection", "c", "--create")
			if got.code != exitFailed || !strings.HasSuffix(got.stderr, "fenec: "+want+"\n") {
				t.Errorf("%q: %+v, want %s", text, got, want)
			}
		}
		got := runImporter(t, "{\"n\":1}\n", "--url", to, "--collection", "c", "--key", "k")
		if want := "fenec: stdin has no field k, which --key names; the fields of its first lines are n\n"; got.code != exitFailed || got.stderr != want {
			t.Errorf("%+v, want %s", got, want)
		}
		if rows := strings.TrimSpace(query(t, to, "get c")); rows != "[]" {
			t.Errorf("rows %s, want none", rows)
		}
		clean(t, to)
	})

	t.Run("an id that is text goes into a field of another name", func(t *testing.T) {
		to := tenant()
		first := runImporter(t, "{\"id\":\"x-1\",\"n\":1}\n", "--url", to, "--collection", "c", "--create", "--id-as", "code")
		second := runImporter(t, "n,id\n2,x-2\n", "--url", to, "--collection", "c", "--id-as", "code")
		if first.code != 0 || second.code != 0 {
			t.Fatalf("%+v %+v", first, second)
		}
		rows := strings.TrimSpace(query(t, to, "get c order id"))
		if want := `[{"id":1,"code":"x-1","n":1},{"id":2,"code":"x-2","n":2}]`; rows != want {
			t.Errorf("rows %s, want %s", rows, want)
		}
	})

	t.Run("what cannot be imported into is said at once", func(t *testing.T) {
		to := tenant()
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--url", to, "--collection", "c"}, "fenec: no collection c in " + to + "; use --create to create it from the data\n"},
			{[]string{"--url", to + "x", "--collection", "c", "--create"}, "fenec: " + to + "x: "},
			{[]string{"--url", "http://127.0.0.1:1/t/x", "--collection", "c"}, "fenec: http://127.0.0.1:1/t/x does not respond: connect: connection refused\n"},
		} {
			got := runImporter(t, "{\"a\":1}\n", c.args...)
			if got.code != exitFailed || !strings.HasPrefix(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%v: %+v, want %q", c.args, got, c.want)
			}
			clean(t, to)
		}
	})

	t.Run("ten thousand bad lines in a row take their place and no more", func(t *testing.T) {
		to := tenant()
		query(t, to, "create collection writes (n int)")
		var text strings.Builder
		for n := range 3000 {
			if n >= 500 && n < 2500 {
				fmt.Fprintf(&text, "{\"n\":\"bad %d\"}\n", n)
			} else {
				fmt.Fprintf(&text, "{\"n\":%d}\n", n)
			}
		}
		got := runImporter(t, text.String(), "--url", to, "--collection", "writes")
		if got.code != 0 || got.stdout != "imported 1000 documents into writes in TIME, skipped 2000 bad lines\n" || strings.Count(got.stderr, "\n") != 2000 {
			t.Errorf("exit code %d, %q, %d lines on stderr", got.code, got.stdout, strings.Count(got.stderr, "\n"))
		}
		if n := numbers(t, to); len(n) != 1000 {
			t.Errorf("holds %d numbers, want 1000", len(n))
		}
	})

	t.Run("on a terminal there is a bar, and nowhere else", func(t *testing.T) {
		to := tenant()
		file := writeFile(t, filepath.Join(dir, "bar.ndjson"), "{\"n\":1}\n")
		line := fmt.Sprintf("%s import %s --url %s --collection c --create", binary(t), file, to)
		out, err := exec.Command("script", "-qec", line, "/dev/null").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("bar.ndjson")) || !bytes.Contains(out, []byte("imported 1 documents")) {
			t.Errorf("on a terminal: %v %q, want a bar that names the file", err, out)
		}
	})
	node.stop()
}

func TestAnImportThatWaitsForStdinCanBeStopped(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	tenant := makeTenant(t, node, "acme")
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"import", "--url", tenant, "--collection", "writes", "--batch", "1", "--state", state}
	cmd := exec.Command(binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Enough lines for the reader to get past its sample of the input.
	if _, err := io.WriteString(stdin, many(2000)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has imported what there was", func() bool {
		return len(numbers(t, tenant)) == 2000
	})
	cmd.Process.Signal(syscall.SIGTERM)
	ended(cmd) // the test checks the exit code
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "interrupted; run the same command again to continue") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	got := runImporter(t, many(2100), args[1:]...)
	if got.code != 0 || !strings.Contains(got.stdout, "resumed after line 2000") {
		t.Errorf("%+v", got)
	}
	eachOnce(t, tenant, 2100)
	clean(t, tenant, state)
	node.stop()
}

// many returns NDJSON with the numbers below n.
func many(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	return text.String()
}

// eachOnce checks that the tenant holds each number below n once.
func eachOnce(t *testing.T, tenant string, n int) {
	t.Helper()
	got := numbers(t, tenant)
	if len(got) != n {
		t.Errorf("holds %d numbers, want %d", len(got), n)
	}
	for i, times := range got {
		if times != 1 || i < 0 || i >= n {
			t.Errorf("%d is there %d times", i, times)
		}
	}
}

func TestAnImportKilledAtAnyMomentImportsEachLineOnce(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	node := startNode(t, t.TempDir())
	tenant := makeTenant(t, node, "acme")
	file := writeFile(t, filepath.Join(t.TempDir(), "n.ndjson"), many(lines))
	const kills = 8
	for round := range kills {
		cmd := exec.Command(binary(t), "import", file, "--url", tenant, "--collection", "writes", "--batch", "10")
		before := must(t, 200, "GET", tenant+"/writes?count", "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("round %d imports", round), func() bool {
			return must(t, 200, "GET", tenant+"/writes?count", "") != before
		})
		<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond) // the moment is arbitrary
		signal := syscall.SIGKILL
		if round%4 == 3 {
			signal = syscall.SIGINT
		}
		cmd.Process.Signal(signal)
		if err := ended(cmd); err == nil {
			t.Logf("round %d had finished before it was killed", round)
			break
		}
	}
	got := runImporter(t, "", file, "--url", tenant, "--collection", "writes")
	if got.code != 0 {
		t.Errorf("%+v", got)
	}
	eachOnce(t, tenant, lines)
	clean(t, tenant, file+".fenec-import")
	node.stop()
}

// lossy is a proxy to a node that loses every third response to a batch, after the node has run it.
func lossy(t *testing.T, node *process) *httptest.Server {
	t.Helper()
	var batches atomic.Int64
	target, err := url.Parse(node.url())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/batch") || batches.Add(1)%3 != 0 {
			forward.ServeHTTP(w, r)
			return
		}
		lost := httptest.NewRecorder()
		forward.ServeHTTP(lost, r)
		if batches.Load()%2 == 0 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		http.Error(w, `{"error":"node n1 broke off"}`, http.StatusBadGateway)
	}))
	t.Cleanup(func() { http.DefaultTransport.(*http.Transport).CloseIdleConnections(); proxy.Close() })
	return proxy
}

func TestABatchWhoseAnswerIsLostIsNotDoubled(t *testing.T) {
	t.Parallel()
	const lines = 300
	node := startNode(t, t.TempDir())
	tenant := makeTenant(t, node, "acme")
	proxy := lossy(t, node)
	got := runImporter(t, many(lines)+"bad\n", "--url", proxy.URL+"/t/acme", "--collection", "writes", "--batch", "10")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "imported 300 documents") {
		t.Errorf("%+v", got)
	}
	eachOnce(t, tenant, lines)
	clean(t, tenant)
	node.stop()
}

// freePort returns an address that no process listens on, outside of the range from which the system assigns ports.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

func TestAnImportOutlivesANodeThatIsKilled(t *testing.T) {
	t.Parallel()
	const lines = 4000
	dir, addr := t.TempDir(), freePort(t)
	args := []string{"node", "--dir", dir, "--http", addr, "--admin-token", adminToken}
	node := start(t, args...)
	tenant := makeTenant(t, node, "acme")
	file := writeFile(t, filepath.Join(t.TempDir(), "n.ndjson"), many(lines))
	ended := make(chan imported, 1)
	go func() {
		ended <- runImporter(t, "", file, "--url", tenant, "--collection", "writes", "--batch", "10")
	}()
	for range 3 {
		before := must(t, 200, "GET", tenant+"/writes?count", "")
		eventually(t, "the import goes on", func() bool {
			a, err := request("GET", tenant+"/writes?count", "")
			return err == nil && a.status == 200 && a.body != before
		})
		node.kill()
		node = start(t, args...)
	}
	got := receive(t, "the import ends", ended)
	if got.code != 0 {
		t.Errorf("%+v", got)
	}
	eachOnce(t, tenant, lines)
	node.stop()
}

func TestAnImportThroughTheRouterOutlivesMoves(t *testing.T) {
	t.Parallel()
	const lines = 5000
	c := startCluster(t)
	ended := make(chan imported, 1)
	go func() {
		ended <- runImporter(t, many(lines), "--url", c.tenant(), "--collection", "writes", "--batch", "10")
	}()
	on := "n1"
	for range 4 {
		before := must(t, 200, "GET", c.tenant()+"/writes?count", "")
		eventually(t, "the import goes on", func() bool {
			return must(t, 200, "GET", c.tenant()+"/writes?count", "") != before
		})
		on = other(on)
		if a := c.move(on); a.status != 200 {
			t.Fatalf("the move returned %d %s", a.status, a.body)
		}
	}
	if got := receive(t, "the import ends", ended); got.code != 0 {
		t.Errorf("%+v", got)
	}
	eachOnce(t, c.tenant(), lines)
	clean(t, c.tenant())
}
