package crashfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the file system as it would be after power loss now: a new one without faults, locks or open files. Of
// the changes since the last sync of each file and directory it keeps a prefix chosen by the seed, possibly with a part
// of the last write. Some file systems put a file's size on disk before its bytes, so a file sometimes keeps the length
// of what it lost, as zeros, or some of its pages in any order. The receiver is not changed.
func (fs *FS) Crash() *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.crashLocked(func(n int) int {
		switch fs.random.IntN(4) {
		case 0:
			return 0
		case 1:
			return n
		}
		return fs.random.IntN(n + 1)
	}, func() loss { return loss(fs.random.IntN(int(losses))) })
}

// loss is how a file loses its unsynced changes.
type loss int

const (
	cutOff  loss = iota // everything after some byte
	zeroed              // everything after some byte, with its length kept
	byPages             // page by page
	losses
)

// CrashKeeping is Crash with keep as the choice of how much survives: of a file's n unsynced bytes (a truncation counts
// as one), and of a directory's n unsynced changes. keep returns 0 to n.
func (fs *FS) CrashKeeping(keep func(n int) int) *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.crashLocked(keep, func() loss { return cutOff })
}

// DropCache calls DropCache on every file, as the system may do when memory is short.
func (fs *FS) DropCache() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, d := range fs.dirs {
		for _, n := range d.names {
			n.dropLocked()
		}
	}
}

func (fs *FS) crashLocked(keep func(n int) int, how func() loss) *FS {
	after := New(0)
	after.random = rand.New(rand.NewPCG(fs.random.Uint64(), 0))
	copies := map[*inode]*inode{}
	// Sorted by name, so that a seed always makes the same choices.
	for _, path := range slices.Sorted(maps.Keys(fs.dirs)) {
		d := fs.dirs[path]
		names := maps.Clone(d.durable)
		for _, change := range d.unsynced[:keep(len(d.unsynced))] {
			change(names)
		}
		found := newDir()
		for _, name := range slices.Sorted(maps.Keys(names)) {
			n := names[name]
			if copies[n] == nil {
				copies[n] = n.crashed(after, keep, how())
			}
			found.names[name] = copies[n]
		}
		found.durable = maps.Clone(found.names)
		after.dirs[path] = found
	}
	return after
}

// crashed returns the file as power loss would leave it.
func (n *inode) crashed(fs *FS, keep func(n int) int, how loss) *inode {
	b := replay(bytes.Clone(n.durable), n.unsynced, keep(cost(n.unsynced)))
	switch {
	case how == zeroed && len(b) < len(n.data):
		b = resize(b, int64(len(n.data)))
	case how == byPages && len(n.unsynced) > 0:
		b = n.somePages(fs.random)
	}
	return &inode{fs: fs, data: b, durable: bytes.Clone(b)}
}
