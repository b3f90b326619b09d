package node

import (
	"fenec/engine"
	"fenec/engine/fail"
	"fenec/node/tenants"
)

// checkGrowth refuses a write that adds to a tenant which alone holds more than all tenants may hold.
func (n *Node) checkGrowth(t *tenants.Tenant) error {
	if n.budget.tenants.MaxMemory == 0 || n.tenants.Measure(t) <= n.budget.tenants.MaxMemory {
		return nil
	}
	return fail.New(fail.Full, "the tenant holds more than the %d MiB of memory this node may use: only deletes are taken", n.budget.tenants.MaxMemory>>20)
}

// checkGrowth refuses statements that add to a tenant past its memory, and returns the index of the first.
func (c *call) checkGrowth(statements ...engine.Statement) (at int, err error) {
	err = c.node.checkGrowth(c.tenant)
	if err == nil || c.scope.MayWrite() != nil {
		return 0, nil // a write that is not permitted is refused as such
	}
	for i, st := range statements {
		grows, invalid := c.tenant.DB.Grows(c.memory.context(), st.Text)
		switch {
		case invalid != nil:
			return 0, nil // the engine reports what is wrong with it
		case grows:
			return i, err
		}
	}
	return 0, nil
}
