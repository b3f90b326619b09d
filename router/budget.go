package router

import (
	"fenec/internal/http1"
	"fenec/internal/vfs"
)

const (
	// reservedDescriptors is what is kept for the rest of the process: the listener, the directory and its lock, the log,
	// the poller, and the requests that the router makes to nodes for itself.
	reservedDescriptors = 24
	// leastShare is what each share has at least, however few descriptors there are.
	leastShare = 4
)

// budget is how many connections the router may have at a time.
type budget struct {
	connections int   // of clients, those of streams not counted
	streams     int64 // each of a client and of a node
	upstream    int64 // to nodes, unused ones too
	refusals    int   // of clients that are being told there are too many
}

// newBudget shares the process's descriptors. A client takes two, as its request has a connection to a node; streams get
// an eighth of them at most. So there is a connection to a node for each client that may be connected, once what is kept
// unused makes room for it.
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
