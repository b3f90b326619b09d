package tenants

import (
	"errors"
	"os"
	"path/filepath"

	"fenec/engine/fail"

	"github.com/go-json-experiment/json"
)

const (
	// MaxToken is the most bytes of the token of a freeze or an install.
	MaxToken = 512
	maxHold  = 8 * MaxToken // bytes of a hold's file, in which the token is escaped
)

// hold is the reason why a tenant refuses writes. It is stored in `<tenant>.frozen` beside the tenant's file, on disk before
// it is answered, and removed from the disk before it ends: a process that stops in between still refuses writes after
// its restart, and never accepts ones that it had promised to refuse.
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

func (s *Set) holdPath(name string) string { return filepath.Join(s.dir, name+holdSuffix) }

// readHold returns the tenant's hold on disk, nil if there is none. An unreadable one still holds.
func (s *Set) readHold(name string) (*hold, error) {
	text, err := s.readBeside(s.holdPath(name), maxHold)
	if text == nil || err != nil {
		return nil, err
	}
	h := &hold{}
	if err := json.Unmarshal(text, h); err != nil {
		s.log.Warn().Str("tenant", name).Err(err).Msg("the tenant's freeze cannot be read; it stays frozen until it is thawed")
		return &hold{}, nil
	}
	return h, nil
}

// writeHold replaces the hold on disk, which is nil for none, with a new one: a side file, synced, renamed, and the directory
// synced. If it fails, stays reports whether the new hold may be on disk all the same.
func (s *Set) writeHold(name string, old *hold, h hold) (stays bool, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		return false, err
	}
	renamed, err := s.storeBeside(s.holdPath(name), text)
	if err == nil {
		return true, nil
	}
	if renamed && old == nil {
		if undone := s.removeHold(name); undone != nil {
			stays = true
			s.log.Error().Str("tenant", name).Err(undone).
				Msg("a freeze failed and its file cannot be removed: the tenant stays frozen until it is thawed")
		}
	}
	return stays, storageError("the freeze cannot be stored", err)
}

// removeHold removes a hold from the disk; a missing one is no error. An earlier attempt may have removed the file and not
// synced the directory, so a hold that is known is removed once that has succeeded.
func (s *Set) removeHold(name string) error {
	err := s.fs.Remove(s.holdPath(name))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = s.fs.SyncDir(s.dir)
	}
	if err != nil {
		return storageError("the freeze cannot be removed", err)
	}
	return nil
}

// removeAnyHold is removeHold for a tenant that may have none.
func (s *Set) removeAnyHold(name string) error {
	if _, err := s.fs.Stat(s.holdPath(name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.removeHold(name)
}

// Freeze refuses a tenant's writes before it returns, and returns the tenant's last change, which is on disk. A frozen tenant
// stays frozen; one frozen under another token is a conflict. After an error the tenant is frozen only if its disk may say so:
// the router takes what the node reports for what is there after a restart.
func (s *Set) Freeze(name, token string, c Condition) (seq uint64, err error) {
	err = s.held(name, c, func(t *Tenant) error {
		old := t.hold.Load()
		h, ok := hold{Token: token}, true
		if old != nil {
			if h, ok = old.named(token); !ok {
				return errOtherToken(name)
			}
		}
		seq, err = t.DB.Freeze()
		if err == nil {
			err = c.at(name, seq)
		}
		stays := err == nil
		if err == nil && (old == nil || *old != h) {
			stays, err = s.writeHold(name, old, h)
		}
		if stays {
			t.hold.Store(&h)
		} else if old == nil {
			t.DB.Thaw()
		}
		return err
	})
	return seq, err
}

// Thaw accepts a tenant's writes again and returns its last change. With a token it thaws only a tenant that is frozen under
// that token; one that is not frozen is no error.
//
// Two copies of a file never write in the same history. An image thawed under a token belongs to a move, whose source stays
// frozen under it, and continues the source's history. Any other image forks, and so does a source whose freeze has a token
// that the thaw does not have: an image of it may be in service.
func (s *Set) Thaw(name, token string, c Condition) (seq uint64, err error) {
	err = s.held(name, c, func(t *Tenant) error {
		seq, _ = t.DB.Position()
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
			t.DB.GoOn()
		case h.Held, token != h.Token:
			if err := t.DB.Fork(); err != nil {
				return err
			}
		}
		if err := s.removeHold(name); err != nil {
			return err
		}
		t.hold.Store(nil)
		t.DB.Thaw()
		return nil
	})
	return seq, err
}

// held runs a change of a tenant's hold, alone and with the tenant open.
func (s *Set) held(name string, c Condition, change func(t *Tenant) error) error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	return s.alone(name, c, func() error {
		t, err := s.acquireLocked(name)
		if err != nil {
			return err
		}
		defer s.Release(t)
		return change(t)
	})
}

// State is whether a tenant refuses writes, and why.
type State struct {
	Frozen bool
	Token  string // under which it is frozen, if any
	Held   bool   // it is an installed image that is not in service yet
	Seq    uint64 // its last change
}

// State returns whether a tenant refuses writes. It opens the tenant if it is not open.
func (s *Set) State(name string) (State, error) {
	t, err := s.Acquire(name)
	if err != nil {
		return State{}, err
	}
	defer s.Release(t)
	h := t.hold.Load()
	seq, _ := t.DB.Position()
	if h == nil {
		return State{Seq: seq}, nil
	}
	return State{Frozen: true, Token: h.Token, Held: h.Held, Seq: seq}, nil
}

func errOtherToken(name string) error {
	return fail.New(fail.Conflict, "tenant %s is frozen, but not under this token", name)
}
