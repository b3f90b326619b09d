package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fenec runs a command to its end and returns its exit code and its output.
func fenec(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	out, _ := cmd.CombinedOutput() // the exit code says it
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestCheckReportsAndSalvages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := startNode(t, dir)
	tenant := makeTenant(t, node, "acme")
	for n := range 50 {
		query(t, tenant, fmt.Sprintf("put writes {n: %d}", n))
	}
	makeTenant(t, node, "beta")
	node.stop()
	file := filepath.Join(dir, "acme.fenec")
	if code, out := fenec(t, "check", file); code != 0 || !strings.Contains(out, "writes: 50 documents") {
		t.Errorf("a sound file: exit code %d, %s", code, out)
	}
	content := []byte(readFile(t, file))
	content[len(content)/2] ^= 0xff
	writeFile(t, file, string(content))

	// The tenant fails, and no other is affected.
	node = startNode(t, dir)
	answer := must(t, 500, "GET", node.url()+"/t/acme/writes", "")
	if !strings.Contains(answer, "fenec check") || strings.Contains(answer, dir) {
		t.Errorf("the damaged tenant returned %s, want an error that names fenec check and no path", answer)
	}
	must(t, 200, "GET", node.url()+"/t/beta/writes", "")
	must(t, 409, "PUT", node.url()+"/_admin/tenants/acme", "")
	if readFile(t, file) != string(content) {
		t.Error("the damaged file was changed")
	}
	node.stop()

	code, out := fenec(t, "check", file)
	if code != exitFailed || !strings.Contains(out, "damaged") || !strings.Contains(out, "offset") {
		t.Errorf("a damaged file: exit code %d, %s", code, out)
	}
	saved := filepath.Join(dir, "saved.fenec")
	code, out = fenec(t, "check", file, "--salvage", saved)
	if code != exitFailed || !strings.Contains(out, "wrote what can be read to "+saved) {
		t.Errorf("salvage: exit code %d, %s", code, out)
	}
	if code, out := fenec(t, "check", saved); code != 0 {
		t.Errorf("what was salvaged: exit code %d, %s", code, out)
	}
	if code, out := fenec(t, "check", file, "--salvage", saved); code != exitFailed || out != "fenec: --salvage: expected a new file, but "+saved+" exists\n" {
		t.Errorf("salvage over a file: exit code %d, %s", code, out)
	}
	node = startNode(t, dir)
	if n := len(numbers(t, node.url()+"/t/saved")); n != 49 {
		t.Errorf("%d documents were salvaged, want 49, all except the damaged one", n)
	}
	node.stop()
}

func TestCheckOfWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty.fenec": "", "letter.fenec": "Dear Sir or Madam,\n"} {
		code, out := fenec(t, "check", writeFile(t, filepath.Join(dir, name), content))
		if code != exitFailed || !strings.Contains(out, name) {
			t.Errorf("%s: exit code %d, %s", name, code, out)
		}
	}
	code, out := fenec(t, "check", filepath.Join(dir, "nowhere"))
	if code != exitFailed || strings.Count(out, "\n") != 1 || !strings.Contains(out, "no such file") {
		t.Errorf("no file: exit code %d, %s", code, out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	if code, out := fenec(t, "ping", node.url()); code != 0 || out != node.addr+" is well\n" {
		t.Errorf("a node: exit code %d, %s", code, out)
	}
	if code, out := fenec(t, "ping", node.url()+"/t/x/", "--timeout", "300ms"); code != 0 {
		t.Errorf("a URL with a path: exit code %d, %s", code, out)
	}
	node.stop()
	code, out := fenec(t, "ping", node.url())
	if want := "fenec: " + node.addr + " does not respond: connect: connection refused\n"; code != exitFailed || out != want {
		t.Errorf("no server: exit code %d, %q, want %q", code, out, want)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }))
	defer other.Close()
	code, out = fenec(t, "ping", other.URL)
	if want := "fenec: " + other.Listener.Addr().String() + " responded with 404\n"; code != exitFailed || out != want {
		t.Errorf("another server: exit code %d, %q, want %q", code, out, want)
	}
}
