package tenants

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

// Expire deletes expired documents and idempotency keys from the open tenants. The Set calls it every second. It waits for
// their disks, so its goroutine is not the one that closes idle tenants.
func (s *Set) Expire() {
	s.Each(func(t *Tenant) {
		for range expireBlocks {
			if s.isEnding() {
				return
			}
			deleted, err := t.DB.Expire()
			if err != nil {
				s.log.Error().Str("tenant", t.Name).Err(err).Msg("deleting expired documents failed")
			}
			if err != nil || deleted < engine.ExpireBlock {
				return
			}
		}
	})
}

func (s *Set) isEnding() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
