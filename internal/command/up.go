package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"
	"github.com/urfave/cli/v2"

	"fenec/client"
	"fenec/engine/wal"
	"fenec/internal/vfs"
	"fenec/node"
	"fenec/router"
)

const upHelp = `
Starts a router and two nodes in this process, on loopback, with a tenant called
demo, and prints example requests. All data is in ./fenec-data. The next start uses it
again; to start over, delete the directory. Ctrl-C stops it.

The router listens on the port of --listen, the nodes on the next ones. With --replicas,
each tenant has a copy on another node: fenec up --nodes 3 --replicas
`

const (
	upData  = "fenec-data"
	upDrain = 5 * time.Second
)

// maxUpNodes is how many nodes run in one process at most.
const maxUpNodes = 9

// upNode returns the name of a node, counted from 0. It is also a directory in the data directory.
func upNode(i int) string { return "n" + strconv.Itoa(1+i) }

func upCommand() *cli.Command {
	return &cli.Command{
		Name:        "up",
		Usage:       "Start a router and two nodes in this process, with a demo tenant",
		Description: upHelp,
		Flags: append(
			[]cli.Flag{
				value("listen", "127.0.0.1:8090", "The router's `ADDR`; the nodes take the next ports, or any if the port is 0."),
				value("nodes", "2", "Start this `NUMBER` of nodes, 1 to 9."),
				boolean("replicas", "Give each tenant a replica on another node."),
			},
			compactFlags()...),
		Action: runUp,
	}
}

func runUp(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	s := settings{c: c}
	nodes, replicas := s.count("nodes", 1), s.boolean("replicas")
	switch {
	case s.err != nil:
		return s.err
	case nodes > maxUpNodes:
		return usagef("--nodes: expected 1 to %d, got %d", maxUpNodes, nodes)
	case replicas && nodes == 1:
		return usagef("--replicas needs two nodes or more: a replica is on another node than its tenant")
	}
	addresses, err := upAddresses(c.String("listen"), nodes)
	if err != nil {
		return err
	}
	config := node.Config{CompactAt: s.share("compact-at"), CompactWorkers: s.count("compact-workers", 1)}
	if s.err != nil {
		return s.err
	}
	// The output of up is for new users, so it logs only warnings and errors.
	log := openLog(c.App.ErrWriter)
	defer log.close()
	log.Logger = log.Level(zerolog.WarnLevel)
	stop := signals(log)
	local, err := startLocal(addresses, replicas, config, log)
	if err != nil {
		return err
	}
	started := func(ctx context.Context) error {
		if err := local.settle(ctx); err != nil {
			return err
		}
		local.greet(c.App.Writer)
		return nil
	}
	return serve(log.Logger, stop, upDrain, started, local.parts()...)
}

// upAddresses returns the address of the router, then those of the nodes.
func upAddresses(text string, nodes int) ([]string, error) {
	host, portText, err := net.SplitHostPort(text)
	port, portErr := strconv.ParseUint(portText, 10, 16)
	ip := net.ParseIP(host)
	switch {
	case err != nil || portErr != nil:
		return nil, usagef("--listen: expected an address such as 127.0.0.1:8090, got %q", text)
	case int(port)+nodes > 65535:
		return nil, usagef("--listen: expected a port with %d more ports after it for the nodes, got %q", nodes, text)
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return nil, usagef("fenec up listens on loopback only, got --listen %s; fenec node and fenec shard listen anywhere", text)
	}
	addresses := []string{text}
	for i := range nodes {
		next := 0
		if port != 0 {
			next = int(port) + 1 + i
		}
		addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(next)))
	}
	return addresses, nil
}

// local is the cluster of fenec up.
type local struct {
	router *router.Router
	nodes  []*node.Node
	tokens []string // the nodes' admin tokens, in the order of the nodes
	// listeners are the router's, then the nodes'.
	listeners []net.Listener
}

// startLocal opens the listeners, the nodes and the router. If one fails it closes
// the others. The nodes use config and the fixed settings of up.
func startLocal(addresses []string, replicas bool, config node.Config, log serverLog) (*local, error) {
	l := &local{}
	if err := l.open(addresses, replicas, config, log); err != nil {
		for _, n := range l.nodes {
			n.Shutdown(context.Background()) // no connection was served yet
		}
		for _, listener := range l.listeners {
			listener.Close() // likewise
		}
		return nil, err
	}
	return l, nil
}

func (l *local) open(addresses []string, replicas bool, config node.Config, log serverLog) (err error) {
	for _, address := range addresses {
		listener, err := listen(address)
		if err != nil {
			return err
		}
		l.listeners = append(l.listeners, listener)
	}
	if err := os.MkdirAll(upData, 0o700); err != nil {
		return fmt.Errorf("cannot create the data directory: %s", plain(err))
	}
	if replicas {
		if config.ReplicationToken, err = keptToken(filepath.Join(upData, "replication.token")); err != nil {
			return err
		}
	}
	nodes := len(addresses) - 1
	descriptors := vfs.Descriptors() / (1 + nodes)
	config.Sync = wal.Policy{Every: 250 * time.Millisecond}
	config.IdleClose, config.IdleTimeout, config.Drain = 5*time.Minute, time.Minute, upDrain
	config.Descriptors, config.Version, config.LogLost = descriptors, version, log.lines.lost.Load
	for i := range nodes {
		name := upNode(i)
		token, err := keptToken(filepath.Join(upData, name+".token"))
		if err != nil {
			return err
		}
		config.Dir, config.AdminToken, config.Log = filepath.Join(upData, name), token, log.With().Str("node", name).Logger()
		n, err := node.New(config)
		if err != nil {
			return err
		}
		l.nodes, l.tokens = append(l.nodes, n), append(l.tokens, token)
	}
	r, err := router.New(router.Config{
		Directory: filepath.Join(upData, "shard.fenec"), UpstreamTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, Descriptors: descriptors, Replicas: replicas,
		Version: version, Log: log.With().Str("node", "router").Logger(), LogLost: log.lines.lost.Load,
	})
	l.router = r
	return err
}

func (l *local) parts() []part {
	parts := []part{{"router", l.router, l.listeners[0]}}
	for i, n := range l.nodes {
		parts = append(parts, part{"node", n, l.listeners[1+i]})
	}
	return parts
}

func (l *local) url() string { return "http://" + l.listeners[0].Addr().String() }

// settle records the nodes with their current addresses and creates the demo tenant
// if it does not exist.
func (l *local) settle(ctx context.Context) error {
	router := client.New(l.url(), client.Options{Patience: -1})
	defer router.Close()
	for i, token := range l.tokens {
		record, err := json.Marshal(map[string]string{"addr": l.listeners[1+i].Addr().String(), "token": token})
		if err == nil {
			_, err = router.Do(ctx, http.MethodPut, "/_shard/nodes/"+upNode(i), record)
		}
		if err != nil {
			return fmt.Errorf("cannot record node %s: %w", upNode(i), err)
		}
	}
	_, err := router.Do(ctx, http.MethodPut, "/_shard/tenants/demo", []byte("{}"))
	if err != nil && !errors.Is(err, client.ErrConflict) {
		return fmt.Errorf("cannot place the tenant demo: %w", err)
	}
	demo := client.New(l.url()+"/t/demo", client.Options{Patience: -1})
	defer demo.Close()
	for _, statement := range demoStatements {
		_, err := demo.Exec(ctx, statement)
		if errors.Is(err, client.ErrConflict) {
			return nil // it exists from an earlier start
		}
		if err != nil {
			return fmt.Errorf("cannot create the collection notes of the tenant demo: %w", err)
		}
	}
	return nil
}

// demoStatements create the demo tenant's collection.
var demoStatements = []string{
	"create collection notes (title text required, stars int @sorted, at timestamp)",
	`put notes {title: "the first note", stars: 5, at: now()}`,
}

// greet prints example requests. The cluster runs even if that fails.
func (l *local) greet(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "router  %s\n", l.url())
	for i := range l.tokens {
		fmt.Fprintf(&b, "node    http://%s  (%s, admin token in %s)\n",
			l.listeners[1+i].Addr(), upNode(i), filepath.Join(upData, upNode(i)+".token"))
	}
	fmt.Fprintf(&b, "data    %s\n\nTry:\n\n", upData)
	demo := l.url() + "/t/demo"
	fmt.Fprintf(&b, "  curl '%s/notes?order=id.desc&limit=3'\n", demo)
	fmt.Fprintf(&b, "  curl %s/notes -d '{\"title\": \"from the shell\", \"stars\": 4}'\n", demo)
	fmt.Fprintf(&b, "  curl %s/query -d '{\"query\": \"get notes where stars >= 4 order stars desc limit 3\"}'\n", demo)
	fmt.Fprint(&b, "\nCtrl-C stops it; what was written is in "+upData+".\n")
	_, _ = io.WriteString(w, b.String())
}

// keptToken reads a token from its file, or creates a random one and writes it
// there.
func keptToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if token := strings.TrimSpace(string(content)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read a node's token: %s", plain(err))
	}
	token := rand.Text()
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("cannot write a node's token: %s", plain(err))
	}
	return token, nil
}
