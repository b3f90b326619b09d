package http1

import "bytes"

// MaxTenant is the longest tenant name, in bytes.
const MaxTenant = 64

var root = []byte("/")

// ValidTenant reports whether the name is 1 to 64 of [a-z0-9_-], which means the
// same on every file system.
func ValidTenant[T string | []byte](name T) bool {
	if len(name) == 0 || len(name) > MaxTenant {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// SplitTenant splits a path "/t/<tenant>/..." into the tenant and the path below
// it, which always begins with a slash and has no leading empty segments. ok is
// false for a path that is not a tenant's. The tenant's segment is literal: a
// name that ValidTenant refuses is an Error with status 400.
func SplitTenant(path []byte) (tenant, rest []byte, ok bool, err *Error) {
	segment, rest := cutSegment(path)
	if len(segment) != 1 || segment[0] != 't' {
		return nil, nil, false, nil
	}
	name, rest := cutSegment(rest)
	if len(name) == 0 {
		return nil, nil, false, nil
	}
	if !ValidTenant(name) {
		err = refuse(400, "a tenant's name is 1 to %d of a-z, 0-9, _ and -, got %q", MaxTenant, clip(name))
		err.kept = true
		return nil, nil, true, err
	}
	for len(rest) > 1 && rest[1] == '/' {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		rest = root
	}
	return name, rest, true, nil
}

// cutSegment cuts the first non-empty segment off a path; the rest begins with
// the slash that ended it.
func cutSegment(path []byte) (segment, rest []byte) {
	for len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if i := bytes.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, nil
}

// clip shortens bytes of a request that an error quotes.
func clip(b []byte) []byte {
	if len(b) > MaxTenant {
		return append(b[:MaxTenant:MaxTenant], "..."...)
	}
	return b
}
