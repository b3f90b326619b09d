package node

import (
	"fenec/internal/http1"
	"fenec/internal/vfs"
	"fenec/node/tenants"
)

// reservedDescriptors are kept for the rest of the process: the listener, the lock, the log, the poller, and side files of
// compactions and images. Each compaction at a time beyond the first has one more.
const reservedDescriptors = 24

const (
	// answerMemory is how many bytes running statements and answers that wait for their clients may take together, if
	// --max-memory allows it; leastAnswerMemory is their minimum, however small that is: twice the longest document.
	answerMemory      = 1 << 30
	leastAnswerMemory = 2 * http1.MaxBody
)

// leastShare is the minimum for connections and for open tenants, even with few descriptors.
const leastShare = 4

// budget is how much the node may have open and hold.
type budget struct {
	connections int             // at once, without those of streams
	streams     int64           // at once
	refusals    int             // connections past those, while they are refused
	tenants     *tenants.Budget // open tenants, and all memory

	bodies  *http1.Budget // of requests
	answers *http1.Budget // of running statements, and of answers, events and pages that wait for their clients
}

// share returns how much memory one use besides the open tenants may take: most, or a part of --max-memory if that is less,
// but never less than least.
func (c *Config) share(most, part, least int64) int64 {
	if c.MaxMemory > 0 {
		most = min(most, max(c.MaxMemory/part, least))
	}
	return most
}

// newBudget divides the process's descriptors between connections, streams and tenants, one each. Connections and streams
// get at most half of them, streams an eighth. Each is in one tenant at a time, so if tenants get at least as many as both, a
// request always finds an idle tenant that can be closed for the one it needs.
func newBudget(c Config) budget {
	descriptors := c.Descriptors
	if descriptors == 0 {
		descriptors = vfs.Descriptors()
	}
	free := int64(descriptors - reservedDescriptors - max(c.compactors()-1, 0))
	refusals := http1.Refusals(int(free))
	free -= int64(refusals)
	streams := min(int64(c.MaxStreams), max(free/8, leastShare))
	connections := min(int64(c.MaxConnections), max(free/2-streams, leastShare))
	return budget{
		connections: int(connections),
		streams:     streams,
		refusals:    refusals,
		tenants:     &tenants.Budget{MaxOpen: max(free-connections-streams, leastShare), MaxMemory: c.MaxMemory},
		bodies:      http1.NewBudget(c.share(http1.BodyMemory, 4, http1.MaxBody)),
		answers:     http1.NewBudget(c.share(answerMemory, 2, leastAnswerMemory)),
	}
}
