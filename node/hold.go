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
	probeName  = ".fenec-probe" // of the file that tests whether the directory can be written
	maxHold    = 4 << 10        // bytes of a hold's file
)

// hold is the reason why a tenant refuses writes. It is stored in `<tenant>.frozen` beside the tenant's file, on disk before
// it is answered, and removed from the disk before it ends: a node that stops in between still refuses writes after its
// restart, and never accepts ones that it had promised to refuse.
type hold struct {
	// Token names the freeze, or the move that installed the image: only a request with it, or without any, ends the hold.
	Token string `json:"token,omitzero"`
	// Held reports whether the tenant is an installed image that is not in service yet.
	Held bool `json:"held,omitzero"`
}

// named returns the hold under a token, which may be empty: h itself if it is under that token or none is given, or h with
// the token if it is an image without one, which takes the token of the first request that has one. ok is false for a hold
// under another token.
func (h hold) named(token string) (named hold, ok bool) {
	if token == "" || token == h.Token {
		return h, true
	}
	named = hold{Token: token, Held: h.Held}
	return named, h.Held && h.Token == ""
}

func (n *Node) holdPath(name string) string { return filepath.Join(n.dir, name+holdSuffix) }

// readHold returns the tenant's hold on disk, nil if there is none. An unreadable one still holds.
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

// writeHold replaces the hold on disk, which is nil for none, with a new one: a side file, synced, renamed, and the directory
// synced. If it fails it leaves no new file.
func (n *Node) writeHold(name string, old *hold, h hold) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	side := n.holdPath(name) + wal.SideSuffix
	renamed := false
	if err = n.writeSide(side, text); err == nil {
		if err = n.fs.Rename(side, n.holdPath(name)); err == nil {
			renamed = true
			err = n.fs.SyncDir(n.dir)
		}
	}
	if err == nil {
		return nil
	}
	if !renamed {
		n.fs.Remove(side) // it may not exist
	} else if old == nil {
		if undone := n.removeHold(name); undone != nil {
			n.log.Error().Str("tenant", name).Err(undone).
				Msg("a freeze failed and its file cannot be removed: the tenant is frozen once it is opened again")
		}
	}
	return storageError("the freeze cannot be stored", err)
}

// writeSide writes the text to a file and syncs it.
func (n *Node) writeSide(path string, text []byte) error {
	f, err := openForWriting(n.fs, path)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(text, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeHold removes a hold from the disk; a missing one is no error.
func (n *Node) removeHold(name string) error {
	err := n.fs.Remove(n.holdPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = n.fs.SyncDir(n.dir)
	}
	if err != nil {
		return storageError("the freeze cannot be removed", err)
	}
	return nil
}

// leftovers are the suffixes of files that an interrupted operation leaves: a hold, a database and an image that were being
// written.
var leftovers = []string{holdSuffix + wal.SideSuffix, fileSuffix + wal.SideSuffix, fileSuffix + ".incoming"}

// clearLeftovers removes the files that an interrupted operation left, and holds without a tenant.
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

// freeze refuses a tenant's writes before it returns, and returns the tenant's last change, which is on disk. A frozen tenant
// stays frozen; one frozen under another token is a conflict.
func (n *Node) freeze(name, token string, c condition) (seq uint64, err error) {
	err = n.held(name, c, func(t *tenant) error {
		old := t.hold.Load()
		h, ok := hold{Token: token}, true
		if old != nil {
			if h, ok = old.named(token); !ok {
				return errOtherToken(name)
			}
		}
		seq, err = t.db.Freeze()
		if err == nil {
			err = c.at(name, seq)
		}
		if err == nil && (old == nil || *old != h) {
			err = n.writeHold(name, old, h)
		}
		if err == nil {
			t.hold.Store(&h)
		} else if old == nil {
			t.db.Thaw()
		}
		return err
	})
	return seq, err
}

// thaw accepts a tenant's writes again and returns its last change. With a token it thaws only a tenant that is frozen under
// that token; one that is not frozen is no error.
//
// Two copies of a file never write in the same history. An image thawed under a token belongs to a move, whose source stays
// frozen under it, and continues the source's history. Any other image forks, and so does a source whose freeze has a token
// that the thaw does not have: an image of it may be in service.
func (n *Node) thaw(name, token string, c condition) (seq uint64, err error) {
	err = n.held(name, c, func(t *tenant) error {
		seq, _ = t.db.Position()
		if err := c.at(name, seq); err != nil {
			return err
		}
		h := t.hold.Load()
		if h == nil {
			return nil
		}
		if _, ok := h.named(token); !ok {
			return errOtherToken(name)
		}
		switch {
		case h.Held && token != "":
			t.db.GoOn()
		case h.Held, token != h.Token:
			if err := t.db.Fork(); err != nil {
				return err
			}
		}
		if err := n.removeHold(name); err != nil {
			return err
		}
		t.hold.Store(nil)
		t.db.Thaw()
		return nil
	})
	return seq, err
}

// held runs a change of a tenant's hold, alone and with the tenant open.
func (n *Node) held(name string, c condition, change func(t *tenant) error) error {
	return n.alone(name, c, func() error {
		t, err := n.acquireLocked(name)
		if err != nil {
			return err
		}
		defer n.release(t)
		return change(t)
	})
}

func errOtherToken(name string) error {
	return fail.New(fail.Conflict, "tenant %s is frozen, but not under this token", name)
}

// openForWriting creates or truncates a file that only the node's user may read.
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
