package router

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"fenec/internal/http1"
	"fenec/internal/vfs"

	"github.com/rs/zerolog"
)

// What a Config that says nothing gets.
const (
	DefaultUpstreamTimeout = 30 * time.Second
	DefaultMaxConnections  = 1024
	DefaultMaxStreams      = 1024
)

// Config is what a router is started with.
type Config struct {
	// Directory is the file that holds the nodes and the tenants' placements; it is made where there is none.
	Directory string
	// Token opens /_shard/ and /_metrics; without one they are open to whoever reaches the listener.
	Token string
	// UpstreamTimeout is how long a node may keep silent before a request is answered 504.
	UpstreamTimeout time.Duration
	// IdleTimeout is how long a kept connection, of a client or to a node, may stay unused.
	IdleTimeout time.Duration
	// MaxConnections bounds the clients connected at a time; the next ones are answered 503. It is lowered to what there
	// are descriptors for.
	MaxConnections int
	// MaxStreams bounds the answers without a length being passed on at a time, live queries that is. Their clients are not
	// among MaxConnections. It is lowered likewise.
	MaxStreams int
	// Descriptors is how many files and connections the router may have open; what the process may where zero.
	Descriptors int
	// Insecure allows a listener beyond loopback without a Token.
	Insecure bool
	// TLSCert and TLSKey are PEM files; both or neither.
	TLSCert, TLSKey string
	// Version is what /_health names.
	Version string

	// FS, Clock and Log are the surroundings; the zero values are the real file system, the real clock and silence.
	FS    vfs.FS
	Clock func() time.Time
	Log   zerolog.Logger
	// LogLost is how many lines of the log nobody will read, for the metrics.
	LogLost func() int64
}

// Validate checks the configuration against itself and against the address it is to listen on. The error is one
// sentence for a person.
func (c *Config) Validate(listen string) error {
	if c.Directory == "" {
		return errors.New("--directory wants the file that keeps nodes and placements")
	}
	if c.UpstreamTimeout < 0 {
		return fmt.Errorf("--upstream-timeout wants a time above zero, got %s", c.UpstreamTimeout)
	}
	if c.IdleTimeout < 0 {
		return fmt.Errorf("--idle-timeout wants a time above zero, got %s", c.IdleTimeout)
	}
	if c.MaxConnections < 0 {
		return fmt.Errorf("--max-connections wants a number above zero, got %d", c.MaxConnections)
	}
	if c.MaxStreams < 0 {
		return fmt.Errorf("--http-max-streams wants a number above zero, got %d", c.MaxStreams)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together: a certificate needs its key")
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen wants an address such as 127.0.0.1:8090, got %q", listen)
	}
	if c.Token == "" && !c.Insecure && !loopback(host) {
		return fmt.Errorf("listening on %s reaches beyond this machine: give --token, or --insecure to do without", listen)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
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
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}
