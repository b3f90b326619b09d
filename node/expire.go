package node

import (
	"time"

	"fenec/engine"
)

const (
	// expireEvery is how often expired documents are searched for.
	expireEvery = time.Second
	// expireBlocks is how many blocks of them are deleted from one tenant before the next tenant.
	expireBlocks = 16
)

// expire deletes expired documents and idempotency keys from the open tenants. It waits for their disks, so its goroutine is
// not the one that closes idle tenants.
func (n *Node) expire() {
	n.eachOpen(func(t *tenant) {
		for range expireBlocks {
			if n.stopping.Load() {
				return
			}
			deleted, err := t.db.Expire()
			if err != nil {
				n.log.Error().Str("tenant", t.name).Err(err).Msg("deleting expired documents failed")
			}
			if err != nil || deleted < engine.ExpireBlock {
				return
			}
		}
	})
}
