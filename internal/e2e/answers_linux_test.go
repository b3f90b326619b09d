package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowClient is a client that has sent a request and read no more of its answer than the status.
type slowClient struct {
	conn   net.Conn
	status string
}

// readNothing sends a request over each of n connections at once, and returns once the answers of all have begun.
func readNothing(t *testing.T, n int, addr, head string) []slowClient {
	t.Helper()
	clients := make([]slowClient, n)
	for i := range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.(*net.TCPConn).SetReadBuffer(16 << 10)
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
		clients[i].conn = c
	}
	for i := range clients {
		c := clients[i].conn
		c.SetReadDeadline(time.Now().Add(patience))
		start := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, start); err != nil {
			t.Fatal(err)
		}
		clients[i].status = string(start[len("HTTP/1.1 "):])
	}
	return clients
}

// rest is the whole answer of a client that goes on reading.
func (u slowClient) rest(t *testing.T) (*http.Response, string) {
	t.Helper()
	u.conn.(*net.TCPConn).SetReadBuffer(1 << 20)
	u.conn.SetReadDeadline(time.Now().Add(patience))
	resp, err := http.ReadResponse(bufio.NewReaderSize(io.MultiReader(strings.NewReader("HTTP/1.1 "+u.status), u.conn), 4<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %d bytes of an answer: %v", len(body), err)
	}
	return resp, string(body)
}

// rowsOf29MB makes a tenant whose rows take about 29 MB, and returns them as they are answered.
func rowsOf29MB(t *testing.T, tenant string) string {
	t.Helper()
	query(t, tenant, "create collection c (s text)")
	for range 10 {
		row := `{"s": "` + strings.Repeat("x", 29_000) + `"}`
		must(t, 201, "POST", tenant+"/c", "["+strings.TrimSuffix(strings.Repeat(row+",", 100), ",")+"]")
	}
	return must(t, 200, "GET", tenant+"/c", "")
}

// TestClientsThatDoNotReadTheirAnswersTakeABoundedMemory has two dozen clients ask for 29 MB each and read nothing: as many
// are answered as there is room for, the others are turned away after a while, and what waits is counted.
func TestClientsThatDoNotReadTheirAnswersTakeABoundedMemory(t *testing.T) {
	for _, routed := range []bool{false, true} {
		t.Run(map[bool]string{false: "straight", true: "through a router"}[routed], func(t *testing.T) {
			node := startNode(t, t.TempDir(), "--max-memory", "256")
			at := node
			if routed {
				at = startRouter(t, t.TempDir()+"/shard.fenec")
				record(t, at, "n1", node.addr)
				must(t, 201, "PUT", at.url()+"/_shard/tenants/acme", "")
			} else {
				must(t, 201, "PUT", node.url()+"/_admin/tenants/acme", "")
			}
			tenant := at.url() + "/t/acme"
			want := rowsOf29MB(t, tenant)
			before := metric(t, node, "fenec_memory_bytes")
			clients := readNothing(t, 24, at.addr, "GET /t/acme/c HTTP/1.1\r\nHost: a\r\n\r\n")
			waiting := 0
			for _, c := range clients {
				if c.status == "200" {
					waiting += len(want)
				}
			}
			counted, answers := metric(t, node, "fenec_memory_bytes"), metric(t, node, "fenec_answer_bytes")
			t.Logf("%d MiB of answers wait, %d are counted; the node holds %d MiB", waiting>>20, answers>>20, memoryOf(t, node, "VmRSS:"))
			least := waiting
			if routed {
				least = 0 // the sockets between node and router may take whole answers
			}
			if answers < least || answers > waiting+waiting/3 || counted < before/2+answers {
				t.Errorf("answers of %d bytes wait, %d are counted, of %d in all, before %d", waiting, answers, counted, before)
			}
			must(t, 200, "GET", tenant+"/c?id=eq.1", "")
			must(t, 201, "POST", tenant+"/c", `{"s": "`+strings.Repeat("x", 100_000)+`"}`)
			for _, c := range clients {
				resp, body := c.rest(t)
				switch {
				case resp.StatusCode == 200 && body == want:
				case resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "1":
				default:
					t.Errorf("an answer is %d with %d bytes, want 200 with %d or 503", resp.StatusCode, len(body), len(want))
				}
			}
			eventually(t, "what the answers took is given back", func() bool { return metric(t, node, "fenec_answer_bytes") == 0 })
			must(t, 200, "GET", tenant+"/c", "")
			bounded(t, "the node", node, 640)
			if routed {
				bounded(t, "the router", at, 128)
			}
		})
	}
}
