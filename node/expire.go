package node

import (
	"time"

	"fenec/engine"
)

const (
	// expireEvery is how often expired documents are looked for.
	expireEvery = time.Second
	// expireBlocks is how many blocks of them are deleted from one tenant before the next has its turn.
	expireBlocks = 16
)

// expire deletes documents whose ttl is over, and idempotency keys whose time is, from the tenants that are open. It
// waits for their disks, so it has a goroutine apart from the one that closes idle tenants.
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
