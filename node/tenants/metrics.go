package tenants

import "github.com/VictoriaMetrics/metrics"

// counters are the metrics of a Set that it counts itself. It has no series of a single tenant: with thousands of tenants
// these would be more than a collector can store.
type counters struct {
	opened, closed *metrics.Counter
	compactions    map[compactResult]*metrics.Counter
	compacted      *metrics.Counter // bytes removed from files

	promoted *metrics.Counter
	diverged *metrics.Counter
	forked   *metrics.Counter // changes kept in files of branches
}

// register adds the metrics of the Set.
func (s *Set) register(set *metrics.Set) {
	c := &s.metrics
	c.opened = set.NewCounter("fenec_tenants_opened_total")
	c.closed = set.NewCounter("fenec_tenants_closed_total")
	c.compactions = map[compactResult]*metrics.Counter{}
	for _, r := range []compactResult{compactDone, compactFailed, compactStopped, compactNoRoom} {
		c.compactions[r] = set.NewCounter(`fenec_compactions_total{result="` + string(r) + `"}`)
	}
	c.compacted = set.NewCounter("fenec_compacted_bytes_total")

	gauge := func(name string, value func() int64) {
		set.NewGauge(name, func() float64 { return float64(value()) })
	}
	gauge("fenec_tenants", s.count)
	gauge("fenec_tenants_open", s.budget.Open)
	gauge("fenec_tenants_open_max", func() int64 { return s.budget.MaxOpen })
	gauge("fenec_memory_bytes", s.budget.Held)
	gauge("fenec_memory_max_bytes", func() int64 { return s.budget.MaxMemory })
	gauge("fenec_file_bytes", s.budget.Files)
	gauge("fenec_dead_bytes", s.budget.Dead)
	gauge("fenec_compactions_running", func() int64 { return int64(s.Compacting()) })
	gauge("fenec_compactions_waiting", func() int64 {
		_, waiting := s.compactor.counts()
		return int64(waiting)
	})
	gauge("fenec_replication_buffer_max_bytes", func() int64 { return s.config.Feed })
	s.registerSums(gauge)
	s.registerReplication(set, gauge)
}

// registerReplication adds the metrics of the copies here and elsewhere.
func (s *Set) registerReplication(set *metrics.Set, gauge func(name string, value func() int64)) {
	s.metrics.promoted = set.NewCounter("fenec_promotions_total")
	s.metrics.diverged = set.NewCounter("fenec_replica_diverged_total")
	s.metrics.forked = set.NewCounter("fenec_forked_changes_total")
	gauge("fenec_replicas", func() int64 { return s.primary.Count() })
	gauge("fenec_following", func() int64 { following, _ := s.follower.Counts(); return int64(following) })
	gauge("fenec_following_connected", func() int64 { _, connected := s.follower.Counts(); return int64(connected) })
	gauge("fenec_replica_behind", func() int64 { return int64(s.follower.Behind()) })
	gauge("fenec_replica_images_total", func() int64 { return s.follower.Images() })
	gauge("fenec_replica_reconnects_total", func() int64 { return s.follower.Reconnects() })
}

// registerSums adds the metrics that are a sum over the open tenants.
func (s *Set) registerSums(gauge func(name string, value func() int64)) {
	sum := func(of func(*Tenant) int64) func() int64 {
		return func() (total int64) {
			s.Each(func(t *Tenant) { total += of(t) })
			return total
		}
	}
	gauge("fenec_replication_buffer_bytes", sum(func(t *Tenant) int64 { return t.Feed.Bytes() }))
	gauge("fenec_vectors_waiting", sum(func(t *Tenant) int64 { return int64(t.DB.Stats().Waiting) }))
	gauge("fenec_tenants_frozen", sum(func(t *Tenant) int64 {
		if t.DB.Frozen() {
			return 1
		}
		return 0
	}))
	failed := sum(func(t *Tenant) int64 {
		if t.DB.Stats().Failed != nil {
			return 1
		}
		return 0
	})
	gauge("fenec_storage_failed", func() int64 { return min(failed(), 1) })
}

// count returns how many tenants there are on disk: 0 if the directory cannot be read.
func (s *Set) count() int64 {
	if s.single != nil {
		return 1
	}
	names, err := s.Names()
	if err != nil {
		return 0
	}
	return int64(len(names))
}

// Compacting returns how many files are being compacted.
func (s *Set) Compacting() int {
	running, _ := s.compactor.counts()
	return running
}
