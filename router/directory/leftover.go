package directory

import (
	"slices"
	"strings"
)

// Kind is what a leftover was.
type Kind uint8

const (
	// Copied: a move or a create made it, or a move superseded it.
	Copied Kind = iota
	// Follower: it was told to follow, or is about to be, and is not the tenant's replica in the directory.
	Follower
	// Former: it served the tenant until a failover, and may accept writes until it is told to follow.
	Former
	// Dead: it is of a tenant that was deleted, whose lineage is the leftover's token.
	Dead
)

var kindNames = [...]string{Copied: "", Follower: "follower", Former: "former", Dead: "dead"}

// Leftover is a copy that a node may hold and the directory does not route to.
type Leftover struct {
	Node string
	// Token is that of the move that froze or installed it, of the failover that may have frozen it, or the lineage of a dead
	// one. It is empty for a follower and for one that was created and never written to.
	Token string
	Kind  Kind
}

// With returns the list with the leftover in it. Neither With nor Without changes its argument.
func With(list []Leftover, one Leftover) []Leftover {
	if slices.Contains(list, one) {
		return list
	}
	return append(slices.Clip(list), one)
}

// Without returns the list without the leftovers on a node.
func Without(list []Leftover, node string) []Leftover {
	return slices.DeleteFunc(slices.Clone(list), func(l Leftover) bool { return l.Node == node })
}

// parseLeftovers reads what leftoverText has written. A kind that this version does not know is one it leaves alone: it reads
// as a copy whose token no copy carries.
func parseLeftovers(text string) (list []Leftover) {
	for _, word := range strings.Fields(text) {
		node, rest, _ := strings.Cut(word, ":")
		token, name, kinded := strings.Cut(rest, ":")
		l := Leftover{Node: node, Token: token}
		if kind := slices.Index(kindNames[:], name); kinded && kind > 0 {
			l.Kind = Kind(kind)
		} else if kinded {
			l.Token = rest
		}
		list = append(list, l)
	}
	return list
}

// leftoverText returns the leftovers separated by spaces, each the name of a node, followed by a colon and the token if there
// is one or the kind is not Copied, and by another colon and the kind in the latter case.
func leftoverText(list []Leftover) string {
	words := make([]string, len(list))
	for i, l := range list {
		words[i] = l.Node
		if l.Token != "" || l.Kind != Copied {
			words[i] += ":" + l.Token
		}
		if l.Kind != Copied {
			words[i] += ":" + kindNames[l.Kind]
		}
	}
	return strings.Join(words, " ")
}
