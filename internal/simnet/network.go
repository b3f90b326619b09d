// Package simnet is a network in memory, for tests that run a whole cluster in one process. Its hosts have names; a listener
// and a connection belong to a host, and Crash ends all of one host's at once, as a loss of power does. Partition cuts two
// hosts off from each other, and Silence holds what one sends to the other.
//
// A connection is a pair of byte streams. What waits on one waits on a condition variable, so that a testing/synctest bubble
// sees it as blocked. The package starts no goroutine.
package simnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// Network is a network of hosts. Its methods may be called from any goroutine.
type Network struct {
	mu        sync.Mutex
	hosts     map[string]*Host
	listeners map[string]*listener // by address
	conns     map[*pair]struct{}
	cut       map[[2]*Host]bool // in both orders
	silent    map[[2]*Host]bool // from the first to the second
}

// Host is one machine of a network.
type Host struct {
	network *Network
	name    string
	ip      netip.Addr
	ports   uint16 // the last port given to a connection
}

// New returns a network without hosts.
func New() *Network {
	return &Network{
		hosts: map[string]*Host{}, listeners: map[string]*listener{}, conns: map[*pair]struct{}{},
		cut: map[[2]*Host]bool{}, silent: map[[2]*Host]bool{},
	}
}

// Host returns the host of a name, which is added if it is new.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		h = &Host{network: n, name: name, ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(len(n.hosts) + 1)}), ports: 1024}
		n.hosts[name] = h
	}
	return h
}

// Crash closes the listeners of h and resets its connections.
func (h *Host) Crash() {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	for addr, l := range n.listeners {
		if l.host == h {
			l.closeLocked()
			delete(n.listeners, addr)
		}
	}
	n.resetLocked(func(p *pair) bool { return p.from == h || p.to == h })
}

// Partition cuts h and other off from each other: their connections are reset, and new ones are refused until Heal.
func (h *Host) Partition(other *Host) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]*Host{h, other}], n.cut[[2]*Host{other, h}] = true, true
	n.resetLocked(func(p *pair) bool { return p.from == h && p.to == other || p.from == other && p.to == h })
}

// Silence makes all that h sends to other stay on its way until Heal: no end of a connection notices, and one that is dialled
// meanwhile is not answered. What other sends to h arrives.
func (h *Host) Silence(other *Host) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[[2]*Host{h, other}] = true
	n.holdLocked()
}

// Heal ends all partitions and silences: what was on its way arrives.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	clear(n.silent)
	n.holdLocked()
}

// holdLocked makes the streams of the connections those of a silence, or not.
func (n *Network) holdLocked() {
	for p := range n.conns {
		p.client.out.hold(n.silent[[2]*Host{p.from, p.to}])
		p.server.out.hold(n.silent[[2]*Host{p.to, p.from}])
	}
}

func (n *Network) resetLocked(which func(*pair) bool) {
	for p := range n.conns {
		if which(p) {
			p.reset()
			delete(n.conns, p)
		}
	}
}

// Listen returns a listener at host:port, where host is the name of h.
func (h *Host) Listen(port uint16) (net.Listener, error) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	addr := fmt.Sprintf("%s:%d", h.name, port)
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &listener{host: h, name: addr, addr: h.address(port)}
	l.changed.L = &n.mu
	n.listeners[addr] = l
	return l, nil
}

// Dial connects h to a listener. Its shape is that of net.Dialer.DialContext.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[addr]
	switch {
	case l == nil:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	case n.cut[[2]*Host{h, l.host}]:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
	case n.silent[[2]*Host{h, l.host}] || n.silent[[2]*Host{l.host, h}]:
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
	h.ports++
	p := newPair(h, l.host, h.address(h.ports), l.addr)
	n.conns[p] = struct{}{}
	l.waiting = append(l.waiting, p.server)
	l.changed.Signal()
	return p.client, nil
}

func (n *Network) forget(p *pair) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, p)
}

func (h *Host) address(port uint16) *net.TCPAddr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port))
}

// listener is a net.Listener.
type listener struct {
	host    *Host
	name    string
	addr    net.Addr
	changed sync.Cond // of what follows; its lock is the network's
	waiting []*conn
	closed  bool
}

func (l *listener) Accept() (net.Conn, error) {
	l.changed.L.Lock()
	defer l.changed.L.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, nil
}

func (l *listener) Close() error {
	n := l.host.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[l.name] == l {
		delete(n.listeners, l.name)
	}
	l.closeLocked()
	return nil
}

func (l *listener) closeLocked() {
	l.closed = true
	for _, c := range l.waiting {
		c.pair.reset()
	}
	l.waiting = nil
	l.changed.Broadcast()
}

func (l *listener) Addr() net.Addr { return l.addr }
