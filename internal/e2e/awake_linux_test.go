package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// awake is the setting that a server runs itself again with.
const awake = "schedtrace=2147483647"

func TestAServerKeepsTheMonitorAwakeUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                            awake,
		"gctrace=0":                   "gctrace=0," + awake,
		"schedtrace=0,madvdontneed=1": "schedtrace=0,madvdontneed=1",
	} {
		cmd := exec.Command(binary(t), "shard", "--listen", "127.0.0.1:0", "--directory", t.TempDir()+"/shard.fenec")
		cmd.Env = append(os.Environ(), "GODEBUG="+given)
		p := startCommand(t, cmd)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		if err != nil {
			t.Fatalf("the process is not the one that was started: %v", err)
		}
		if vars := strings.Split(string(text), "\x00"); !slices.Contains(vars, "GODEBUG="+want) {
			t.Errorf("started with GODEBUG=%s, it runs without GODEBUG=%s: %s", given, want, vars)
		}
		p.stop()
	}
}
