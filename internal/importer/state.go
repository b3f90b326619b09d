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

// state is what an import keeps beside its input: which import it is. Where it
// stands is kept by the tenant.
type state struct {
	Import     string `json:"import"` // the position row's name
	Target     string `json:"target"`
	Collection string `json:"collection"`
	Created    bool   `json:"created"` // this import makes the collection
	Begun      bool   `json:"begun"`   // the tenant has the position row
	Done       bool   `json:"done"`    // every line is imported; what is left is clearing up
}

// loadState reads the state of an earlier run, or begins one where there is no
// file. It refuses the file of another import.
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
		return nil, fmt.Errorf("the state file cannot be read: %w", err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil || s.Import == "" {
		return nil, fmt.Errorf("%s is no state file of an import", path)
	}
	if s.Target != target || s.Collection != collection {
		return nil, fmt.Errorf("%s belongs to an unfinished import into %s of %s; finish that one, or remove the file to forget it", path, s.Collection, s.Target)
	}
	return &s, nil
}

// save writes the state by rename, so that a reader finds the old one or the new.
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
		return fmt.Errorf("the state file cannot be written (--state names another): %w", err)
	}
	if err := os.Rename(side, path); err != nil {
		return fmt.Errorf("the state file cannot be written (--state names another): %w", err)
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

// remove forgets the import.
func (s *state) remove(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the state file cannot be removed: %w", err)
	}
	return nil
}
