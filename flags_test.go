package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func TestEveryFlagHasItsEnvironmentVariableAndAText(t *testing.T) {
	for _, c := range newApp(nil, io.Discard, io.Discard).Commands {
		for _, f := range c.Flags {
			name := f.Names()[0]
			var env []string
			var usage string
			switch f := f.(type) {
			case *cli.StringFlag:
				env, usage = f.EnvVars, f.Usage
			case *cli.BoolFlag:
				env, usage = f.EnvVars, f.Usage
			default:
				t.Errorf("fenec %s --%s is a %T, which settings does not read", c.Name, name, f)
			}
			want := "FENEC_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if !slices.Equal(env, []string{want}) {
				t.Errorf("fenec %s --%s is set by %v, want %s", c.Name, name, env, want)
			}
			if !strings.HasSuffix(usage, ".") {
				t.Errorf("fenec %s --%s is explained by %q, want a sentence", c.Name, name, usage)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "0.25": 250 * time.Millisecond, "300ms": 300 * time.Millisecond,
		"1m30s": 90 * time.Second, "1e2": 100 * time.Second,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "5 s", "NaN", "Inf", "-1", "1e10", "5d"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

func TestFlagsMayStandBehindArguments(t *testing.T) {
	command := importCommand()
	for _, c := range []struct{ args, want string }{
		{"file --url u --create", "--url u --create -- file"},
		{"--create file --url=u -", "--create --url=u -- file -"},
		{"--url u", "--url u"},
		{"--strict -- --url u", "--strict -- --url u"},
		{"file --url", "--url -- file"},
	} {
		got := strings.Join(flagsFirst(command, strings.Fields(c.args)), " ")
		if got != c.want {
			t.Errorf("%s became %s, want %s", c.args, got, c.want)
		}
	}
}

// TestTokensComeFromFilesAndTheEnvironment runs a node and a router as a
// container would: no argument, everything from the environment.
func TestTokensComeFromFilesAndTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := writeFile(t, filepath.Join(dir, "data"), "d4ta\n")
	admin := writeFile(t, filepath.Join(dir, "admin"), adminToken+"\n")
	run := func(env ...string) *process {
		cmd := exec.Command(binary(t))
		cmd.Env = append(cmd.Environ(), env...)
		return startCommand(t, cmd)
	}
	node := run("FENEC_ROLE=node", "FENEC_HTTP=0.0.0.0:0", "FENEC_DIR="+filepath.Join(dir, "tenants"),
		"FENEC_HTTP_TOKEN_FILE="+data, "FENEC_ADMIN_TOKEN_FILE="+admin, "FENEC_ADMIN_TOKEN=", "FENEC_SYNC=always")
	router := run("FENEC_ROLE=shard", "FENEC_LISTEN=127.0.0.1:0", "FENEC_DIRECTORY="+filepath.Join(dir, "shard.fenec"),
		"FENEC_TOKEN="+adminToken)
	node.addr = strings.Replace(node.addr, "[::]", "127.0.0.1", 1)
	record(t, router, "n1", node.addr)
	must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", "{}")
	tenant := router.url() + "/t/acme"
	must(t, 401, "GET", tenant+"/", "") // the admin token does not open data
	refusedImport := runImporter(t, "{\"n\":1}\n", "--url", tenant, "--collection", "c", "--create")
	if refusedImport.code != exitFailed || !strings.Contains(refusedImport.stderr, "wants a token") {
		t.Errorf("without a token: %+v", refusedImport)
	}
	got := runImporter(t, "{\"n\":1}\n", "--url", tenant, "--collection", "c", "--create", "--token-file", data)
	if got.code != 0 {
		t.Errorf("with the token's file: %+v", got)
	}
	for _, p := range []*process{router, node} {
		p.stop()
		if strings.Contains(p.output(), "d4ta") || strings.Contains(p.output(), adminToken) {
			t.Errorf("a token is in the log: %s", p.output())
		}
	}
}

func TestOneFileIsServedAtTheRoot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "one.fenec")
	for range 2 {
		node := start(t, "node", "--file", file, "--http", "127.0.0.1:0")
		query(t, node.url(), "create collection if not exists writes (n int)")
		must(t, 201, "POST", node.url()+"/writes", `{"n": 1}`)
		must(t, 404, "GET", node.url()+"/t/acme/", "")
		node.stop()
	}
	if code, out := fenec(t, "check", file); code != exitOK || !strings.Contains(out, "writes: 2 documents") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

func TestTheHelpOfACommandIsOneText(t *testing.T) {
	for _, name := range []string{"up", "node", "shard", "import", "check", "ping", "standby", "version"} {
		var out, stderr bytes.Buffer
		if code := run([]string{"fenec", "help", name}, nil, &out, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Errorf("fenec help %s: exit code %d, %s", name, code, stderr.String())
		}
		if !strings.HasPrefix(out.String(), "fenec "+name+": ") {
			t.Errorf("fenec help %s begins with %.40q", name, out.String())
		}
	}
}
