package wal

import (
	"fmt"
	"time"
)

// Policy says when what is written is made durable. The zero Policy is off: synced as the log closes.
type Policy struct {
	Always bool          // before it is answered
	Every  time.Duration // this long after it was written at the latest, where not Always; 0 is off
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
		return Policy{}, fmt.Errorf("sync wants always, off or a time above zero such as 250 (milliseconds) or 1s, got %q", s)
	}
	return Policy{Every: every}, nil
}

// String is the policy as ParsePolicy reads it.
func (p Policy) String() string {
	switch {
	case p.Always:
		return "always"
	case p.Every > 0:
		return p.Every.String()
	}
	return "off"
}
