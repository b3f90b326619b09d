package doc

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"fenec/engine/fail"
)

// ParseJSON appends the encoding of the one JSON value in text to dst. It is strict: it fails on invalid UTF-8, lone
// surrogates, a key given twice in one object, nesting past MaxNesting and anything after the value, and names the byte
// where reading stopped. An object's keys are sorted. Numbers are read as by ParseNumber.
func ParseJSON(dst, text []byte) ([]byte, error) { return parseJSON(dst, text, MaxNesting, nil) }

// ParseDocuments is ParseJSON for text that may be a document or a list of documents. MaxNesting applies to their
// fields, as they are stored: two more levels are read around them.
func ParseDocuments(dst, text []byte) ([]byte, error) {
	return ParseDocumentsWithin(dst, text, nil)
}

// ParseDocumentsWithin is ParseDocuments that calls hold each time its buffers have grown, with the bytes they take now,
// dst among them. It fails with the error of hold. A nil hold allows any size.
func ParseDocumentsWithin(dst, text []byte, hold func(bytes int) error) ([]byte, error) {
	return parseJSON(dst, text, MaxNesting+2, hold)
}

func parseJSON(dst, text []byte, deepest int, hold func(bytes int) error) ([]byte, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	p.text, p.at, p.depth, p.deepest = text, 0, 0, deepest
	p.hold, p.room, p.entryRoom = hold, cap(dst), cap(p.entries)
	p.entries = p.entries[:0]
	p.space()
	out, err := p.value(dst)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(text) {
		return nil, p.unexpected("nothing after the value")
	}
	return out, p.fits(out)
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// keptScratch is the largest scratch space that a pooled parser keeps.
const keptScratch = 64 << 10

type parser struct {
	text    []byte
	at      int
	depth   int
	deepest int    // how deep the text may be nested
	entries []span // of the objects that are open, innermost last
	scratch []byte

	hold            func(bytes int) error
	room, entryRoom int // the capacities of dst and entries when they were last counted
}

// fits calls hold if a buffer has grown.
func (p *parser) fits(dst []byte) error {
	if cap(dst) == p.room && cap(p.entries) == p.entryRoom || p.hold == nil {
		return nil
	}
	p.room, p.entryRoom = cap(dst), cap(p.entries)
	return p.hold(p.room + p.entryRoom*int(unsafe.Sizeof(span{})))
}

func (p *parser) release() {
	p.text, p.hold = nil, nil
	if cap(p.scratch) > keptScratch {
		p.scratch = nil
	}
	if cap(p.entries) > keptScratch/16 {
		p.entries = nil
	}
	parsers.Put(p)
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte after spaces, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) && p.text[p.at] <= ' ' {
		p.space()
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) unexpected(want string) error {
	if p.at >= len(p.text) {
		return fail.New(fail.Invalid, "the JSON ends at byte %d: expected %s", p.at, want)
	}
	r, w := utf8.DecodeRune(p.text[p.at:])
	if r == utf8.RuneError && w == 1 {
		return fail.New(fail.Invalid, "the JSON has invalid UTF-8 at byte %d", p.at)
	}
	return fail.New(fail.Invalid, "the JSON has %q at byte %d: expected %s", r, p.at, want)
}

func (p *parser) value(dst []byte) ([]byte, error) {
	switch c := p.peek(); c {
	case '"':
		return p.string(append(dst, tagText))
	case '{':
		return p.object(dst)
	case '[':
		return p.list(dst)
	case 't':
		return p.word(dst, "true", tagTrue)
	case 'f':
		return p.word(dst, "false", tagFalse)
	case 'n':
		return p.word(dst, "null", tagNull)
	default:
		if c == '-' || isDigit(c) {
			return p.number(dst)
		}
	}
	return nil, p.unexpected("a value")
}

func (p *parser) word(dst []byte, word string, tag byte) ([]byte, error) {
	if !bytes.HasPrefix(p.text[p.at:], []byte(word)) {
		return nil, p.unexpected("a value")
	}
	p.at += len(word)
	return append(dst, tag), nil
}

func (p *parser) number(dst []byte) ([]byte, error) {
	text := p.text[p.at:]
	if n, length := shortInt(text); length > 0 {
		p.at += length
		return appendFixed(dst, tagInt, uint64(n)), nil
	}
	if f, length := shortFloat(text); length > 0 {
		p.at += length
		return appendFixed(dst, tagFloat, math.Float64bits(f)), nil
	}
	n, ok := scanNumber(text)
	if !ok {
		return nil, fail.New(fail.Invalid, "the JSON has a number at byte %d that is not complete or begins with a zero", p.at)
	}
	p.at += n.length
	return n.appendTo(dst, text)
}

func (p *parser) open() error {
	if p.depth == p.deepest {
		return fail.New(fail.Invalid, "the JSON is nested more than %d deep at byte %d", p.deepest, p.at)
	}
	p.depth++
	p.at++
	return nil
}

func (p *parser) list(dst []byte) ([]byte, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	dst, at := OpenList(dst)
	for first := true; ; first = false {
		c := p.peek()
		if c == ']' && first {
			break
		}
		var err error
		if dst, err = p.value(dst); err != nil {
			return nil, err
		}
		if err = p.fits(dst); err != nil {
			return nil, err
		}
		if c = p.peek(); c == ']' {
			break
		}
		if c != ',' {
			return nil, p.unexpected("a comma or the list's end")
		}
		p.at++
	}
	p.at++
	p.depth--
	closeContainer(dst, at)
	return dst, nil
}

func (p *parser) object(dst []byte) ([]byte, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	dst, at := OpenObject(dst)
	body := at + containerHeader
	outer := len(p.entries)
	sorted := true
	for first := true; ; first = false {
		c := p.peek()
		if c == '}' && first {
			break
		}
		if c != '"' {
			return nil, p.unexpected("a key in quotes")
		}
		start := len(dst)
		var err error
		if dst, err = p.string(dst); err != nil {
			return nil, err
		}
		if n := len(p.entries); n > outer && sorted {
			switch bytes.Compare(keyAt(dst[body+p.entries[n-1].start:]), keyAt(dst[start:])) {
			case 0:
				return nil, duplicateKey(keyAt(dst[start:]))
			case 1:
				sorted = false
			}
		}
		if p.peek() != ':' {
			return nil, p.unexpected("a colon")
		}
		p.at++
		if dst, err = p.value(dst); err != nil {
			return nil, err
		}
		p.entries = append(p.entries, span{start - body, len(dst) - body})
		if err = p.fits(dst); err != nil {
			return nil, err
		}
		if c = p.peek(); c == '}' {
			break
		}
		if c != ',' {
			return nil, p.unexpected("a comma or the object's end")
		}
		p.at++
	}
	p.at++
	p.depth--
	if !sorted {
		if n := len(dst) - body; cap(p.scratch) < n {
			p.scratch = make([]byte, 0, n)
		}
		if err := permute(dst[body:], p.entries[outer:], p.scratch[:0]); err != nil {
			return nil, err
		}
	}
	p.entries = p.entries[:outer]
	closeContainer(dst, at)
	return dst, nil
}

// string appends the string that begins here, its length first.
func (p *parser) string(dst []byte) ([]byte, error) {
	p.at++
	content, err := p.run()
	if err != nil {
		return nil, err
	}
	if p.text[p.at] == '\\' {
		return p.escaped(dst, content)
	}
	p.at++
	return append(appendLength(dst, len(content)), content...), nil
}

// run reads text up to the next quote or backslash.
func (p *parser) run() ([]byte, error) {
	start := p.at
	p.at += plain(p.text[start:])
	content := p.text[start:p.at]
	if !utf8.Valid(content) {
		p.at = start + validLength(content)
		return nil, p.unexpected("text")
	}
	if p.at == len(p.text) {
		return nil, p.unexpected("the end of a string")
	}
	if p.text[p.at] < ' ' {
		return nil, p.unexpected("an escape for a control character")
	}
	return content, nil
}

// validLength returns the length of the valid UTF-8 at the start.
func validLength(s []byte) int {
	n := 0
	for n < len(s) {
		r, w := utf8.DecodeRune(s[n:])
		if r == utf8.RuneError && w == 1 {
			break
		}
		n += w
	}
	return n
}

// escaped appends a string whose first escape begins here, after content.
func (p *parser) escaped(dst, content []byte) ([]byte, error) {
	// The length comes first and is known last: there is room for the longest it can be, and the surplus is closed up.
	at := len(dst)
	const room = binary.MaxVarintLen32
	dst = append(dst, make([]byte, room)...)
	dst = append(dst, content...)
	for p.text[p.at] == '\\' {
		var err error
		if dst, err = p.escape(dst); err != nil {
			return nil, err
		}
		if content, err = p.run(); err != nil {
			return nil, err
		}
		dst = append(dst, content...)
	}
	p.at++
	content = dst[at+room:]
	w := binary.PutUvarint(dst[at:], uint64(len(content)))
	copy(dst[at+w:], content)
	return dst[:at+w+len(content)], nil
}

// escape appends the character that the escape at this position encodes.
func (p *parser) escape(dst []byte) ([]byte, error) {
	p.at++
	if p.at == len(p.text) {
		return nil, p.unexpected("the rest of an escape")
	}
	c := p.text[p.at]
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		p.at++
		return p.unicode(dst)
	default:
		return nil, p.unexpected(`one of "\/bfnrtu`)
	}
	p.at++
	return append(dst, c), nil
}

// unicode appends the character of one or two escapes of four hexadecimal digits, of which the first begins here.
func (p *parser) unicode(dst []byte) ([]byte, error) {
	r, err := p.hex()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) {
		second := rune(0)
		if bytes.HasPrefix(p.text[p.at:], []byte(`\u`)) {
			p.at += 2
			if second, err = p.hex(); err != nil {
				return nil, err
			}
		}
		if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
			return nil, fail.New(fail.Invalid, "the JSON has half a surrogate pair before byte %d", p.at)
		}
	}
	return utf8.AppendRune(dst, r), nil
}

func (p *parser) hex() (r rune, err error) {
	for range 4 {
		var c byte
		if p.at < len(p.text) {
			c = p.text[p.at]
		}
		switch {
		case isDigit(c):
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = (c | 0x20) - 'a' + 10
		default:
			return 0, p.unexpected("a hexadecimal digit")
		}
		r = r<<4 | rune(c)
		p.at++
	}
	return r, nil
}
