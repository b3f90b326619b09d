package command

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"fenec/node"
)

const nodeHelp = `
A node answers /t/<tenant>/... for every <tenant>.fenec file in its directory. A
tenant is opened when it is first asked for and closed when nobody has used it
for a while. Tenants are made through /_admin/, by hand or by a router:

  fenec node --dir ./data --admin-token s3cret
  curl -X PUT -H 'Authorization: Bearer s3cret' http://127.0.0.1:8081/_admin/tenants/acme
  curl http://127.0.0.1:8081/t/acme/query -d '{"query": "create collection notes (title text)"}'

With --file one database is served at / instead, and made if it is not there.

On SIGTERM or SIGINT the node finishes what it has in flight, syncs every tenant
and exits 0; a second signal ends it at once.
`

func nodeCommand() *cli.Command {
	flags := []cli.Flag{
		value("http", "127.0.0.1:8081", "The `ADDR` to answer on."),
		value("dir", "", "Serve the tenants of this `DIRECTORY`, made if absent. This or --file is required."),
		value("file", "", "Serve one database, this `FILE`, at /."),
	}
	flags = append(flags, secret("http-token", "The `TOKEN` that opens the tenants' data. Required beyond loopback.")...)
	flags = append(flags, secret("admin-token", "The `TOKEN` that opens /_admin/, which is off without one.")...)
	flags = append(flags,
		value("sync", "250", "How long an answered write may stay off the disk: always (none), `MS` milliseconds, or off (until the tenant closes)."),
		value("idle-close", "300", "Close a tenant after this `TIME` without a request. 0 is never."),
		value("max-memory", "0", "Past this many `MIB` held by open tenants and for requests, close idle tenants first. 0 is no limit."),
		value("max-connections", "1024", "Past this `NUMBER` of connections, or of those there are descriptors for, answer 503."),
		value("http-max-streams", "1024", "Past this `NUMBER` of live queries open, answer 503. They are not among --max-connections."),
		value("changes", "4096", "Past this `NUMBER` of changes that a live query is behind, send it its rows anew."),
		value("idle-timeout", "60", "Close a connection after this `TIME` without a request."),
		value("statement-timeout", "0", "Stop a statement after this `TIME`. 0 is never."),
		value("slow-ms", "0", "Log a statement that takes longer than these `MS` milliseconds, without its values. 0 is never."),
		value("idempotency-ttl", "86400", "Keep the answer of a write under an Idempotency-Key for this `TIME`."),
		value("replication-buffer", "64", "Keep this many `MIB` of each tenant's changes that compact left out of its file, for those who follow them."),
	)
	flags = append(flags, compactFlags()...)
	flags = append(flags,
		value("drain", "10", "The `TIME` requests in flight have to finish at shutdown."),
		boolean("http-read-only", "Refuse every write; the directory need not be writable."),
		boolean("insecure", "Listen beyond loopback without a data token."),
		value("tls-cert", "", "Serve TLS with this certificate `FILE` (PEM)."),
		value("tls-key", "", "The key `FILE` of the certificate (PEM)."),
	)
	return &cli.Command{
		Name:        "node",
		Usage:       "Serve a directory of tenants",
		Description: nodeHelp,
		Flags:       flags,
		Action:      runNode,
	}
}

// compactFlags are when a node compacts files by itself.
func compactFlags() []cli.Flag {
	return []cli.Flag{
		value("compact-at", "0.5", "Compact a tenant's file by itself if more than this `SHARE` of it and more than 16 MiB of it is dead. 0 is never."),
		value("compact-workers", "1", "Compact this `NUMBER` of files at once."),
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

// boundedGC is how much the heap of a node with --max-memory grows between two collections, in percent, so that what is
// counted is not half of what the process holds. GOGC has precedence.
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
