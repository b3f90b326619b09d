package tenants

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"
	"fenec/internal/random"
	"fenec/replication"
)

// Connector is how a Set reaches the nodes that its tenants follow.
type Connector interface {
	// Connect returns a connection on which the frames of package replication are sent.
	Connect(ctx context.Context, addr string) (net.Conn, error)
	// Image returns the image of a tenant.
	Image(ctx context.Context, addr, tenant string) (image io.ReadCloser, size int64, err error)
}

// unconnected is the Connector of a Set that can follow nothing.
type unconnected struct{}

var errUnconnected = errors.New("the node has no --replication-token")

func (unconnected) Connect(context.Context, string) (net.Conn, error) { return nil, errUnconnected }

func (unconnected) Image(context.Context, string, string) (io.ReadCloser, int64, error) {
	return nil, 0, errUnconnected
}

// startReplication makes both halves of the replication of the Set's tenants.
func (s *Set) startReplication() {
	id := random.Text(s.config.Engine.Rand)
	s.primary = replication.NewPrimary(replication.PrimaryConfig{
		ID: id, Tenants: fed{s}, Log: s.log, Diverged: func(string) { s.metrics.diverged.Inc() },
	})
	connector := s.config.Connector
	if connector == nil {
		connector = unconnected{}
	}
	s.follower = replication.NewFollower(replication.FollowerConfig{
		ID: id, Followers: following{s}, Connect: connector.Connect, Image: connector.Image, Log: s.log,
		Feeds: func(tenant string) []string { return s.primary.Copies(tenant).Nodes() },
	})
}

// followAll makes the copies of the directory that follow go on, and opens them: a replica that is not open falls behind.
func (s *Set) followAll() error {
	files, err := s.readDir()
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file, followsSuffix); ok && http1.ValidTenant(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		unlock := s.gates.lock(name)
		s.goOnFollowing(name)
		unlock()
	}
	s.stopped.Go(func() {
		for _, name := range names {
			select {
			case <-s.stop:
				return
			default:
			}
			if t, err := s.Acquire(name); err == nil { // why it cannot be opened is in the log
				s.Release(t)
			}
		}
	})
	return nil
}

// Serve feeds the node at the other end of a connection until that is lost or the Set ends.
func (s *Set) Serve(conn net.Conn) error { return s.primary.Serve(conn) }

// Status returns how a tenant follows another node. ok is false if it follows none.
func (s *Set) Status(name string) (status replication.Status, ok bool) {
	return s.follower.Status(name)
}

// CheckReadable returns an error if a tenant may not be read because it follows another node and has never caught up with it.
func (s *Set) CheckReadable(t *Tenant) error {
	f := t.follows.Load()
	if f == nil || f.CaughtUp {
		return nil
	}
	if status, _ := s.follower.Status(t.Name); status.CaughtUp {
		return nil
	}
	return fail.New(fail.Frozen, "this copy of tenant %s has not caught up with its primary yet, send the request again", t.Name)
}

// fed is a Set as the tenants that are fed to other nodes.
type fed struct{ *Set }

// Find implements replication.Tenants.
func (s fed) Find(name string) (replication.Copy, bool) {
	t := s.registry.get(name)
	if t == nil || !t.Enter() {
		return replication.Copy{}, false
	}
	return copyOf(t), true
}

// copyOf returns a tenant that the caller is in. Being fed does not count as a use.
func copyOf(t *Tenant) replication.Copy {
	return replication.Copy{DB: t.DB, Feed: t.Feed, Release: t.Leave}
}

// Acquire implements replication.Tenants.
func (s fed) Acquire(name string) (replication.Copy, error) {
	t, err := s.Set.Acquire(name)
	var absent *Absent
	switch {
	case err == nil:
		return copyOf(t), nil
	case errors.As(err, &absent):
		return replication.Copy{}, &replication.Ended{Status: 404, Sentence: err.Error()}
	case fail.KindOf(err) == fail.Closed:
		return replication.Copy{}, &replication.Ended{Status: 503, Sentence: err.Error()}
	}
	return replication.Copy{}, &replication.Ended{Status: 500, Sentence: err.Error()}
}

// Above implements replication.Tenants.
func (s fed) Above(name string) []string { return s.follower.Above(name) }

// following is a Set as the copies that follow other nodes.
type following struct{ *Set }

// Acquire implements replication.Followers.
func (s following) Acquire(name string) (replication.Copy, error) {
	t, err := s.Set.Acquire(name)
	if err != nil {
		return replication.Copy{}, err
	}
	return copyOf(t), nil
}

// Replace implements replication.Followers.
func (s following) Replace(name string, image io.Reader, size int64, history string, common uint64, ok bool) error {
	return s.replace(name, image, size, history, func() error { return s.keepForked(name, common, ok) })
}

// replace puts an image of a history in place of a copy that follows, after keep has kept what the image lacks. Requests are answered
// from the old content until the image is complete.
func (s *Set) replace(name string, image io.Reader, size int64, history string, keep func() error) error {
	s.makeRoom(max(size, 0))
	o, changes := s.engineOptions(name)
	o.Follower = true
	received, err := engine.ReceiveImage(s.path(name), image, o)
	if err != nil {
		return err
	}
	defer received.Discard() // has no effect once it is installed
	if _, of := received.Position(); of != history {
		return fail.New(fail.Conflict, "the image is of history %s, expected %s", of, history)
	}
	if err := keep(); err != nil {
		return err
	}
	return s.alone(name, Condition{}, func() error {
		t, err := s.acquireLocked(name)
		if err != nil {
			return err
		}
		f := t.follows.Load()
		s.Release(t)
		if f == nil {
			return fail.New(fail.Conflict, "tenant %s follows no more", name)
		}
		s.ending.RLock()
		defer s.ending.RUnlock()
		if s.ended {
			return ErrStopping
		}
		t.shut()
		_ = s.closeTenant(t) // logged there; its content is replaced
		db, err := received.Install()
		if err != nil {
			s.unsynced.Store(true)
			return classified("the image cannot be installed", err)
		}
		next := s.newTenant(name, db, changes)
		next.follows.Store(f)
		s.budget.open.Add(1)
		s.admit(next)
		s.primary.End(name, &replication.Ended{Status: 503, Sentence: "tenant " + name + " was replaced by an image, follow it again"})
		return nil
	})
}

// syncNames makes the names in the directory durable if one was replaced and that could not be synced: what is read under a name
// must be there after a loss of power too.
func (s *Set) syncNames() error {
	if !s.unsynced.CompareAndSwap(true, false) {
		return nil
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		s.unsynced.Store(true)
		return storageError("the directory cannot be synced", err)
	}
	return nil
}

// Reopen implements replication.Followers.
func (s following) Reopen(name string) error {
	unlock := s.gates.lock(name)
	defer unlock()
	if t := s.registry.get(name); t != nil {
		t.shut()
		_ = s.closeTenant(t) // logged there; what its disk has refused is lost, and sent again
	}
	t, err := s.acquireLocked(name)
	if err != nil {
		return err
	}
	s.Release(t)
	return nil
}

// CaughtUp implements replication.Followers.
func (s following) CaughtUp(name string) error {
	unlock := s.gates.lock(name)
	defer unlock()
	t, err := s.acquireLocked(name)
	if err != nil {
		return err
	}
	defer s.Release(t)
	f := t.follows.Load()
	if status, ok := s.follower.Status(name); f == nil || f.CaughtUp || !ok || !status.CaughtUp {
		return nil // it was told something else meanwhile
	}
	next := *f
	next.CaughtUp, next.Force = true, false
	if _, err := s.writeFollows(name, &next); err != nil {
		return err
	}
	t.follows.Store(&next)
	return nil
}

// durable returns the last change of the tenant on disk.
func (t *Tenant) durable() uint64 { return t.Feed.End(feed.Durable) }
