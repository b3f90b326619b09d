package edge

import "bytes"

// SplitPath appends the segments of a path that are not empty.
func SplitPath(dst [][]byte, path []byte) [][]byte {
	for len(path) > 0 {
		segment := path
		if i := bytes.IndexByte(path, '/'); i >= 0 {
			segment, path = path[:i], path[i+1:]
		} else {
			path = nil
		}
		if len(segment) > 0 {
			dst = append(dst, segment)
		}
	}
	return dst
}
