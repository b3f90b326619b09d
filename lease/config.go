package lease

import (
	"fmt"
	"time"
)

// Config is what a Keeper is made of.
type Config struct {
	// Length is the length of a lease, --auto-failover, in whole milliseconds.
	Length time.Duration
	// Name identifies this keeper among all keepers there ever are. It is random: epochs are made of it.
	Name string
	// Recorded is the length that the directory has, of the keepers before this one, or 0.
	Recorded time.Duration
	// Behind is whether the directory may lack changes of the router before this one: that of a promoted standby may, and one
	// whose disk may have lost what it had synced. The keeper then assumes that any node may hold any tenant's lease.
	Behind  bool
	Nodes   []NodeInfo
	Tenants []Placement
}

// NodeInfo is a node as the directory has it.
type NodeInfo struct {
	Name string
	// Leased is whether it has ever taken a lease. One that has not is never failed over.
	Leased bool
	// Passive is a node to which no tenant is failed over. The keeper only shows it.
	Passive bool
}

// Placement is a tenant as the directory has it.
type Placement struct {
	Tenant, Node string
	// FailingOver is a tenant whose failover is recorded: it was in no list when that was written. The owner finishes the
	// failover after Free, which is an action of the first Step unless the keeper is Behind.
	FailingOver bool
}

// Validate returns what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case c.Length < MinLength || c.Length > MaxLength:
		return fmt.Errorf("lease: expected a length from %s to %s, got %s", MinLength, MaxLength, c.Length)
	case c.Length%time.Millisecond != 0:
		return fmt.Errorf("lease: expected a length in whole milliseconds, got %s", c.Length)
	case c.Recorded < 0 || c.Recorded > MaxLength:
		return fmt.Errorf("lease: expected a recorded length from 0 to %s, got %s", MaxLength, c.Recorded)
	case c.Name == "" || len(c.Name) > maxEpochBytes-20:
		return fmt.Errorf("lease: expected a name of 1 to %d bytes, got %d", maxEpochBytes-20, len(c.Name))
	}
	return nil
}
