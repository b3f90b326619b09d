package command

import (
	"github.com/urfave/cli/v2"

	"fenec/router"
)

const shardHelp = `
The router forwards /t/<tenant>/... to the node that holds the tenant. Nodes and
tenants are recorded through /_shard/:

  fenec shard --directory shard.fenec
  curl -X PUT http://127.0.0.1:8090/_shard/nodes/n1 \
       -d '{"addr": "127.0.0.1:8081", "token": "s3cret"}'
  curl -X PUT http://127.0.0.1:8090/_shard/tenants/acme -d '{}'
  curl -X POST http://127.0.0.1:8090/_shard/tenants/acme/move -d '{"to": "n2"}'

Its only state is the directory file, written and synced before a change takes
effect.
`

func shardCommand() *cli.Command {
	flags := []cli.Flag{
		value("listen", "127.0.0.1:8090", "The `ADDR` to answer on."),
		value("directory", "shard.fenec", "The `FILE` that keeps nodes and placements, made if absent."),
	}
	flags = append(flags, secret("token", "The `TOKEN` that opens /_shard/. Required beyond loopback.")...)
	flags = append(flags,
		value("upstream-timeout", "30", "The `TIME` a node may stay silent before a request is given up."),
		value("max-connections", "1024", "Past this `NUMBER` of connections, or of those there are descriptors for, answer 503."),
		value("http-max-streams", "1024", "Past this `NUMBER` of live queries open, answer 503. They are not among --max-connections."),
		value("idle-timeout", "60", "Close a connection after this `TIME` without a request."),
		value("drain", "10", "The `TIME` requests in flight have to finish at shutdown."),
		boolean("insecure", "Listen beyond loopback without a token."),
		value("tls-cert", "", "Serve TLS with this certificate `FILE` (PEM)."),
		value("tls-key", "", "The key `FILE` of the certificate (PEM)."),
	)
	return &cli.Command{
		Name:        "shard",
		Usage:       "Route requests to the nodes that hold the tenants",
		Description: shardHelp,
		Flags:       flags,
		Action:      runShard,
	}
}

func runShard(c *cli.Context) error {
	s := settings{c: c}
	address := s.address("listen")
	config := router.Config{
		Directory:       s.text("directory"),
		Token:           s.secret("token"),
		UpstreamTimeout: s.wait("upstream-timeout"),
		IdleTimeout:     s.wait("idle-timeout"),
		MaxConnections:  s.count("max-connections", 1),
		MaxStreams:      s.count("http-max-streams", 1),
		Insecure:        s.boolean("insecure"),
		TLSCert:         s.text("tls-cert"),
		TLSKey:          s.text("tls-key"),
		Version:         version,
	}
	drain := s.duration("drain")
	if s.err != nil {
		return s.err
	}
	if err := config.Validate(address); err != nil {
		return usagef("%s", err)
	}
	if err := noArguments(c); err != nil {
		return err
	}
	return serveOne(c, "router", address, drain, func(log serverLog) (service, error) {
		config.Log, config.LogLost = log.Logger, log.lines.lost.Load
		return router.New(config)
	})
}
