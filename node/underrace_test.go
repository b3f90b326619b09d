//go:build race

package node

// underRace reports whether the tests run under the race detector.
const underRace = true
