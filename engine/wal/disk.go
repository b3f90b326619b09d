package wal

import (
	"sync"

	"fenec/internal/vfs"
)

// disk is a log's file. Its syncs run one at a time, and none succeeds after one has failed: the kernel reports a page
// that it could not write only once, to the first sync of the descriptor, and considers it written from then on.
type disk struct {
	vfs.File

	syncing sync.Mutex
	failed  error
}

func (d *disk) Sync() error {
	d.syncing.Lock()
	defer d.syncing.Unlock()
	if d.failed == nil {
		d.failed = d.File.Sync()
	}
	return d.failed
}
