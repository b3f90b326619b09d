package router

import (
	"cmp"
	"slices"
	"sync"
)

// operationWidth is how many tenants an operation on many of them works on at a time.
const operationWidth = 4

// eachOf calls work with every name, operationWidth at a time, and returns once all calls have.
func eachOf(names []string, work func(name string)) {
	next := make(chan string)
	var workers sync.WaitGroup
	for range min(operationWidth, len(names)) {
		workers.Go(func() {
			for name := range next {
				work(name)
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	workers.Wait()
}

// sortBy sorts a list by the text that key returns.
func sortBy[T any](list []T, key func(T) string) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
