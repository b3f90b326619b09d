package wal

import (
	"fmt"
	"time"
)

// Policy is when a write becomes durable. The zero Policy is off: synced on close.
type Policy struct {
	Always bool          // before it is acknowledged
	Every  time.Duration // the longest time from a write to its sync, if not Always; 0 is off
}

// ParsePolicy reads "always", "off", a number of milliseconds, or a duration such as "300ms".
func ParsePolicy(s string) (Policy, error) {
	switch s {
	case "always":
		return Policy{Always: true}, nil
	case "off":
		return Policy{}, nil
	}
	every, err := time.ParseDuration(s)
	if err != nil {
		every, err = time.ParseDuration(s + "ms")
	}
	if err != nil || every <= 0 {
		return Policy{}, fmt.Errorf("sync: expected always, off or a time above zero such as 250 (milliseconds) or 1s, got %q", s)
	}
	return Policy{Every: every}, nil
}

// String returns the policy in a form that ParsePolicy accepts.
func (p Policy) String() string {
	switch {
	case p.Always:
		return "always"
	case p.Every > 0:
		return p.Every.String()
	}
	return "off"
}
