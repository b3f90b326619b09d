package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var landedAt = regexp.MustCompile(`"at":\d+`)

// TestThePagesWhoseExamplesRun runs the sh blocks of pages in order and in one shell, each page against a tenant of a node,
// and compares what they print with what the page shows.
func TestThePagesWhoseExamplesRun(t *testing.T) {
	for _, page := range []string{"docs/changes.md", "docs/queues.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runPage(t, page)
		})
	}
}

func runPage(t *testing.T, page string) {
	node := startNode(t, t.TempDir(), "--sync", "always")
	must(t, 201, "PUT", node.url()+"/_admin/tenants/acme", "")
	const mark = "--- end of a block ---"
	script := "set -u\ncurl() { command curl -sS \"$@\"; }\n"
	shown := map[int]string{} // by step
	steps := 0
	for _, b := range blocks(t, page) {
		switch b.language {
		case "sh":
			script += strings.ReplaceAll(b.text, "127.0.0.1:8081", node.addr) + "echo; echo '" + mark + "'\n"
			steps++
		case "json", "text":
			shown[steps-1] = b.text
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	outputs := strings.Split(strings.ReplaceAll(string(out), "\r", ""), mark)
	if len(outputs) != steps+1 || len(shown) < 5 {
		t.Fatalf("%d of %d steps ran, and the page shows %d answers: %s", len(outputs)-1, steps, len(shown), out)
	}
	for i, want := range shown {
		want, got := landedAt.ReplaceAllString(want, `"at":0`), landedAt.ReplaceAllString(outputs[i], `"at":0`)
		if !matches(want, got) {
			t.Errorf("step %d prints\n%s\nand the page shows\n%s", i, got, want)
		}
	}
}
