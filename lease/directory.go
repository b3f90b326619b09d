package lease

// Directory names a version of a router's directory: what a node keeps on disk of the router it obeys, and what a call says
// of its sender. The zero Directory is none.
type Directory struct {
	Lineage string // the cluster
	Term    uint64
	History string // the whole history, `<term>-<id>`
}

// Verdict is what a node does with a change that a router asks for.
type Verdict int

// Verdicts.
const (
	// Accept means the call is of the router that the node obeys.
	Accept Verdict = iota
	// AcceptAndRecord means the call's directory has to be on the node's disk before the call takes effect.
	AcceptAndRecord
	// Refuse comes with a *Refusal.
	Refuse
)

// Judge decides about a call for a node that has d on disk. leased is whether a lease runs on the node now.
//
// Of two directories with the same term and different histories, both of which forked from the same one, the node obeys
// the one that it heard first.
func (d Directory) Judge(call Directory, leased bool) (Verdict, error) {
	switch {
	case d == call:
		return Accept, nil
	case d == Directory{}:
		return AcceptAndRecord, nil
	case d.Lineage != call.Lineage:
		if leased {
			return Refuse, &Refusal{Reason: OtherLineage, History: d.History}
		}
		return AcceptAndRecord, nil
	case call.Term <= d.Term:
		return Refuse, &Refusal{Reason: OlderTerm, History: d.History}
	}
	return AcceptAndRecord, nil
}
