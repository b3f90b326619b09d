package tenants

import (
	"errors"
	"os"
	"path/filepath"

	"fenec/replication"

	"github.com/go-json-experiment/json"
)

const (
	followsSuffix = ".follows"
	maxFollows    = 8 << 10 // bytes of such a file
)

// follows is the role of a copy that follows a tenant of another node. It is stored in `<tenant>.follows` beside the tenant's
// file: a tenant with such a file refuses writes, whatever its node is started with, and one without it is a primary.
type follows struct {
	From     string `json:"from,omitzero"`      // the address of the other node; empty for the node's --replica-of
	Lineage  string `json:"lineage,omitzero"`   // that the tenant there must have; empty for any
	Force    bool   `json:"force,omitzero"`     // take the tenant there whatever its lineage and term
	Read     bool   `json:"read,omitzero"`      // a read replica: no write waits for it
	CaughtUp bool   `json:"caught_up,omitzero"` // it has caught up since it was told to follow
}

func (s *Set) followsPath(name string) string { return filepath.Join(s.dir, name+followsSuffix) }

// readFollows returns the role of a copy that follows, nil for a primary. An unreadable file means that the copy follows nobody: it
// refuses writes until it is told what it is.
func (s *Set) readFollows(name string) (*follows, error) {
	text, err := s.readBeside(s.followsPath(name), maxFollows)
	if text == nil || err != nil {
		return nil, err
	}
	f := &follows{}
	if err := json.Unmarshal(text, f); err != nil {
		s.log.Warn().Str("tenant", name).Err(err).Msg("whom the tenant follows cannot be read: it refuses writes and follows nobody until it is told to")
		return &follows{From: unreadable}, nil
	}
	return f, nil
}

// unreadable is the address in a role that could not be read; no node has it.
const unreadable = "unreadable"

// writeFollows stores the role of a copy on disk. stays reports whether it may be there after an error.
func (s *Set) writeFollows(name string, f *follows) (stays bool, err error) {
	text, err := json.Marshal(f)
	if err != nil {
		return false, err
	}
	stays, err = s.storeBeside(s.followsPath(name), text)
	if err != nil {
		err = storageError("whom the tenant follows cannot be stored", err)
	}
	return stays, err
}

// removeFollows makes a copy a primary on disk. It may be called for one that is.
func (s *Set) removeFollows(name string) error {
	err := s.fs.Remove(s.followsPath(name))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = s.fs.SyncDir(s.dir)
	}
	if err != nil {
		return storageError("that the tenant follows no more cannot be stored", err)
	}
	return nil
}

// removeAnyFollows is removeFollows for a tenant that may have no such file.
func (s *Set) removeAnyFollows(name string) error {
	if _, err := s.fs.Stat(s.followsPath(name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.removeFollows(name)
}

// target returns what the Follower needs to know.
func (s *Set) target(f *follows) replication.Target {
	from := f.From
	if from == "" {
		from = s.config.ReplicaOf
	}
	return replication.Target{From: from, Lineage: f.Lineage, Force: f.Force, Counts: !f.Read, CaughtUp: f.CaughtUp}
}
