package e2e

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
func peak(t *testing.T, p *process) int { return memoryOf(t, p, "VmHWM:") }

// memoryOf is a line of what the system says of a process's memory, in MiB.
func memoryOf(t *testing.T, p *process, line string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), line)
	kib, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		t.Fatalf("no %s in %s", line, text)
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

// TestWhatAFileHeldInMemoryBeforeACompactionGoesBackToTheSystem updates documents of 96 MB in all, each whole, until the node
// has compacted their file three times.
func TestWhatAFileHeldInMemoryBeforeACompactionGoesBackToTheSystem(t *testing.T) {
	node := startNode(t, t.TempDir(), "--sync", "off", "--replication-buffer", "1")
	tenant := makeTenant(t, node, "acme")
	query(t, tenant, "create collection c (s text)")
	body := `{"s": "` + strings.Repeat("x", 1<<20) + `"}`
	for range 96 {
		must(t, 201, "POST", tenant+"/c", body)
	}
	updates := 0
	for round := range 3 {
		done := func() bool { return metric(t, node, `fenec_compactions_total{result="done"}`) > round }
		for !done() && metric(t, node, "fenec_compactions_running") == 0 {
			if updates++; updates > 1000 {
				t.Fatalf("%d documents of 1 MiB were updated, and their file of 96 is not compacted: %s", updates, node.output())
			}
			must(t, 200, "PATCH", fmt.Sprintf("%s/c?id=%d", tenant, 1+updates%96), body)
		}
		eventually(t, "the file is compacted", done)
	}
	must(t, 200, "GET", node.url()+"/_admin/stats", "") // which measures
	counted := metric(t, node, "fenec_memory_bytes") >> 20
	resident := memoryOf(t, node, "VmRSS:")
	t.Logf("after %d updates %d MiB are resident, %d are counted", updates, resident, counted)
	if underRace { // which holds on to several times as much
		return
	}
	if most := counted + counted/4 + 96; resident > most {
		t.Errorf("%d MiB are resident, want %d at most: %d are counted", resident, most, counted)
	}
}

// metric is the value of one metric of a node, which has to be a whole number.
func metric(t *testing.T, node *process, name string) int {
	t.Helper()
	text := "\n" + must(t, 200, "GET", node.url()+"/_metrics", "")
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	value, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if err != nil {
		t.Fatalf("no %s in %s", name, text)
	}
	return int(value)
}

// TestAnInsertOfMillionsOfDocumentsTakesABoundedMemory sends five million documents in 45 MB, which take many times that
// until they are written.
func TestAnInsertOfMillionsOfDocumentsTakesABoundedMemory(t *testing.T) {
	node := startNode(t, t.TempDir(), "--max-memory", "256")
	tenant := makeTenant(t, node, "acme")
	query(t, tenant, "create collection c (n int)")
	must(t, 413, "POST", tenant+"/c", "["+strings.Repeat(`{"n": 1},`, 5_000_000)+"{}]")
	must(t, 201, "POST", tenant+"/c", "["+strings.Repeat(`{"n": 1},`, 200_000)+"{}]")
	bounded(t, "the node", node, 440)
}
