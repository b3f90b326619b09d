package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"fenec/engine/wal"
	"fenec/internal/edge"
	"fenec/internal/http1"
	"fenec/internal/vfs"
	"fenec/replication"

	"github.com/rs/zerolog"
)

// Config configures a node. The zero value of a duration or a number means no limit, unless a default is named.
type Config struct {
	Dir  string // serve the tenants of this directory
	File string // or one database, at /

	DataToken  string // guards the tenants' data; open to all if empty
	AdminToken string // guards /_admin/, which does not exist without one

	ReplicationToken string // of all nodes that follow each other; without one there is no replication
	ReplicaOf        string // the address of the node that new tenants of this one follow

	Sync             wal.Policy    // when an answered write is on disk; the zero value syncs when a tenant closes
	IdleClose        time.Duration // a tenant that is unused for that long is closed
	MaxMemory        int64         // bytes the open tenants may hold together before idle ones are closed
	MaxConnections   int           // 1024 if zero; fewer with few descriptors
	MaxStreams       int           // live queries open at once, not counted among the connections; as above
	Descriptors      int           // files and connections it may have open; the process's limit if zero
	Changes          int           // a live query behind by more changes is read again; 4096 if zero
	IdleTimeout      time.Duration // a connection without a request for that long is closed
	Drain            time.Duration // how long the caller of Shutdown lets requests in flight finish
	StatementTimeout time.Duration
	Slow             time.Duration // a statement that takes longer is logged
	Replication      int64         // bytes of changes kept that a tenant's file no longer has; 64 MiB if zero
	IdempotencyTTL   time.Duration // how long the answer of a write under an Idempotency-Key is kept; a day if zero
	CompactAt        float64       // the share of a tenant's file that must be dead for it to be compacted; never if zero
	CompactWorkers   int           // how many are compacted at once; 1 if zero

	ReadOnly bool // refuse every write; the directory need not be writable
	Insecure bool // listen beyond loopback without a data token

	TLSCert, TLSKey string // PEM files

	Version string
	FS      vfs.FS           // the real file system if nil
	Dial    http1.Dialer     // the real network if nil
	Clock   func() time.Time // the real clock if nil
	Rand    io.Reader        // the real randomness if nil
	Log     zerolog.Logger
	LogLost func() int64 // returns how many log lines were dropped, for the metrics
}

const (
	defaultConnections = 1024
	defaultStreams     = 1024
	defaultBehind      = 4096
)

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.LogLost == nil {
		c.LogLost = func() int64 { return 0 }
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultConnections
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = defaultStreams
	}
	if c.Changes == 0 {
		c.Changes = defaultBehind
	}
	if c.CompactWorkers == 0 {
		c.CompactWorkers = 1
	}
	return c
}

// Validate checks the fields against each other and against the address to listen on. Its error is one sentence.
func (c *Config) Validate(listen string) error {
	switch {
	case c.Dir == "" && c.File == "":
		return errors.New("a node needs --dir, a directory of tenants, or --file, one database")
	case c.Dir != "" && c.File != "":
		return errors.New("--dir and --file exclude each other: a node serves a directory of tenants or one database")
	case c.IdleClose < 0 || c.IdleTimeout < 0 || c.Drain < 0 || c.StatementTimeout < 0 || c.Slow < 0 || c.IdempotencyTTL < 0:
		return errors.New("a duration is negative")
	case c.MaxMemory < 0:
		return errors.New("--max-memory is negative")
	case c.MaxConnections < 0:
		return errors.New("--max-connections is negative")
	case c.MaxStreams < 0:
		return errors.New("--http-max-streams is negative")
	case c.Changes < 0:
		return errors.New("--changes is negative")
	case !(c.CompactAt >= 0 && c.CompactAt < 1):
		return errors.New("--compact-at is not a share from 0 to below 1")
	case c.CompactWorkers < 0:
		return errors.New("--compact-workers is negative")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together: one of them is missing")
	case c.ReplicationToken != "" && c.File != "":
		return errors.New("--replication-token and --file exclude each other: only the tenants of a directory are replicated")
	case c.ReplicationToken != "" && c.Sync == (wal.Policy{}):
		return errors.New("--replication-token and --sync off exclude each other: a change is sent to a replica once it is on disk")
	case c.ReplicationToken != "" && (c.ReplicationToken == c.DataToken || c.ReplicationToken == c.AdminToken):
		return errors.New("--replication-token is the same as another token: a client could read every tenant")
	case c.ReplicaOf != "" && c.ReplicationToken == "":
		return errors.New("--replica-of needs --replication-token, the token of the node that is followed")
	case c.ReplicaOf != "" && c.ReadOnly:
		return errors.New("--replica-of and --http-read-only exclude each other: a replica writes what it receives")
	case c.AdminToken != "" && c.AdminToken == c.DataToken:
		return errors.New("--admin-token and --http-token are the same: a client that may read a tenant could delete it")
	}
	if c.ReplicaOf != "" {
		if _, err := replication.ParseAddress(c.ReplicaOf); err != nil {
			return fmt.Errorf("--replica-of: %w", err)
		}
	}
	loopback, err := edge.IsLoopback(listen)
	if err != nil {
		return err
	}
	if !loopback && c.DataToken == "" && !c.Insecure {
		return fmt.Errorf("%s is reachable from other machines and the tenants' data is open to all: "+
			"set --http-token, or --insecure to allow it", listen)
	}
	return nil
}

// compactors returns how many goroutines compact files.
func (c *Config) compactors() int {
	if c.CompactAt == 0 || c.ReadOnly {
		return 0
	}
	return c.CompactWorkers
}
