package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block is a fenced block of a page: commands, or what the ones before print.
type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func blocks(t *testing.T, page string) []block {
	t.Helper()
	var all []block
	for _, m := range fence.FindAllStringSubmatch(readFile(t, page), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// matches compares an output with the expected text of a page, in which … matches anything. Surrounding space is
// ignored.
func matches(shown, got string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(shown), "…") {
		if i > 0 {
			pattern.WriteString(`.*`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(`(?s)^` + pattern.String() + `$`).MatchString(strings.TrimSpace(got))
}

// curl is the shell's curl with the same output, which also appends each status to a file that the test reads.
const curl = `curl() { command curl -sS -w '%{stderr}%{http_code}\n' "$@" 2>>"$STATUSES"; }
`

// TestTheTourOfTheReadme runs every sh block of the README, in order and in one
// shell, against a fenec up, with free ports in place of those printed.
func TestTheTourOfTheReadme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(binary(t), filepath.Join(dir, "fenec")); err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	up := startUp(t, dir, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(up.router(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, nodePort, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer(":8090", ":"+port, ":8083", ":"+nodePort)

	// Each block is a step of one script, which marks where its output ends.
	const mark = "--- end of a block ---"
	script := "set -u\n" + curl
	var steps []block
	shown := map[int]string{} // by step
	for _, b := range blocks(t, "README.md") {
		switch b.language {
		case "sh":
			script += ports.Replace(b.text) + "echo; echo '" + mark + "'\n"
			steps = append(steps, b)
		case "json", "text":
			shown[len(steps)-1] = ports.Replace(b.text)
		}
	}
	if len(steps) < 8 || len(shown) < 6 {
		t.Fatalf("the README has %d blocks of commands and %d answers, want the tour", len(steps), len(shown))
	}
	statuses := filepath.Join(dir, "statuses")
	shell := exec.Command("bash", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "STATUSES="+statuses)
	var stdout, stderr bytes.Buffer
	shell.Stdout, shell.Stderr = &stdout, &stderr
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = time.Second // a node it leaves behind would hold the pipes
	timer := time.AfterFunc(2*patience, func() { shell.Process.Kill() })
	defer timer.Stop()
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }) // where it broke off, its node is still there
	if err := shell.Wait(); err != nil {
		t.Errorf("the tour ended with %v: %s", err, stderr.String())
	}
	outputs := strings.Split(stdout.String(), mark)
	if len(outputs) != len(steps)+1 {
		t.Fatalf("%d of %d steps ran: %s%s", len(outputs)-1, len(steps), stdout.String(), stderr.String())
	}
	for i, step := range steps {
		if want, ok := shown[i]; ok && !matches(want, outputs[i]) {
			t.Errorf("%s\nprints\n%s\nand the README shows\n%s", step.text, outputs[i], want)
		}
	}
	checkStatuses(t, readFile(t, statuses))
	up.stop(t)
}

// checkStatuses checks that every curl succeeded, except the request to a killed node and the write that a move delays.
func checkStatuses(t *testing.T, text string) {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "curl:") { // -f tells of the 503
			continue
		}
		seen[line]++
	}
	for status, times := range seen {
		switch {
		case status[0] == '2' || status == "503":
		case status == "502" && times == 1:
		default:
			t.Errorf("%d curl lines returned %s", times, status)
		}
	}
	if seen["502"] != 1 || seen["200"] < 10 {
		t.Errorf("the statuses were %v, want one 502 and the rest 2xx", seen)
	}
}

func TestWhatTheReadmeShowsIsCompared(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		want       bool
	}{
		{`{"count":300}`, "{\"count\":300}\n\n", true},
		{`{"count":300}`, `{"count":299}`, false},
		{`imported … documents`, "imported 12 documents", true},
		{`[{"name":"…"},…]`, `[{"name":"a"},{"name":"b"}]`, true},
		{`[…]`, `{}`, false},
	} {
		if matches(c.shown, c.got) != c.want {
			t.Errorf("%q against %q is %v", c.shown, c.got, !c.want)
		}
	}
}

// TestLinksOfTheDocsLeadSomewhere follows every relative link of the pages.
func TestLinksOfTheDocsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	code := regexp.MustCompile("(?s)```.*?```|`[^`]*`") // where Query[T](ctx) is no link
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(readFile(t, page), ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
	index := readFile(t, "docs/README.md")
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}
