package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// crowdEnv is the environment variable with the directory for the test binary to serve as a node with few descriptors.
const crowdEnv = "FENEC_TEST_CROWD"

const crowdDescriptors = 256

// serveCrowd is the child process of TestMoreTenantsThanDescriptorsAreServed. It runs a node with few descriptors and
// little memory until its standard input ends, and returns the exit code.
func serveCrowd(dir string) int {
	limit := unix.Rlimit{Cur: crowdDescriptors, Max: crowdDescriptors}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n, err := New(Config{Dir: dir, AdminToken: adminToken, MaxMemory: 4 << 20})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go n.Serve(l)
	fmt.Println(l.Addr())
	os.Stdin.Read(make([]byte, 1))
	if err := n.Shutdown(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestMoreTenantsThanDescriptorsAreServed(t *testing.T) {
	const tenants, clients = 576, 48
	dir := t.TempDir()
	r := start(t, Config{Dir: dir})
	r.fill("t0", 10)
	r.stop()
	image, err := os.ReadFile(dir + "/t0.fenec")
	if err != nil {
		t.Fatal(err)
	}
	for i := range tenants {
		if err := os.WriteFile(fmt.Sprintf("%s/t%d.fenec", dir, i), image, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crowdEnv+"="+dir)
	var failure bytes.Buffer
	child.Stderr = &failure
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := child.Wait(); err != nil {
			t.Errorf("the node failed: %v\n%s", err, failure.String())
		}
	}()
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatalf("the node did not start: %v\n%s", err, failure.String())
	}

	far := &running{t: t, url: "http://" + address, client: newClient()}
	defer far.client.CloseIdleConnections()
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := range tenants / clients {
				tenant := "t" + strconv.Itoa(i*clients+c)
				got, err := far.send("GET", "/t/"+tenant+"/c?count", "")
				if err != nil || got.body != `{"count":10}` {
					t.Errorf("%s: got %d %s, %v, want a count of 10", tenant, got.status, got.body, err)
				}
				if _, err := far.send("PATCH", "/t/"+tenant+"/c?id=3", `{"n": 7}`); err != nil {
					t.Errorf("%s: %v", tenant, err)
				}
			}
		})
	}
	group.Wait()
}
