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

// node is one node of the directory. It stays the same object for as long as its name is recorded, so placements
// point at it; what may change of it is its link.
type node struct {
	name   string
	link   atomic.Pointer[link]
	errors *metrics.Counter // requests that it did not answer

	draining atomic.Int32 // drains under way: nothing is placed on it meanwhile

	// holds counts the tenants that name it as their node or their target, and the changes under way that will;
	// removed is set as the node leaves. Both are guarded by directory.mu.
	holds   int
	removed bool
}

// link is how a node is reached: immutable, replaced whole where the node is recorded anew.
type link struct {
	addr  string // as it was recorded, and as it is shown
	host  string // host:port, to dial and to name
	tls   *tls.Config
	token string
	pool  pool
	marks marks
}

// newLink reads a node's address: host:port, with http:// or https:// before it or not.
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
		return nil, fmt.Errorf("addr wants a host and a port such as 127.0.0.1:8081, with https:// before it where the node speaks TLS, got %q", addr)
	}
	if l.tls != nil {
		l.tls.ServerName = host
	}
	if strings.ContainsAny(token, "\r\n\x00") {
		return nil, fmt.Errorf("token wants the node's admin token, got one with a line break in it")
	}
	l.pool.transport = t
	l.pool.link = l
	l.marks.key = []byte(token)
	return l, nil
}

// maxMarks bounds the addresses a node's marks are remembered for.
const maxMarks = 4096

// marks makes the header by which a node believes the router about a client's address: the address and an HMAC of it
// under the node's admin token. One is made a client, not a request.
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

// line is the header for a client.
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
	mac.Write([]byte(text)) // a hash takes every byte
	made := &mark{client, "Fenec-Router: " + text + " " + hex.EncodeToString(mac.Sum(nil)) + "\r\n"}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMarks {
		m.known = make(map[netip.Addr]*mark)
	}
	m.known[client] = made
	return made
}
