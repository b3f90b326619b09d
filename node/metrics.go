package node

import (
	"bytes"

	"fenec/internal/http1"

	"github.com/VictoriaMetrics/metrics"
)

// metricSet are the metrics of a node. It has no series of a single tenant: with thousands of tenants these would be more
// than a collector can store.
type metricSet struct {
	set      *metrics.Set
	requests [6]*metrics.Counter // by the first digit of the status
	opened   *metrics.Counter
	closed   *metrics.Counter
}

func newMetrics(n *Node) *metricSet {
	m := &metricSet{set: metrics.NewSet()}
	for class, name := range []string{"", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		if name != "" {
			m.requests[class] = m.set.NewCounter(`fenec_requests_total{class="` + name + `"}`)
		}
	}
	m.opened = m.set.NewCounter("fenec_tenants_opened_total")
	m.closed = m.set.NewCounter("fenec_tenants_closed_total")
	gauge := func(name string, value func() float64) { m.set.NewGauge(name, value) }
	gauge("fenec_connections", func() float64 { return float64(n.server.Connections()) })
	gauge("fenec_connections_max", func() float64 { return float64(n.budget.connections) })
	gauge("fenec_tenants", func() float64 { return float64(n.countTenants()) })
	gauge("fenec_tenants_open", func() float64 { return float64(n.budget.open.Load()) })
	gauge("fenec_tenants_open_max", func() float64 { return float64(n.budget.tenants) })
	gauge("fenec_memory_bytes", func() float64 { return float64(n.budget.held()) })
	gauge("fenec_memory_max_bytes", func() float64 { return float64(n.budget.ceiling) })
	gauge("fenec_file_bytes", func() float64 { return float64(n.budget.files.Load()) })
	gauge("fenec_dead_bytes", func() float64 { return float64(n.budget.dead.Load()) })
	gauge("fenec_compactions_running", func() float64 {
		running, _ := n.compactor.counts()
		return float64(running)
	})
	gauge("fenec_compactions_waiting", func() float64 {
		_, waiting := n.compactor.counts()
		return float64(waiting)
	})
	gauge("fenec_log_lines_lost_total", func() float64 { return float64(n.config.LogLost()) })
	gauge("fenec_body_bytes", func() float64 { return float64(n.budget.bodies.Used()) })
	gauge("fenec_body_max_bytes", func() float64 { return float64(n.budget.bodies.Max()) })
	gauge("fenec_answer_bytes", func() float64 { return float64(n.budget.answers.Used()) })
	gauge("fenec_answer_max_bytes", func() float64 { return float64(n.budget.answers.Max()) })
	gauge("fenec_requests_waiting", func() float64 { return float64(n.waiting.Load()) })
	gauge("fenec_streams", func() float64 { return float64(n.streaming.Load()) })
	gauge("fenec_streams_max", func() float64 { return float64(n.budget.streams) })
	gauge("fenec_claims_held", func() float64 { return float64(n.claims.Load()) })
	gauge("fenec_claims_held_max", func() float64 { return float64(n.maxClaims) })
	gauge("fenec_replication_buffer_max_bytes", func() float64 { return float64(n.config.Replication) })
	gauge("fenec_replication_buffer_bytes", func() float64 {
		held := int64(0)
		n.eachOpen(func(t *tenant) { held += t.feed.Bytes() })
		return float64(held)
	})
	gauge("fenec_storage_failed", func() float64 {
		failed := 0.0
		n.eachOpen(func(t *tenant) {
			if t.db.Stats().Failed != nil {
				failed = 1
			}
		})
		return failed
	})
	gauge("fenec_vectors_waiting", func() float64 {
		waiting := 0
		n.eachOpen(func(t *tenant) { waiting += t.db.Stats().Waiting })
		return float64(waiting)
	})
	gauge("fenec_tenants_frozen", func() float64 {
		frozen := 0
		n.eachOpen(func(t *tenant) {
			if t.db.Frozen() {
				frozen++
			}
		})
		return float64(frozen)
	})
	return m
}

// answered counts an answer.
func (m *metricSet) answered(status int) {
	if class := status / 100; class > 0 && class < len(m.requests) {
		m.requests[class].Inc()
	}
}

func (m *metricSet) unregister() { m.set.UnregisterAllMetrics() }

// eachOpen visits the open tenants and holds each open meanwhile.
func (n *Node) eachOpen(fn func(*tenant)) {
	visit := func(t *tenant) bool {
		if t.enter() {
			defer t.leave()
			fn(t)
		}
		return true
	}
	if n.single != nil {
		visit(n.single)
	}
	n.registry.each(visit)
}

// exposeMetrics is GET /_metrics.
func (n *Node) exposeMetrics(r *http1.Request) http1.Answer {
	if !n.mayWatch(r) {
		return n.unauthorized(r)
	}
	body := bytes.NewBuffer(r.Scratch())
	n.metrics.set.WritePrometheus(body)
	return http1.Answer{Status: 200, Headers: exposition, Body: body.Bytes()}
}

// exposition is Prometheus's text format.
var exposition = []http1.Header{{Name: []byte("Content-Type"), Value: []byte("text/plain; version=0.0.4; charset=utf-8")}}

var (
	healthy  = []byte(`{"status":"ok"}`)
	stopping = []byte(`{"status":"stopping"}`)
)

// health is GET /_health. It takes no lock, and reports whether the node is stopping.
func (n *Node) health(*http1.Request) http1.Answer {
	if n.stopping.Load() {
		return http1.Answer{Status: 503, Headers: http1.JSON, Body: stopping}
	}
	return http1.Answer{Status: 200, Headers: http1.JSON, Body: healthy}
}
