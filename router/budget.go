package router

import (
	"fenec/internal/http1"
	"fenec/internal/vfs"
)

const (
	// reservedDescriptors are kept for the rest of the process: the listener, the directory and its lock, the log, the
	// poller, and the router's own requests to nodes.
	reservedDescriptors = 24
	// leastShare is the minimum of each share, even with few descriptors.
	leastShare = 4
)

// budget is how many connections the router may have at a time.
type budget struct {
	connections int   // of clients, without those of streams
	streams     int64 // each has one connection to a client and one to a node
	upstream    int64 // to nodes, idle ones included
	refusals    int   // of clients that are being refused because there are too many
}

// newBudget divides the process's descriptors. A client uses two, because its request has a connection to a node; streams
// get at most an eighth of the pairs. So each client that may be connected can have a connection to a node, once idle
// connections are closed to make room.
func newBudget(c Config) budget {
	descriptors := c.Descriptors
	if descriptors == 0 {
		descriptors = vfs.Descriptors()
	}
	free := descriptors - reservedDescriptors
	refusals := http1.Refusals(free)
	pairs := (free - refusals) / 2
	streams := min(c.MaxStreams, max(pairs/8, leastShare))
	connections := min(c.MaxConnections, max(pairs-streams, leastShare))
	return budget{
		connections: connections,
		streams:     int64(streams),
		upstream:    int64(connections + streams),
		refusals:    refusals,
	}
}
