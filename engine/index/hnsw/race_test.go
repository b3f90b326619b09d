//go:build race

package hnsw

// underRace reports that the race detector makes all work take ten times as long.
const underRace = true
