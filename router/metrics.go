package router

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// meters are the metrics of a router. No series is about a tenant: there are too many of them.
type meters struct {
	set       *metrics.Set
	requests  [6]*metrics.Counter // by the class of the answer's status
	upstream  *metrics.PrometheusHistogram
	moves     *metrics.Counter
	moveFails *metrics.Counter
	moveTime  *metrics.PrometheusHistogram
	moveBytes *metrics.Counter

	failovers, failoverFails *metrics.Counter // tenants
}

var (
	upstreamBounds = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	moveBounds     = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
)

func newMeters(rt *Router) *meters {
	set := metrics.NewSet()
	m := &meters{
		set:       set,
		upstream:  set.NewPrometheusHistogramExt("fenec_router_upstream_seconds", upstreamBounds),
		moves:     set.NewCounter(`fenec_router_moves_total{result="done"}`),
		moveFails: set.NewCounter(`fenec_router_moves_total{result="failed"}`),
		moveTime:  set.NewPrometheusHistogramExt("fenec_router_move_seconds", moveBounds),
		moveBytes: set.NewCounter("fenec_router_moved_bytes_total"),

		failovers:     set.NewCounter(`fenec_router_failovers_total{by="hand",result="done"}`),
		failoverFails: set.NewCounter(`fenec_router_failovers_total{by="hand",result="failed"}`),
	}
	for class := range m.requests {
		name := fmt.Sprintf(`fenec_router_requests_total{class="%dxx"}`, class)
		if class == 0 {
			name = `fenec_router_requests_total{class="other"}`
		}
		m.requests[class] = set.NewCounter(name)
	}
	set.NewGauge("fenec_router_connections", func() float64 { return float64(rt.server.Connections()) })
	set.NewGauge("fenec_router_connections_max", func() float64 { return float64(rt.budget.connections) })
	set.NewGauge("fenec_router_streams", func() float64 { return float64(rt.streams.Load()) })
	set.NewGauge("fenec_router_streams_max", func() float64 { return float64(rt.budget.streams) })
	set.NewGauge("fenec_router_upstream_connections", func() float64 { return float64(rt.transport.open.Load()) })
	set.NewGauge("fenec_router_body_bytes", func() float64 { return float64(rt.memory.Used()) })
	set.NewGauge("fenec_router_body_max_bytes", func() float64 { return float64(rt.memory.Max()) })
	set.NewGauge("fenec_router_answer_bytes", func() float64 { return float64(rt.answers.Used()) })
	set.NewGauge("fenec_router_answer_max_bytes", func() float64 { return float64(rt.answers.Max()) })
	set.NewGauge("fenec_router_tenants", func() float64 { _, tenants := rt.dir.Len(); return float64(tenants) })
	set.NewGauge("fenec_router_nodes", func() float64 { nodes, _ := rt.dir.Len(); return float64(nodes) })
	set.NewGauge("fenec_router_unreplicated", func() float64 { return float64(rt.dir.Unreplicated()) })
	set.NewGauge("fenec_router_repairs_pending", func() float64 { return float64(rt.repairer.pending()) })
	set.NewGauge("fenec_log_lines_lost_total", func() float64 { return float64(rt.config.LogLost()) })
	return m
}

// nodeErrors returns the counter of requests that a node did not answer. A node's name needs no quoting.
func (m *meters) nodeErrors(node string) *metrics.Counter {
	return m.set.GetOrCreateCounter(`fenec_router_upstream_errors_total{node="` + node + `"}`)
}

// nodeReplicas has a node's replicas counted.
func (m *meters) nodeReplicas(node string, count func() float64) {
	m.set.GetOrCreateGauge(`fenec_router_replicas{node="`+node+`"}`, count)
}

// failedOver counts the tenants of a failover.
func (m *meters) failedOver(done, failed int) {
	m.failovers.Add(done)
	m.failoverFails.Add(failed)
}

// answered counts an answer by its status.
func (m *meters) answered(status int) {
	if class := status / 100; class > 0 && class < len(m.requests) {
		m.requests[class].Inc()
		return
	}
	m.requests[0].Inc()
}

// moved counts a successful move.
func (m *meters) moved(bytes int64, took time.Duration) {
	m.moves.Inc()
	m.moveTime.Update(took.Seconds())
	m.moveBytes.AddInt64(bytes)
}
