package command

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"fenec/node"
)

const nodeHelp = `
A node serves /t/<tenant>/... for each file <tenant>.fenec in its directory. It
opens a tenant at the first request for it, and closes it after some time without
requests. Tenants are created through /_admin/, by hand or by a router:

  fenec node --dir ./data --admin-token s3cret
  curl -X PUT -H 'Authorization: Bearer s3cret' http://127.0.0.1:8081/_admin/tenants/acme
  curl http://127.0.0.1:8081/t/acme/query -d '{"query": "create collection notes (title text)"}'

With --file it serves one database at / instead, and creates it if it does not exist.

On SIGTERM or SIGINT the node finishes the requests in progress, syncs every tenant
and exits with 0. A second signal ends it at once.
`

func nodeCommand() *cli.Command {
	flags := []cli.Flag{
		value("http", "127.0.0.1:8081", "Listen on this `ADDR`."),
		value("dir", "", "Serve the tenants of this `DIRECTORY`, created if it does not exist. This or --file is required."),
		value("file", "", "Serve one database, this `FILE`, at /."),
	}
	flags = append(flags, secret("http-token", "The `TOKEN` that requests for tenants must have. Required if the node listens beyond loopback.")...)
	flags = append(flags, secret("admin-token", "The `TOKEN` that requests for /_admin/ must have. Without it, /_admin/ is off.")...)
	flags = append(flags, secret("replication-token", "The `TOKEN` of all nodes that follow each other's tenants. Without it, there is no replication.")...)
	flags = append(flags,
		value("replica-of", "", "Have new tenants follow the ones of the node at this `URL`, such as http://10.0.0.1:8081."),
		value("sync", "250", "When a write is synced: always (before it is answered), within `MS` milliseconds, or off (when the tenant closes)."),
		value("idle-close", "300", "Close a tenant after this `TIME` without a request. 0 means never."),
		value("max-memory", "0", "Maximum `MIB` of open tenants and requests: beyond it, idle tenants are closed first. 0 means no limit."),
		value("max-connections", "1024", "Maximum `NUMBER` of connections, lowered if there are few descriptors; more are answered 503."),
		value("http-max-streams", "1024", "Maximum `NUMBER` of open live queries; more are answered 503. They do not count towards --max-connections."),
		value("changes", "4096", "Send a live query all its rows again if it is more than this `NUMBER` of changes behind."),
		value("idle-timeout", "60", "Close a connection after this `TIME` without a request."),
		value("statement-timeout", "0", "Stop a statement after this `TIME`. 0 means never."),
		value("slow-ms", "0", "Log a statement, without its values, if it takes longer than `MS` milliseconds. 0 means never."),
		value("idempotency-ttl", "86400", "Keep the response to a write with an Idempotency-Key for this `TIME`."),
		value("replication-buffer", "64", "Keep up to this many `MIB` of each tenant's changes in memory after a compaction has removed them from its file, for readers of changes."),
	)
	flags = append(flags, compactFlags()...)
	flags = append(flags,
		value("drain", "10", "At shutdown, wait up to this `TIME` for requests in progress."),
		boolean("http-read-only", "Refuse every write; the directory need not be writable."),
		boolean("insecure", "Listen beyond loopback without a data token."),
		value("tls-cert", "", "Serve TLS with this certificate `FILE` (PEM)."),
		value("tls-key", "", "The `FILE` with the key of the certificate (PEM)."),
	)
	return &cli.Command{
		Name:        "node",
		Usage:       "Serve a directory of tenants",
		Description: nodeHelp,
		Flags:       flags,
		Action:      runNode,
	}
}

// compactFlags returns the flags for when a node compacts files.
func compactFlags() []cli.Flag {
	return []cli.Flag{
		value("compact-at", "0.5", "Compact a tenant's file once more than this `SHARE` of it, and more than 16 MiB, is dead. 0 means never."),
		value("compact-workers", "1", "Compact up to this `NUMBER` of files at the same time."),
	}
}

func nodeConfig(c *cli.Context) (config node.Config, address string, err error) {
	s := settings{c: c}
	address = s.address("http")
	config = node.Config{
		Dir:              s.text("dir"),
		File:             s.text("file"),
		DataToken:        s.secret("http-token"),
		AdminToken:       s.secret("admin-token"),
		ReplicationToken: s.secret("replication-token"),
		ReplicaOf:        strings.TrimSuffix(s.text("replica-of"), "/"),
		Sync:             s.sync("sync"),
		IdleClose:        s.duration("idle-close"),
		MaxMemory:        s.mebibytes("max-memory"),
		MaxConnections:   s.count("max-connections", 1),
		MaxStreams:       s.count("http-max-streams", 1),
		Changes:          s.count("changes", 1),
		IdleTimeout:      s.wait("idle-timeout"),
		Drain:            s.duration("drain"),
		StatementTimeout: s.duration("statement-timeout"),
		Slow:             s.milliseconds("slow-ms"),
		IdempotencyTTL:   s.wait("idempotency-ttl"),
		Replication:      s.buffer("replication-buffer"),
		CompactAt:        s.share("compact-at"),
		CompactWorkers:   s.count("compact-workers", 1),
		ReadOnly:         s.boolean("http-read-only"),
		Insecure:         s.boolean("insecure"),
		TLSCert:          s.text("tls-cert"),
		TLSKey:           s.text("tls-key"),
		Version:          version,
	}
	if s.err != nil {
		return config, address, s.err
	}
	if err := config.Validate(address); err != nil {
		return config, address, usagef("%s", err)
	}
	return config, address, noArguments(c)
}

// boundedGC is how much the heap of a node with --max-memory grows between two collections, in percent. With
// Go's default the process could hold twice the memory that the node counts. GOGC has precedence.
const boundedGC = 50

func runNode(c *cli.Context) error {
	config, address, err := nodeConfig(c)
	if err != nil {
		return err
	}
	if config.MaxMemory > 0 && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(boundedGC)
	}
	return serveOne(c, "node", address, config.Drain, func(log serverLog) (service, error) {
		config.Log, config.LogLost = log.Logger, log.lines.lost.Load
		return node.New(config)
	})
}
