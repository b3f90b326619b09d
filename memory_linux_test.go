package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peak is the most memory a process has held, in MiB.
func peak(t *testing.T, p *process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		t.Fatalf("no peak in %s", text)
	}
	return kib >> 10
}

// bounded wants that a process has never held more than some MiB; the race detector takes several times as much.
func bounded(t *testing.T, what string, p *process, most int) {
	t.Helper()
	if underRace {
		most *= 4
	}
	got := peak(t, p)
	t.Logf("%s: %d MiB at most", what, got)
	if got > most {
		t.Errorf("%s held %d MiB, want %d at most", what, got, most)
	}
}

// zeros reads zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// dozen opens twelve connections that send most of a body of 64 MB each, and leaves them open. It returns once none of them
// gets rid of more.
func dozen(t *testing.T, addr, head string) {
	t.Helper()
	sent := make(chan int64, 12)
	for range cap(sent) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		go func() {
			c.SetWriteDeadline(time.Now().Add(8 * time.Second)) // past what a body waits for room
			n, _ := io.Copy(c, io.LimitReader(zeros{}, 60<<20))
			sent <- n
		}()
	}
	total := int64(0)
	for range cap(sent) {
		total += receive(t, "a body is sent as far as it goes", sent)
	}
	t.Logf("%d MiB of %d were taken", total>>20, 12*60)
}

func TestADozenUnfinishedBodiesTakeABoundedMemory(t *testing.T) {
	for framing, head := range map[string]string{
		"with a length": "Content-Length: 64000000\r\n\r\n",
		"in chunks":     "Transfer-Encoding: chunked\r\n\r\n3d09000\r\n",
	} {
		t.Run(framing, func(t *testing.T) {
			t.Parallel()
			router := startRouter(t, t.TempDir()+"/shard.fenec")
			node := startNode(t, t.TempDir())
			record(t, router, "n1", node.addr)
			must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", "")
			query(t, router.url()+"/t/acme", "create collection c (s text)")
			for _, p := range []*process{router, node} {
				dozen(t, p.addr, "POST /t/acme/query HTTP/1.1\r\nHost: a\r\n"+head)
				for _, n := range []int{10, 100_000, 900_000} {
					must(t, 201, "POST", p.url()+"/t/acme/c", `{"s": "`+strings.Repeat("x", n)+`"}`)
				}
			}
			bounded(t, "the router", router, 320)
			bounded(t, "the node", node, 320)
			for _, name := range []string{router.url() + "/_metrics fenec_router_body_bytes ", node.url() + "/_metrics fenec_body_bytes "} {
				url, metric, _ := strings.Cut(name, " ")
				text := "\n" + must(t, 200, "GET", url, "")
				if i := strings.Index(text, "\n"+metric); i < 0 || strings.HasPrefix(text[i+1+len(metric):], "0\n") {
					t.Errorf("%s says that no bodies are held: %s", url, metric)
				}
			}
		})
	}
}
