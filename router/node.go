package router

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// node is the router's object for a node of the directory. It stays the same as long as the node's name is recorded, so the
// directory's maps point at it; only its link may change.
type node struct {
	name   string
	link   atomic.Pointer[link]
	errors *metrics.Counter // requests that it did not answer

	draining atomic.Int32 // drains under way: no tenant is placed on it meanwhile
}

// link is how a node is reached. It is immutable and replaced whole when the node is recorded again.
type link struct {
	addr  string // as it was recorded and is listed
	host  string // host:port, for dialing and for Host
	tls   *tls.Config
	token string
	pool  pool
	marks marks
	away  atomic.Bool // the last request had no answer
}

// url returns the node's address as other nodes are told it.
func (l *link) url() string {
	if l.tls != nil {
		return "https://" + l.host
	}
	return "http://" + l.host
}

// lost records that a request to the node had no answer.
func (l *link) lost() { l.away.Store(true) }

// answered records that the node answered a request. If it had not answered the one before, what waits for it can be done.
func (l *link) answered() {
	if l.away.Load() && l.away.Swap(false) {
		l.pool.transport.back()
	}
}

// newLink parses a node's address: host:port, optionally with http:// or https:// before it.
func newLink(addr, token string, t *transport) (*link, error) {
	l := &link{addr: addr, host: addr, token: token}
	if rest, ok := strings.CutPrefix(addr, "https://"); ok {
		l.host = rest
		l.tls = &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	} else if rest, ok := strings.CutPrefix(addr, "http://"); ok {
		l.host = rest
	}
	l.host = strings.TrimSuffix(l.host, "/")
	host, port, err := net.SplitHostPort(l.host)
	if err != nil || host == "" || port == "" || strings.ContainsAny(l.host, "/?#@ \t\r\n") {
		return nil, fmt.Errorf("addr: expected a host and a port such as 127.0.0.1:8081, with https:// before it if the node uses TLS, got %q", addr)
	}
	if l.tls != nil {
		l.tls.ServerName = host
	}
	if strings.ContainsAny(token, "\r\n\x00") {
		return nil, fmt.Errorf("token: expected the node's admin token, got one with a line break in it")
	}
	l.pool.transport = t
	l.pool.link = l
	l.marks.key = []byte(token)
	return l, nil
}

// maxMarks bounds the client addresses whose marks are cached per node.
const maxMarks = 4096

// marks makes the header from which a node takes a client's address: the address and an HMAC of it under the node's admin
// token. It is made once a client, not once a request.
type marks struct {
	key   []byte
	last  atomic.Pointer[mark]
	mu    sync.RWMutex
	known map[netip.Addr]*mark
}

type mark struct {
	client netip.Addr
	line   string // the header, with its line end
}

// line returns the header line for a client.
func (m *marks) line(client netip.Addr) string {
	if last := m.last.Load(); last != nil && last.client == client {
		return last.line
	}
	m.mu.RLock()
	found := m.known[client]
	m.mu.RUnlock()
	if found == nil {
		found = m.make(client)
	}
	m.last.Store(found)
	return found.line
}

func (m *marks) make(client netip.Addr) *mark {
	text := client.Unmap().WithZone("").String()
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(text)) // a hash never fails
	made := &mark{client, "Fenec-Router: " + text + " " + hex.EncodeToString(mac.Sum(nil)) + "\r\n"}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMarks {
		m.known = make(map[netip.Addr]*mark)
	}
	m.known[client] = made
	return made
}
