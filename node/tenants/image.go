package tenants

import (
	"errors"
	"io"
	"os"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
)

// Image is a tenant's file as of a change. The tenant is in use until it is closed.
type Image struct {
	Size    int64  // in bytes
	Seq     uint64 // the change
	History string // of the change

	file   io.ReadCloser
	set    *Set
	tenant *Tenant
}

// OpenImage opens the image of a tenant as of now. The caller closes it.
func (s *Set) OpenImage(name string) (*Image, error) {
	t, err := s.Acquire(name)
	if err != nil {
		return nil, err
	}
	i := &Image{set: s, tenant: t}
	err = s.withDescriptor(func() (err error) {
		i.file, i.Size, i.Seq, err = t.DB.OpenImage()
		return err
	})
	if err != nil {
		s.Release(t)
		return nil, classified("the image cannot be opened", err)
	}
	_, i.History = t.DB.Position()
	return i, nil
}

// Read reads the image.
func (i *Image) Read(p []byte) (int, error) { return i.file.Read(p) }

// Sync waits until all of the image is on disk.
func (i *Image) Sync() error { return i.tenant.DB.Sync() }

// Gone returns a channel that is closed when the image must be closed although it is not read to its end: its tenant is being
// deleted, or the Set ends.
func (i *Image) Gone() <-chan struct{} { return i.tenant.Gone() }

// Close closes the image and releases its tenant.
func (i *Image) Close() error {
	defer i.set.Release(i.tenant)
	if err := i.file.Close(); err != nil {
		return classified("the image cannot be closed", err)
	}
	return nil
}

// Install installs an image as a new tenant, which serves reads and refuses writes until it is thawed. It reads the image to
// its end; size is its length in bytes, negative if unknown. A thaw with the token puts the tenant into service; without a
// token, that of the first request that has one. The hold is on disk before the file appears, so the copy never accepts
// writes in between.
func (s *Set) Install(name, token string, c Condition, image io.Reader, size int64) (seq uint64, err error) {
	if err := s.CheckWritable(); err != nil {
		return 0, err
	}
	h := hold{Token: token, Held: true}
	err = s.alone(name, c, func() error {
		if err = s.mustBeFree(name, c); err == nil {
			_, err = s.writeHold(name, nil, h)
		}
		if err == nil {
			seq, err = s.installLocked(name, h, image, size)
		}
		return err
	})
	return seq, err
}

func (s *Set) installLocked(name string, h hold, image io.Reader, size int64) (seq uint64, err error) {
	s.budget.open.Add(1)
	s.makeRoom(max(size, 0))
	o, changes := s.engineOptions(name)
	db, err := engine.InstallImage(s.path(name), image, o)
	if err == nil {
		s.refusals.forget(name)
		return s.putIn(name, h, db, changes)
	}
	s.budget.open.Add(-1)
	if errors.Is(err, os.ErrExist) {
		return 0, errTaken(name) // the file was created by hand meanwhile; its hold stays, to be safe
	}
	if found, existsErr := s.exists(name); existsErr == nil && !found {
		err = errors.Join(classified("the image cannot be installed", err), s.removeHold(name))
	}
	return 0, err
}

// putIn registers a database just installed as an open, held tenant, so that its first request need not read the file. It
// needs the gate.
func (s *Set) putIn(name string, h hold, db *engine.DB, changes *feed.Feed) (seq uint64, err error) {
	seq, _ = db.Position()
	s.ending.RLock()
	defer s.ending.RUnlock()
	if s.ended {
		return seq, db.Close()
	}
	s.admit(s.newHeldTenant(name, db, changes, &h))
	s.makeRoom(0)
	return seq, nil
}

// CheckWritable returns an error if the Set only reads.
func (s *Set) CheckWritable() error {
	if s.config.Engine.ReadOnly {
		return fail.New(fail.ReadOnly, "the node is read-only")
	}
	return nil
}
