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

Its only state is the directory file. Each change is written and synced before it
takes effect.
`

func shardCommand() *cli.Command {
	flags := []cli.Flag{
		value("listen", "127.0.0.1:8090", "Listen on this `ADDR`."),
		value("directory", "shard.fenec", "The `FILE` with the nodes and tenants, created if it does not exist."),
	}
	flags = append(flags, secret("token", "The `TOKEN` that requests for /_shard/ must have. Required if the router listens beyond loopback.")...)
	flags = append(flags,
		boolean("replicas", "Create each tenant with a replica on another node."),
		value("upstream-timeout", "30", "Give up a request after its node has sent nothing for this `TIME`."),
		value("max-connections", "1024", "Maximum `NUMBER` of connections, lowered if there are few descriptors; more are answered 503."),
		value("http-max-streams", "1024", "Maximum `NUMBER` of open live queries; more are answered 503. They do not count towards --max-connections."),
		value("idle-timeout", "60", "Close a connection after this `TIME` without a request."),
		value("drain", "10", "At shutdown, wait up to this `TIME` for requests in progress."),
		boolean("insecure", "Listen beyond loopback without a token."),
		value("tls-cert", "", "Serve TLS with this certificate `FILE` (PEM)."),
		value("tls-key", "", "The `FILE` with the key of the certificate (PEM)."),
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
		Replicas:        s.boolean("replicas"),
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
