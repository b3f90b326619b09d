package index

import "runtime"

// heapObjects returns how many more objects are on the heap after fill ran and its garbage was collected.
func heapObjects(fill func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapObjects) - int64(before.HeapObjects)
}
