package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// startWithFew runs fenec with so many descriptors.
func startWithFew(t *testing.T, descriptors int, args ...string) *process {
	t.Helper()
	script := fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, descriptors)
	return startCommand(t, exec.Command("sh", append([]string{"-c", script, binary(t)}, args...)...))
}

// crowd is clients that connect at once, ask again and again over the connection that each keeps, and leave together.
type crowd struct {
	mu       sync.Mutex
	statuses map[int]int
	wrong    []string
}

func (c *crowd) run(t *testing.T, addr string, clients, requests int) {
	t.Helper()
	var all, asked sync.WaitGroup
	stay := make(chan struct{})
	asked.Add(clients)
	for range clients {
		all.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				c.fails("it cannot connect: %v", err)
				asked.Done()
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			in := bufio.NewReader(conn)
			for range requests {
				if !c.ask(conn, in) {
					break
				}
			}
			asked.Done()
			<-stay
		})
	}
	asked.Wait()
	close(stay)
	all.Wait()
	for _, wrong := range c.wrong {
		t.Error(wrong)
	}
	t.Logf("answers by their status: %v", c.statuses)
}

// ask reports whether the connection goes on.
func (c *crowd) ask(conn net.Conn, in *bufio.Reader) bool {
	io.WriteString(conn, requestText("GET", "/t/acme/writes?count", ""))
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		c.fails("no answer: %v", err)
		return false
	}
	body, err := io.ReadAll(resp.Body)
	c.mu.Lock()
	c.statuses[resp.StatusCode]++
	c.mu.Unlock()
	switch {
	case err != nil:
		c.fails("half an answer: %v", err)
	case resp.StatusCode == 200:
	case resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "":
		c.fails("answered %d %s", resp.StatusCode, body)
	}
	return !resp.Close
}

func (c *crowd) fails(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 10 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func TestMoreClientsThanDescriptorsAreTurnedAwayInOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ descriptors, clients int }{{96, 200}, {128, 125}, {256, 400}} {
		t.Run(fmt.Sprintf("%d clients, %d descriptors", tc.clients, tc.descriptors), func(t *testing.T) {
			few := startWithFew(t, tc.descriptors, "node", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--admin-token", adminToken)
			makeTenant(t, few, "acme")
			t.Run("at a node", func(t *testing.T) { turnedAway(t, few, tc.clients) })

			router := startWithFew(t, tc.descriptors, "shard", "--listen", "127.0.0.1:0", "--directory", t.TempDir()+"/shard.fenec")
			record(t, router, "n1", startNode(t, t.TempDir()).addr)
			must(t, 201, "PUT", router.url()+"/_shard/tenants/acme", `{"node": "n1"}`)
			query(t, router.url()+"/t/acme", "create collection writes (n int)")
			t.Run("at a router", func(t *testing.T) { turnedAway(t, router, tc.clients) })
		})
	}
}

// turnedAway has a crowd at a process, of which some are served and the others told to come back, and all are served once
// the crowd has left.
func turnedAway(t *testing.T, p *process, clients int) {
	t.Helper()
	c := &crowd{statuses: map[int]int{}}
	c.run(t, p.addr, clients, 20)
	if c.statuses[200] < 20 {
		t.Errorf("%d requests were served", c.statuses[200])
	}
	eventually(t, "there is room", func() bool {
		a, err := request("GET", p.url()+"/t/acme/writes?count", "")
		return err == nil && a.status == 200
	})
}
