// Package boottime reads the clock that leases are counted by: it is never set, and on Linux it goes on while the machine is
// suspended.
package boottime
