package crashfs

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
)

// inode is a file's current bytes, those on disk, and the changes between the two.
type inode struct {
	fs       *FS
	data     []byte
	durable  []byte
	unsynced []change
	// lost are new pages that a failed Sync did not write to disk. As on ext4, they stay lost whatever is written to
	// them, until they are dropped from the cache or truncated.
	lost map[int]bool
}

// change is one write or, if data is nil, one truncation to off.
type change struct {
	off  int64
	data []byte
}

// cost returns the weight of the change when choosing how many of a file's changes survive: its bytes, 1 for a
// truncation.
func (c change) cost() int {
	if c.data == nil {
		return 1
	}
	return len(c.data)
}

// apply applies the first part of the change to b, in units of its cost.
func (c change) apply(b []byte, part int) []byte {
	if part == 0 {
		return b
	}
	if c.data == nil {
		return resize(b, c.off)
	}
	if end := c.off + int64(part); int64(len(b)) < end {
		b = resize(b, end)
	}
	copy(b[c.off:], c.data[:part])
	return b
}

// resize truncates b, or extends it with zeros.
func resize(b []byte, size int64) []byte {
	if n := size - int64(len(b)); n > 0 {
		return append(b, make([]byte, n)...)
	}
	return b[:size:size]
}

// replay applies changes to b up to a total cost of keep.
func replay(b []byte, changes []change, keep int) []byte {
	for _, c := range changes {
		part := min(keep, c.cost())
		b = c.apply(b, part)
		keep -= part
	}
	return b
}

func cost(changes []change) (total int) {
	for _, c := range changes {
		total += c.cost()
	}
	return total
}

// pageSize is the unit in which a file system writes, in bytes.
const pageSize = 4096

// somePages returns the file as on disk after some of its pages were written, in any order. A page that was not written
// keeps its previous content, or zeros past the previous end. A file that has grown may end with its last written page.
func (n *inode) somePages(random *rand.Rand) []byte {
	b := resize(bytes.Clone(n.durable), int64(len(n.data)))
	end := min(len(n.durable), len(b))
	for off := 0; off < len(b); off += pageSize {
		if random.IntN(2) == 0 {
			to := min(off+pageSize, len(b))
			copy(b[off:to], n.data[off:to])
			end = max(end, to)
		}
	}
	if random.IntN(2) == 0 {
		b = b[:end]
	}
	return b
}

func (n *inode) changeLocked(c change) {
	before := int64(len(n.data))
	n.data = c.apply(n.data, c.cost())
	n.fs.freeLocked(before - int64(len(n.data)))
	n.unsynced = append(n.unsynced, c)
}

func (n *inode) truncateLocked(size int64) {
	n.changeLocked(change{off: size})
	maps.DeleteFunc(n.lost, func(page int, _ bool) bool { return int64(page)*pageSize >= size })
}

// withoutLost restores the lost pages in b, which is about to be on disk, to their previous content.
func (n *inode) withoutLost(b []byte) []byte {
	for page := range n.lost {
		if from := page * pageSize; from < len(b) {
			part := b[from:min(from+pageSize, len(b))]
			clear(part)
			if from < len(n.durable) {
				copy(part, n.durable[from:])
			}
		}
	}
	return b
}

// loseLocked records the new pages that a failed Sync did not write; before is the previous content on disk.
func (n *inode) loseLocked(before []byte) {
	for page := (len(before) + pageSize - 1) / pageSize; page*pageSize < len(n.data); page++ {
		from, to := page*pageSize, min((page+1)*pageSize, len(n.data))
		if to <= len(n.durable) && bytes.Equal(n.durable[from:to], n.data[from:to]) {
			continue
		}
		if n.lost == nil {
			n.lost = map[int]bool{}
		}
		n.lost[page] = true
	}
}

// dropLocked replaces the pages that count as written with those on disk.
func (n *inode) dropLocked() {
	before := len(n.data)
	n.data = replay(bytes.Clone(n.durable), n.unsynced, cost(n.unsynced))
	n.fs.freeLocked(int64(before - len(n.data)))
	maps.DeleteFunc(n.lost, func(page int, _ bool) bool {
		return !slices.ContainsFunc(n.unsynced, func(c change) bool {
			return c.off < int64(page+1)*pageSize && c.off+int64(len(c.data)) > int64(page)*pageSize
		})
	})
}

// freeLocked adds bytes to the free space; a negative value takes them from it.
func (fs *FS) freeLocked(bytes int64) {
	if fs.space >= 0 {
		fs.space = max(0, fs.space+bytes)
	}
}

type file struct {
	*inode
	name     string
	writable bool
	closed   bool
}

func (f *file) usableLocked(op string, write bool) error {
	switch {
	case f.closed:
		return pathError(op, f.name, os.ErrClosed)
	case write && !f.writable:
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	if err := f.usableLocked("read", false); err != nil {
		return 0, err
	}
	if off >= int64(len(f.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes p. If the operation fails or the space runs out, a part of p may be applied.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	failed := f.fs.faults.check(Write, f.name)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usableLocked("write", true); err != nil {
		return 0, err
	}
	part := len(p)
	if failed != nil {
		part = f.fs.random.IntN(len(p) + 1)
	}
	if f.fs.space >= 0 {
		if room := int64(len(f.data)) + f.fs.space - off; room < int64(part) {
			part, failed = int(max(0, room)), syscall.ENOSPC
		}
	}
	if part > 0 {
		f.changeLocked(change{off: off, data: bytes.Clone(p[:part])})
	}
	if failed != nil {
		return part, pathError("write", f.name, failed)
	}
	return part, nil
}

func (f *file) Truncate(size int64) error {
	failed := f.fs.faults.check(Truncate, f.name)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usableLocked("truncate", true); err != nil {
		return err
	}
	if failed != nil {
		return pathError("truncate", f.name, failed)
	}
	f.truncateLocked(size)
	return nil
}

// Sync writes the file's changes to disk. If it fails, only a part of them is on disk, either a prefix or some of the
// pages, and the rest never will be: as on Linux, all of them count as written, and the next Sync covers only later
// changes. Reads still return them until the cache is dropped.
func (f *file) Sync() error {
	failed := f.fs.faults.check(Sync, f.name)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usableLocked("sync", false); err != nil {
		return err
	}
	all := cost(f.unsynced)
	if failed == nil && len(f.lost) == 0 {
		f.durable, f.unsynced = replay(f.durable, f.unsynced, all), nil
		return nil
	}
	before := bytes.Clone(f.durable)
	b := before
	switch {
	case failed == nil:
		b = replay(bytes.Clone(before), f.unsynced, all)
	case f.fs.random.IntN(2) == 0:
		b = replay(bytes.Clone(before), f.unsynced, f.fs.random.IntN(all+1))
	default:
		b = f.somePages(f.fs.random)
	}
	f.durable, f.unsynced = f.withoutLost(b), nil
	if failed != nil {
		f.loseLocked(before)
	}
	if failed != nil && !errors.Is(failed, ErrSilent) {
		return pathError("sync", f.name, failed)
	}
	return nil
}

// DropCache makes the file return what is on disk, with the changes since its last Sync.
func (f *file) DropCache() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usableLocked("drop", false); err != nil {
		return err
	}
	f.dropLocked()
	return nil
}

func (f *file) Size() (int64, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	if err := f.usableLocked("stat", false); err != nil {
		return 0, err
	}
	return int64(len(f.data)), nil
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usableLocked("close", false); err != nil {
		return err
	}
	f.closed = true
	f.fs.open--
	return nil
}
