package node

import (
	"bytes"

	"fenec/internal/http1"

	"github.com/VictoriaMetrics/metrics"
)

// metricSet are the metrics of a node. Package tenants adds those of its tenants.
type metricSet struct {
	set      *metrics.Set
	requests [6]*metrics.Counter // by the first digit of the status
}

func newMetrics(n *Node) *metricSet {
	m := &metricSet{set: metrics.NewSet()}
	for class, name := range []string{"", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		if name != "" {
			m.requests[class] = m.set.NewCounter(`fenec_requests_total{class="` + name + `"}`)
		}
	}
	gauge := func(name string, value func() float64) { m.set.NewGauge(name, value) }
	gauge("fenec_connections", func() float64 { return float64(n.server.Connections()) })
	gauge("fenec_connections_max", func() float64 { return float64(n.budget.connections) })
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
	return m
}

// answered counts an answer.
func (m *metricSet) answered(status int) {
	if class := status / 100; class > 0 && class < len(m.requests) {
		m.requests[class].Inc()
	}
}

func (m *metricSet) unregister() { m.set.UnregisterAllMetrics() }

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
