package importer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// state is what the state file holds. It identifies an import; the position is in
// the tenant.
type state struct {
	Import     string `json:"import"` // the key of the position row
	Target     string `json:"target"`
	Collection string `json:"collection"`
	Created    bool   `json:"created"` // this import creates the collection
	Begun      bool   `json:"begun"`   // the tenant has the position row
	Done       bool   `json:"done"`    // every line is imported; only the cleanup is left
}

// loadState reads the state of an earlier run, or returns a new one if the file
// does not exist. It refuses the state of another import.
func loadState(path, target, collection string) (*state, error) {
	fresh := &state{Import: rand.Text(), Target: target, Collection: collection}
	if path == "" {
		return fresh, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state file: %w", err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil || s.Import == "" {
		return nil, fmt.Errorf("%s is not a state file of an import; name another with --state", path)
	}
	if s.Target != target || s.Collection != collection {
		return nil, fmt.Errorf("%s belongs to an unfinished import into %s of %s; finish that one, or remove the file to forget it", path, s.Collection, s.Target)
	}
	return &s, nil
}

// save replaces the state file by a rename, so that a reader finds either the old
// state or the new one.
func (s *state) save(path string) error {
	if path == "" {
		return nil
	}
	content, err := json.Marshal(s, jsontext.Multiline(true))
	if err != nil {
		return err
	}
	side := path + ".tmp"
	if err := writeSynced(side, append(content, '\n')); err != nil {
		return fmt.Errorf("write the state file (use --state for another path): %w", err)
	}
	if err := os.Rename(side, path); err != nil {
		return fmt.Errorf("write the state file (use --state for another path): %w", err)
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// remove removes the state file.
func (s *state) remove(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the state file: %w", err)
	}
	return nil
}
