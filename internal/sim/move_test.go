package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fenec/internal/vfs/crashfs"
)

// A node loses power at some operation of its disk while a tenant is moved from n1 to n2 under writers. Once it runs again,
// everything that was acknowledged is there and exactly one copy accepts writes.
func TestANodeLosesPowerInAMove(t *testing.T) {
	for _, lost := range []string{"n1", "n2"} {
		for at := range 10 {
			t.Run(fmt.Sprintf("%s at operation %d", lost, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, uint64(at))
					stop := c.writers()
					time.Sleep(time.Second)
					dark := make(chan struct{})
					c.nodes[lost].powerOffAfter(at, dark)
					moved := make(chan struct{})
					go func() {
						defer close(moved)
						c.ask("router", "POST", "/_shard/tenants/acme/move", `{"to": "n2"}`)
					}()
					select {
					case <-dark:
						c.nodes[lost].losePower()
					case <-time.After(time.Minute):
						t.Error("the move has fewer operations")
					}
					<-moved
					time.Sleep(5 * time.Second)
					acknowledged := stop()
					on := c.settled()
					c.check(acknowledged, on)
					if on == "n1" { // it was interrupted, and is done now if it is asked for again
						c.must(200, "router", "POST", "/_shard/tenants/acme/move", `{"to": "n2"}`)
					}
					c.check(acknowledged, c.settled())
				})
			})
		}
	}
}

// powerOffAfter has every operation of the disk fail after as many more, and closes dark at the first that does.
func (m *machine) powerOffAfter(operations int, dark chan struct{}) {
	left := operations
	m.disk.Hook(func(crashfs.Op, string) error {
		if left--; left >= 0 {
			return nil
		}
		if left == -1 {
			close(dark)
		}
		return crashfs.ErrPower
	})
}
