package doc

import "unsafe"

// unsafeString returns b as a string for the duration of a call that neither keeps nor changes it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
