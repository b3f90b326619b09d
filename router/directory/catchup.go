package directory

import (
	"errors"
	"time"

	"fenec/engine/fail"
	"fenec/engine/feed"
)

// foldTo folds what has changed in the file into the maps, at least up to a change that was acknowledged.
func (f *File[N]) foldTo(s *store, version uint64) error {
	f.folding.Lock()
	defer f.folding.Unlock()
	known := f.Version()
	if known >= version && version > 0 {
		return nil // another change has folded this one too
	}
	changes, now, err := s.since(known, version)
	if gone := (*feed.Gone)(nil); errors.As(err, &gone) {
		return f.foldAll(s)
	}
	if err != nil {
		return err
	}
	if err := f.fold(changes, now); err != nil { // the change is made all the same
		f.log.Error().Err(err).Msg("a node of the directory cannot be used")
	}
	return nil
}

// foldAll makes the maps the rows of the file, row by row. The caller holds folding, or has the only reference to f.
func (f *File[N]) foldAll(s *store) error {
	nodes, tenants, version, err := s.all()
	if err != nil {
		return err
	}
	return f.fold(f.changesTo(nodes, tenants, version), version)
}

// reopenEvery is the shortest time between two attempts to open the file again.
const reopenEvery = time.Second

// usable opens the file again if its disk has failed. It returns an error if the file is not open then.
func (f *File[N]) usable() error {
	f.shared.RLock()
	s, closed := f.store, f.closed
	f.shared.RUnlock()
	switch {
	case closed:
		return errClosed()
	case s != nil && s.failed() == nil:
		return nil
	}
	return f.reopen(s)
}

// reopen closes the store whose disk has failed and opens the file again, unless another goroutine has done so. The maps then
// show what is on disk: a row that has not changed stays the same value. Attempts are at least reopenEvery apart; before
// that, reopen returns why the last store failed.
func (f *File[N]) reopen(failed *store) error {
	f.shared.Lock()
	defer f.shared.Unlock()
	switch {
	case f.closed:
		return errClosed()
	case f.store != failed:
		return f.failure
	}
	if failed != nil {
		if f.failure = failed.failed(); f.failure == nil {
			f.failure = fail.New(fail.Storage, "the file has to be opened again")
		}
	}
	if time.Since(f.reopened) < reopenEvery {
		return f.failure
	}
	f.reopened = time.Now()
	if f.store != nil {
		f.store.close() // it has failed
		f.store = nil
	}
	s, err := openStore(f.path, f.opts)
	if err == nil {
		if err = f.foldTo(s, 0); err != nil {
			s.close() // the error of the fold is the one to return
		}
	}
	if err != nil {
		f.failure = err
		f.log.Error().Err(err).Msg("the directory cannot be opened again yet")
		return err
	}
	f.store, f.failure = s, nil
	f.log.Warn().Uint64("version", f.Version()).Msg("the directory is open again after its disk had failed")
	return nil
}
