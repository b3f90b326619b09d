package crashfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash answers the file system as it would be found after power loss now: a new one without faults, locks or open
// files. Of the changes since the last sync of each file and directory a prefix chosen by the seed is kept, the last
// write of it maybe in part. At times, as file systems do that put a file's size on disk before its bytes, a file keeps
// the length of what it lost, as zeros; or some of its pages are kept, in no order. The one it is called on goes on as it
// was.
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

// loss is how a file loses what was not synced.
type loss int

const (
	cutOff  loss = iota // from some byte on
	zeroed              // from some byte on, its length kept
	byPages             // page by page
	losses
)

// CrashKeeping is Crash where keep says how much survives: of a file's n unsynced bytes (a truncation counts as one),
// of a directory's n unsynced changes. It answers 0 to n.
func (fs *FS) CrashKeeping(keep func(n int) int) *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.crashLocked(keep, func() loss { return cutOff })
}

// DropCache is that of every file, as when memory runs short.
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
	// In the order of the names: the seed's choices must fall alike each time.
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

// crashed is the file as power loss would leave it.
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
