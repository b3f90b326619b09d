package router

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// Defaults of Config.
const (
	DefaultUpstreamTimeout = 30 * time.Second
	DefaultMaxConnections  = 1024
	DefaultMaxStreams      = 1024
)

// Config configures a router.
type Config struct {
	// Directory is the file that holds the nodes and the tenants' placements; it is created if it does not exist.
	Directory string
	// Token guards /_shard/ and /_metrics; without one they are open to any client that reaches the listener.
	Token string
	// Replicas has every new tenant get a replica on another node.
	Replicas bool
	// UpstreamTimeout is how long a node may stay silent before a request is answered 504.
	UpstreamTimeout time.Duration
	// IdleTimeout is how long a keep-alive connection, of a client or to a node, may stay idle.
	IdleTimeout time.Duration
	// MaxConnections bounds the clients connected at a time; further ones are answered 503. It is lowered to what the
	// descriptors allow.
	MaxConnections int
	// MaxStreams bounds the answers without a length that are passed on at a time, such as live queries. Their clients do
	// not count towards MaxConnections. It is lowered likewise.
	MaxStreams int
	// Descriptors is how many files and connections the router may have open; zero is the process's own limit.
	Descriptors int
	// Insecure allows a listener beyond loopback without a Token.
	Insecure bool
	// TLSCert and TLSKey are PEM files; both or neither.
	TLSCert, TLSKey string
	// Version is reported by /_health.
	Version string

	// FS, Dial, Clock, Rand and Log are the environment; the zero values are the real file system, network, clock and
	// randomness, and no log.
	FS    vfs.FS
	Dial  http1.Dialer // opens the connections to nodes
	Clock func() time.Time
	Rand  io.Reader
	Log   zerolog.Logger
	// LogLost returns how many log lines were dropped, for the metrics.
	LogLost func() int64
}

// Validate checks the fields against each other and against the address to listen on. The error is one sentence for a
// person.
func (c *Config) Validate(listen string) error {
	if c.Directory == "" {
		return errors.New("--directory is required: name the file that holds nodes and placements")
	}
	if c.UpstreamTimeout < 0 {
		return fmt.Errorf("--upstream-timeout: expected a time above zero, got %s", c.UpstreamTimeout)
	}
	if c.IdleTimeout < 0 {
		return fmt.Errorf("--idle-timeout: expected a time above zero, got %s", c.IdleTimeout)
	}
	if c.MaxConnections < 0 {
		return fmt.Errorf("--max-connections: expected a number above zero, got %d", c.MaxConnections)
	}
	if c.MaxStreams < 0 {
		return fmt.Errorf("--http-max-streams: expected a number above zero, got %d", c.MaxStreams)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together: a certificate needs its key")
	}
	loopback, err := edge.IsLoopback(listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if c.Token == "" && !c.Insecure && !loopback {
		return fmt.Errorf("listening on %s reaches beyond this machine: give --token, or --insecure to do without", listen)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.UpstreamTimeout == 0 {
		c.UpstreamTimeout = DefaultUpstreamTimeout
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = http1.DefaultIdleTimeout
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.LogLost == nil {
		c.LogLost = func() int64 { return 0 }
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = DefaultMaxStreams
	}
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}
