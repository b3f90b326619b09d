package tenants

import "sync/atomic"

// Budget is how much the tenants of a Set may have open and hold, and how much that is now. The owner of a Set makes it, with
// its limits, before it opens the Set.
type Budget struct {
	MaxOpen   int64        // tenants open at once
	MaxMemory int64        // bytes that they, and Others, may hold; 0 for no limit
	Others    func() int64 // returns the bytes that are held besides the open tenants; may be nil

	open   atomic.Int64 // tenants open or being opened
	memory atomic.Int64 // bytes the open tenants held when last measured
	files  atomic.Int64 // bytes of their files, likewise
	dead   atomic.Int64 // bytes of the files that a compact would remove
}

// Open returns how many tenants are open or being opened.
func (b *Budget) Open() int64 { return b.open.Load() }

// Memory returns how many bytes of memory the open tenants held when last measured.
func (b *Budget) Memory() int64 { return b.memory.Load() }

// Files returns how many bytes the files of the open tenants had when last measured.
func (b *Budget) Files() int64 { return b.files.Load() }

// Dead returns how many bytes of the open tenants' files a compact would have removed when last measured.
func (b *Budget) Dead() int64 { return b.dead.Load() }

// Held returns how many bytes the open tenants and Others hold.
func (b *Budget) Held() int64 {
	held := b.memory.Load()
	if b.Others != nil {
		held += b.Others()
	}
	return held
}

// count replaces the last measurement of a tenant in the sums.
func (b *Budget) count(t *Tenant, memory, file, dead int64) {
	b.memory.Add(memory - t.memory.Swap(memory))
	b.files.Add(file - t.file.Swap(file))
	b.dead.Add(dead - t.dead.Swap(dead))
}

// tight reports whether tenants should be closed before one that holds more bytes is opened.
func (b *Budget) tight(more int64) bool {
	return b.open.Load() > b.MaxOpen || b.MaxMemory > 0 && b.Held()+more > b.MaxMemory
}
