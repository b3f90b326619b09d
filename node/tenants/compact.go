package tenants

import (
	"container/list"
	"context"
	"sync"
	"time"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

const (
	// firstRetry is how long a compaction that failed or had no room is put off; each further time twice as long, up to
	// lastRetry.
	firstRetry = time.Minute
	lastRetry  = time.Hour
	// copyMargin and a sixteenth of the live bytes are what the disk must have free in addition to the copy of them: what
	// the tenant writes meanwhile is in both files.
	copyMargin = 1 << 20
)

// compactor compacts the files of open tenants that are due, in the order they became due, a few at a time. A database
// reports when it becomes due (engine.Options.Due), and a Set checks once when it opens one, so nothing polls the tenants.
//
// A tenant that is closed before its turn is removed from the queue. It is due again when it is next opened, and is not
// opened for a compaction: dead bytes of a closed file cost only disk space, while opening a file reads all of it and may
// close other tenants. A tenant that waits for its turn may be closed; one that is being compacted is in use.
//
// A compaction ends early if its tenant is closed or deleted, or the Set ends; the engine itself ends one of a tenant
// that is frozen, and reports that it is due again at the thaw.
type compactor struct {
	set *Set
	ctx context.Context // ends the compactions under way
	end context.CancelFunc

	// mu guards only the fields below and is taken last: want is called under a database's lock.
	mu       sync.Mutex
	wake     sync.Cond // a task is in the queue, or the compactor has ended
	tasks    map[string]*compactTask
	queue    list.List // of *compactTask
	running  int
	reserved int64 // bytes that the compactions under way may write
	ended    bool
}

// compactTask is a tenant that is due: in the queue, being compacted, or put off.
type compactTask struct {
	name    string
	queued  *list.Element // nil if it is not in the queue
	running bool
	again   bool // it became due while it was being compacted
	retry   *time.Timer
	tries   int // consecutive tries that failed or had no room
	last    compactResult
}

// compactResult is how a compaction ended, by its name in the metrics.
type compactResult string

const (
	compactNone    compactResult = "" // there was nothing to do
	compactDone    compactResult = "done"
	compactFailed  compactResult = "failed"
	compactStopped compactResult = "stopped"
	compactNoRoom  compactResult = "no_room"
)

func (c *compactor) init(s *Set) {
	c.set = s
	c.ctx, c.end = context.WithCancel(context.Background())
	c.wake.L = &c.mu
	c.tasks = map[string]*compactTask{}
}

// compactIfDue queues a tenant that has just been opened if it is due. Requests must find the tenant already.
func (s *Set) compactIfDue(t *Tenant) {
	if t.DB.Due() {
		s.compactor.want(t.Name)
	}
}

// want queues a tenant that is due. It takes only the compactor's lock.
func (c *compactor) want(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	task := c.tasks[name]
	switch {
	case c.ended:
	case task == nil:
		task = &compactTask{name: name}
		c.tasks[name] = task
		c.enqueueLocked(task)
	case task.running:
		task.again = true
	}
}

func (c *compactor) enqueueLocked(task *compactTask) {
	task.queued = c.queue.PushBack(task)
	c.wake.Signal()
}

// forget drops a tenant that has been closed.
func (c *compactor) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if task := c.tasks[name]; task != nil {
		c.dropLocked(task)
	}
}

func (c *compactor) dropLocked(task *compactTask) {
	if c.tasks[task.name] == task {
		delete(c.tasks, task.name)
	}
	if task.queued != nil {
		c.queue.Remove(task.queued)
		task.queued = nil
	}
	if task.retry != nil {
		task.retry.Stop()
	}
}

// stop ends the compactions under way and starts no more. The Set waits for the workers.
func (c *compactor) stop() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, task := range c.tasks {
		c.dropLocked(task)
	}
	c.wake.Broadcast()
}

// counts returns how many compactions are under way and how many tenants wait for one.
func (c *compactor) counts() (running, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, len(c.tasks) - c.running
}

// work compacts one tenant after the other until the compactor has ended.
func (c *compactor) work() {
	for task := c.next(); task != nil; task = c.next() {
		c.serve(task)
	}
}

// next blocks until there is a task and takes it out of the queue. It is nil once the compactor has ended.
func (c *compactor) next() *compactTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.queue.Len() == 0 && !c.ended {
		c.wake.Wait()
	}
	if c.ended {
		return nil
	}
	task := c.queue.Remove(c.queue.Front()).(*compactTask)
	task.queued, task.running = nil, true
	c.running++
	return task
}

// serve compacts the tenant of a task if it is open, and holds it open meanwhile.
func (c *compactor) serve(task *compactTask) {
	t := c.set.single
	if t == nil {
		t = c.set.registry.get(task.name)
	}
	if t == nil || !t.Enter() {
		c.settle(task, compactNone)
		return
	}
	defer t.Leave() // does not count as a use of the tenant: it may be closed as idle at once
	c.settle(task, c.compact(task, t))
}

// settle ends a turn of a task: it is put off, queued again or dropped.
func (c *compactor) settle(task *compactTask, result compactResult) {
	if result != compactNone {
		c.set.metrics.compactions[result].Inc()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	again := task.again
	task.running, task.again, task.last = false, false, result
	c.running--
	switch {
	case c.tasks[task.name] != task: // removed meanwhile
	case result == compactFailed, result == compactNoRoom:
		delay := lastRetry
		if d := firstRetry << min(task.tries, 30); d < lastRetry {
			delay = d
		}
		task.tries++
		task.retry = time.AfterFunc(delay, func() { c.retry(task) })
	case again:
		task.tries = 0
		c.enqueueLocked(task)
	default:
		c.dropLocked(task)
	}
}

// retry queues a task that was put off.
func (c *compactor) retry(task *compactTask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks[task.name] == task {
		task.retry = nil
		c.enqueueLocked(task)
	}
}

// compact compacts the file of a tenant that the caller is in.
func (c *compactor) compact(task *compactTask, t *Tenant) compactResult {
	if !t.DB.Due() {
		return compactNone
	}
	s := t.DB.Stats()
	live := s.FileBytes - s.DeadBytes
	need := live + live/16 + copyMargin
	free, err := c.set.fs.Free(c.set.dir)
	if err != nil {
		return c.failed(task, err)
	}
	if !c.reserve(need, free) {
		return c.noRoom(task, need, free)
	}
	defer c.release(need)
	began := time.Now()
	done, err := c.run(t)
	switch {
	case err == nil && done == (engine.Compacted{}): // a `compact` statement ran first, or the tenant is frozen
		return compactNone
	case err == nil:
	case c.ctx.Err() != nil, isStopped(err):
		return compactStopped
	case vfs.IsFull(err), fail.KindOf(err) == fail.Full:
		return c.noRoom(task, need, free)
	default:
		return c.failed(task, err)
	}
	c.set.metrics.compacted.AddInt64(max(0, done.Before-done.After))
	c.set.Measure(t)
	c.event(c.set.log.Info(), task).Int64("before", done.Before).Int64("after", done.After).Dur("ms", time.Since(began)).
		Msg("a file was compacted")
	return compactDone
}

// run compacts until the tenant must be closed or the Set ends.
func (c *compactor) run(t *Tenant) (engine.Compacted, error) {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	watching.Go(func() {
		select {
		case <-t.gone:
			cancel()
		case <-ctx.Done():
		}
	})
	return t.DB.CompactDue(ctx)
}

// isStopped reports whether a compaction ended with err because it was canceled or its tenant takes no more writes.
func isStopped(err error) bool {
	switch fail.KindOf(err) {
	case fail.Canceled, fail.Frozen, fail.Closed:
		return true
	}
	return false
}

// reserve reserves that many bytes of the disk if it has them free in addition to what the other compactions may still write.
func (c *compactor) reserve(need, free int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if free-c.reserved < need {
		return false
	}
	c.reserved += need
	return true
}

func (c *compactor) release(need int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= need
}

// noRoom and failed log a problem when it begins, not at each try.
func (c *compactor) noRoom(task *compactTask, need, free int64) compactResult {
	if task.last != compactNoRoom {
		c.event(c.set.log.Warn(), task).Int64("need", need).Int64("free", free).
			Msg("a file is not compacted: the disk has no room for the copy; it is tried again until it has")
	}
	return compactNoRoom
}

func (c *compactor) failed(task *compactTask, err error) compactResult {
	if task.last != compactFailed {
		c.event(c.set.log.Error(), task).Err(err).Msg("compacting a file failed; it is tried again")
	}
	return compactFailed
}

// event adds the tenant of a task to a log line; the one of a file has no name.
func (c *compactor) event(e *zerolog.Event, task *compactTask) *zerolog.Event {
	if task.name == "" {
		return e
	}
	return e.Str("tenant", task.name)
}
