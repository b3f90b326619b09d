package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
	if refusedImport.code != exitFailed || !strings.Contains(refusedImport.stderr, "requires a token") {
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
