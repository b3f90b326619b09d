package node

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/http1"
	"fenec/internal/vfs"

	"github.com/go-json-experiment/json"
)

const (
	holdSuffix = ".frozen"
	probeName  = ".fenec-probe" // of the file that finds out whether the directory can be written
	maxHold    = 4 << 10        // bytes of a hold's file
)

// hold is why a tenant refuses writes. It is kept in `<tenant>.frozen` beside the tenant's file, on disk before it
// takes effect, and gone from the disk before it ends: a node that stops in between comes back refusing writes, never
// taking ones it had promised not to.
type hold struct {
	// Token names the freeze, so that whoever froze the tenant can tell later that nobody thawed it meanwhile.
	Token string `json:"token,omitzero"`
	// Held tells that the tenant is an installed image that nobody has put into service yet.
	Held bool `json:"held,omitzero"`
}

func (n *Node) holdPath(name string) string { return filepath.Join(n.dir, name+holdSuffix) }

// readHold is the tenant's hold on disk, nil where there is none. One that cannot be made out still holds.
func (n *Node) readHold(name string) (*hold, error) {
	f, err := n.fs.OpenFile(n.holdPath(name), os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(size, maxHold))
	if _, err := f.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h := &hold{}
	if err := json.Unmarshal(text, h); err != nil {
		n.log.Warn().Str("tenant", name).Err(err).Msg("the tenant's freeze cannot be read; it stays frozen until it is thawed")
		return &hold{}, nil
	}
	return h, nil
}

// writeHold puts a hold on disk: a side file, synced, renamed, and the directory synced.
func (n *Node) writeHold(name string, h hold) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	side := n.holdPath(name) + wal.SideSuffix
	f, err := openForWriting(n.fs, side)
	if err != nil {
		return storageError("the freeze cannot be kept", err)
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = n.fs.Rename(side, n.holdPath(name))
	}
	if err == nil {
		err = n.fs.SyncDir(n.dir)
	}
	if err != nil {
		return storageError("the freeze cannot be kept", err)
	}
	return nil
}

// removeHold takes a hold off the disk; none is fine.
func (n *Node) removeHold(name string) error {
	err := n.fs.Remove(n.holdPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = n.fs.SyncDir(n.dir)
	}
	if err != nil {
		return storageError("the freeze cannot be lifted", err)
	}
	return nil
}

// leftovers are the ends of files that an interrupted operation leaves behind: a hold, a database and an image that
// were being written.
var leftovers = []string{holdSuffix + wal.SideSuffix, fileSuffix + wal.SideSuffix, fileSuffix + ".incoming"}

// clearLeftovers removes what an interrupted operation left behind, and holds without their tenant.
func (n *Node) clearLeftovers() error {
	files, err := n.fs.ReadDir(n.dir)
	if err != nil {
		return storageError("the directory cannot be read", err)
	}
	for _, file := range files {
		if !n.isLeftover(file) {
			continue
		}
		if err := n.fs.Remove(filepath.Join(n.dir, file)); err != nil {
			return storageError("a leftover file cannot be removed", err)
		}
	}
	return nil
}

func (n *Node) isLeftover(file string) bool {
	if name, ok := strings.CutSuffix(file, holdSuffix); ok && http1.ValidTenant(name) {
		found, err := n.exists(name)
		return err == nil && !found
	}
	for _, end := range leftovers {
		if name, ok := strings.CutSuffix(file, end); ok && http1.ValidTenant(name) {
			return true
		}
	}
	return false
}

// freeze refuses a tenant's writes from the moment it returns, and answers the change the tenant then stands at, on
// disk. It may be asked again, by whoever holds the token or without one; a tenant frozen under another is a conflict.
func (n *Node) freeze(name, token string) (seq uint64, err error) {
	unlock := n.gates.lock(name)
	defer unlock()
	t, err := n.acquireLocked(name)
	if err != nil {
		return 0, err
	}
	defer n.release(t)
	h := hold{Token: token}
	old := t.hold.Load()
	if old != nil {
		h = *old
		if token != "" && h.Token != token {
			if h.Token != "" || !h.Held {
				return 0, errOtherToken(name)
			}
			h.Token = token // an image nobody has put into service: the freeze is the first to name it
		}
	}
	if old == nil || *old != h {
		if err := n.writeHold(name, h); err != nil {
			return 0, err
		}
	}
	t.hold.Store(&h)
	seq, err = t.db.Freeze()
	if err != nil && old == nil { // what was written before is not all on disk: nothing to freeze
		return 0, errors.Join(err, n.liftLocked(t))
	}
	return seq, err
}

// liftLocked ends a tenant's hold. It needs the gate.
func (n *Node) liftLocked(t *tenant) error {
	if err := n.removeHold(t.name); err != nil {
		return err
	}
	t.hold.Store(nil)
	t.db.Thaw()
	return nil
}

// thaw takes a tenant's writes again. With a token, only where the tenant is frozen under it or not at all.
func (n *Node) thaw(name, token string) (seq uint64, err error) {
	unlock := n.gates.lock(name)
	defer unlock()
	t, err := n.acquireLocked(name)
	if err != nil {
		return 0, err
	}
	defer n.release(t)
	if h := t.hold.Load(); h != nil {
		if token != "" && h.Token != token {
			return 0, errOtherToken(name)
		}
		if err := n.liftLocked(t); err != nil {
			return 0, err
		}
	}
	seq, _ = t.db.Position()
	return seq, nil
}

func errOtherToken(name string) error {
	return fail.New(fail.Conflict, "tenant %s is frozen, but not under this token", name)
}

// openForWriting opens a new or emptied file that only the node's user may read.
func openForWriting(fs vfs.FS, name string) (vfs.File, error) {
	return fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// storageError classifies a failed call of the file system.
func storageError(what string, err error) error {
	kind := fail.Storage
	if vfs.IsFull(err) {
		kind = fail.Full
	}
	return fail.New(kind, "%s: %s", what, vfs.Reason(err))
}
