// Package e2e has the tests of whole processes: the binary as its users start it, nodes
// and routers that are killed, clients that leave and disks that fail.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// The exit codes of fenec, as docs/commands.md has them.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// root is the module's root, where these tests run.
const root = "../.."

// binaryDir holds the fenec that the tests start.
var binaryDir string

func TestMain(m *testing.M) {
	err := os.Chdir(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if binaryDir, err = os.MkdirTemp("", "fenec-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(raceEnv, raceOptions)
	code := m.Run()
	os.RemoveAll(binaryDir)
	web.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// A binary built with the race detector would sleep a second at its end; a race
// it finds makes its exit code 66.
const (
	raceEnv     = "GORACE"
	raceOptions = "atexit_sleep_ms=0"
)

var buildOnce = sync.OnceValue(func() error {
	args := []string{"build", "-buildvcs=false", "-o", filepath.Join(binaryDir, "fenec")}
	if underRace {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
})

// binary is the path of a fenec built from this module.
func binary(t *testing.T) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(binaryDir, "fenec")
}

// TestScripts runs testdata/script: the real binary, its flags, messages and
// exit codes.
func TestScripts(t *testing.T) {
	binary(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv(raceEnv, raceOptions)
			e.Setenv("PATH", binaryDir+string(os.PathListSeparator)+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"refused": refused,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// refused CODE SENTENCE ARG... runs fenec and checks its exit code, that stderr has only that sentence, and that stdout
// is empty. A sentence that ends with ... is a prefix.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refused CODE SENTENCE ARG...")
	}
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("fenec", args[2:]...)
	got := exitOK
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("fenec did not run: %v", err)
	}
	stderr, stdout := ts.ReadFile("stderr"), ts.ReadFile("stdout")
	if got != code {
		ts.Fatalf("exit code %d, want %d: %s", got, code, stderr)
	}
	if stdout != "" {
		ts.Fatalf("stdout is not empty: %s", stdout)
	}
	want := "fenec: " + args[1]
	if head, ok := strings.CutSuffix(want, "..."); ok {
		if !strings.HasPrefix(stderr, head) || strings.Count(stderr, "\n") != 1 {
			ts.Fatalf("stderr is not one line that begins so:\n got %swant %s", stderr, want)
		}
	} else if stderr != want+"\n" {
		ts.Fatalf("stderr:\n got %swant %s", stderr, want)
	}
}
