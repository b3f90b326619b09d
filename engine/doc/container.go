package doc

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"fenec/engine/fail"
)

// MaxNesting is the largest depth to which lists and objects may be nested in the value of a field.
const MaxNesting = 64

// body returns the content of a list or object, nil if r is neither.
func (r Raw) body(tag byte) []byte {
	if len(r) < containerHeader || r[0] != tag {
		return nil
	}
	return r[containerHeader:]
}

// Elements calls fn for each element of a list, in order, until fn returns false. It does nothing if r is not a list.
func (r Raw) Elements(fn func(Raw) bool) {
	for b := r.body(tagList); len(b) > 0; {
		n := size(b)
		if n == 0 || !fn(Raw(b[:n:n])) {
			return
		}
		b = b[n:]
	}
}

// Entries calls fn for each key and value of an object, by ascending key, until fn returns false. It does nothing if r
// is not an object.
func (r Raw) Entries(fn func(key []byte, value Raw) bool) {
	for b := r.body(tagObject); len(b) > 0; {
		key, value, rest, ok := entry(b)
		if !ok || !fn(key, value) {
			return
		}
		b = rest
	}
}

// Count returns the number of elements of a list or entries of an object, 0 for anything else.
func (r Raw) Count() int {
	n := 0
	switch r.Kind() {
	case List:
		r.Elements(func(Raw) bool { n++; return true })
	case Object:
		r.Entries(func([]byte, Raw) bool { n++; return true })
	}
	return n
}

// entry splits the first key and value off an object's body.
func entry(b []byte) (key []byte, value Raw, rest []byte, ok bool) {
	length, w := uint64(b[0]), 1
	if length >= 0x80 {
		length, w = binary.Uvarint(b)
	}
	if w <= 0 || length > uint64(len(b)-w) {
		return nil, nil, nil, false
	}
	end := w + int(length)
	n := size(b[end:])
	if n == 0 {
		return nil, nil, nil, false
	}
	return b[w:end:end], Raw(b[end : end+n : end+n]), b[end+n:], true
}

// Path returns the value found by following keys into objects, nil if a key is absent or a value on the path is not an
// object.
func (r Raw) Path(keys []string) Raw {
	for _, key := range keys {
		if r = r.Key(key); r == nil {
			return nil
		}
	}
	return r
}

// Key returns the value of an object's key, nil if the key is absent or r is not an object.
func (r Raw) Key(key string) Raw {
	for b := r.body(tagObject); len(b) > 0; {
		k, value, rest, ok := entry(b)
		if !ok {
			return nil
		}
		if c := compareKey(k, key); c == 0 {
			return value
		} else if c > 0 {
			return nil
		}
		b = rest
	}
	return nil
}

func compareKey(k []byte, key string) int { return strings.Compare(unsafeString(k), key) }

// OpenList begins a list at the end of dst. The caller appends its elements to the result and ends it with Close.
func OpenList(dst []byte) (out []byte, at int) {
	return append(dst, tagList, 0, 0, 0, 0), len(dst)
}

// OpenObject begins an object at the end of dst. The caller appends a key (AppendKey) and a value for each entry and
// ends it with Close.
func OpenObject(dst []byte) (out []byte, at int) {
	return append(dst, tagObject, 0, 0, 0, 0), len(dst)
}

// AppendKey appends the key of an object's next entry.
func AppendKey(dst []byte, key string) []byte {
	return append(appendLength(dst, len(key)), key...)
}

// Close ends the list or object opened at at: it fills in the length and sorts an object's entries by key. It fails if
// a key occurs twice.
func Close(dst []byte, at int) ([]byte, error) {
	if dst[at] == tagObject {
		if err := sortEntries(dst[at+containerHeader:]); err != nil {
			return nil, err
		}
	}
	closeContainer(dst, at)
	return dst, nil
}

func closeContainer(dst []byte, at int) {
	binary.LittleEndian.PutUint32(dst[at+1:], uint32(len(dst)-at-containerHeader))
}

// span is the place of one entry in an object's body.
type span struct{ start, end int }

// sortEntries orders the entries of an object's body by key, in place.
func sortEntries(body []byte) error {
	var few [16]span
	spans, sorted := few[:0], true
	var last []byte
	for rest := body; len(rest) > 0; {
		key, _, next, ok := entry(rest)
		if !ok {
			return fail.New(fail.Damaged, "an object ends within an entry")
		}
		if len(spans) > 0 && bytes.Compare(last, key) >= 0 {
			sorted = false
		}
		start := len(body) - len(rest)
		spans = append(spans, span{start, len(body) - len(next)})
		last, rest = key, next
	}
	if sorted {
		return nil
	}
	return permute(body, spans, make([]byte, 0, len(body)))
}

// permute rewrites body with the entries at spans in order of their keys. scratch must have the capacity of body.
func permute(body []byte, spans []span, scratch []byte) error {
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(keyAt(body[a.start:]), keyAt(body[b.start:])) })
	for i, s := range spans {
		if i > 0 && bytes.Equal(keyAt(body[spans[i-1].start:]), keyAt(body[s.start:])) {
			return duplicateKey(keyAt(body[s.start:]))
		}
		scratch = append(scratch, body[s.start:s.end]...)
	}
	copy(body, scratch)
	return nil
}

func keyAt(b []byte) []byte {
	if n := int(b[0]); n < 0x80 {
		return b[1 : 1+n]
	}
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)]
}

func duplicateKey(key []byte) error {
	return fail.New(fail.Invalid, "the key %s is given twice in one object", quoteShort(key))
}

// AppendWithPath appends base, which is an object or null, to dst with v at the path that keys name. Objects on the
// path that are absent or null are created. It fails if anything else is on the path; what names the value in the
// error.
func AppendWithPath(dst []byte, base Raw, keys []string, v Raw, what string) ([]byte, error) {
	if len(keys) == 0 {
		if len(v) == 0 {
			return append(dst, tagNull), nil
		}
		return append(dst, v...), nil
	}
	if !base.IsNull() && base.Kind() != Object {
		return nil, fail.New(fail.Invalid, "%s holds %s, so nothing can be set at %q in it", what, describe(base.Value()), strings.Join(keys, "."))
	}
	dst, at := OpenObject(dst)
	placed := false
	var err error
	place := func(old Raw) {
		placed = true
		dst = AppendKey(dst, keys[0])
		dst, err = AppendWithPath(dst, old, keys[1:], v, what+"."+keys[0])
	}
	base.Entries(func(key []byte, value Raw) bool {
		c := compareKey(key, keys[0])
		if c >= 0 && !placed {
			var old Raw
			if c == 0 {
				old = value
			}
			place(old)
		}
		if c != 0 && err == nil {
			dst = AppendKey(dst, unsafeString(key))
			dst = append(dst, value...)
		}
		return err == nil
	})
	if !placed {
		place(nil)
	}
	if err != nil {
		return nil, err
	}
	closeContainer(dst, at)
	return dst, nil
}
