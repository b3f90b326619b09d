package doc

import "unsafe"

// unsafeString views b as a string for the length of a call that keeps nothing and changes nothing.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
