package collation

import (
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// orders holds each collation's order, made at its first use.
var orders = [...]func() *order{
	Root:    sync.OnceValue(func() *order { return newOrder(language.Und, frequent) }),
	Turkish: sync.OnceValue(func() *order { return newOrder(language.Turkish, frequent+"çğıöşü") }),
}

// order is the weights of a collation's characters.
type order struct {
	encoding
	collators sync.Pool // of *collator
	blocks    [limit / blockSize]atomic.Pointer[block]
}

const (
	blockSize = 128
	limit     = 0x20000 // a text with a rune from here on is given to golang.org/x/text/collate
)

// block is the weights of that many runes, made when the first of them is read.
type block [blockSize]weights

// weights are what a character adds to each part of a key.
type weights struct {
	primary      [8]byte
	secondary    [4]byte
	tertiary     [4]byte
	primaries    uint8 // how many bytes of primary there are, and so on
	secondaries  uint8
	tertiaries   uint8
	secondaryEnd uint8 // how many of them remain if the text ends here
	tertiaryEnd  uint8
	traits       traits
}

type traits uint8

const (
	acts     traits = 1 << iota // acts on its neighbours, or has more weights than there is room for
	accented                    // has secondary weights other than the common one
	cased                       // has tertiary weights other than the common one
)

var acting = weights{traits: acts}

func newOrder(tag language.Tag, frequent string) *order {
	o := &order{collators: sync.Pool{New: func() any { return &collator{Collator: collate.New(tag)} }}}
	c := o.getCollator()
	defer o.putCollator(c)
	var primaries []int
	for _, r := range frequent {
		primary, _, _ := c.levels(string(r))
		primaries = append(primaries, primaryWeight(primary))
	}
	o.encoding = newEncoding(primaries)
	return o
}

// weights returns the weights of a rune.
func (o *order) weights(r rune) *weights {
	if r >= limit {
		return &acting
	}
	return &o.block(int(r) / blockSize)[r%blockSize]
}

func (o *order) block(i int) *block {
	if b := o.blocks[i].Load(); b != nil {
		return b
	}
	c := o.getCollator()
	defer o.putCollator(c)
	b := new(block)
	for j := range b {
		b[j] = o.look(c, rune(i*blockSize+j))
	}
	o.blocks[i].Store(b) // two goroutines that make a block at once make the same one
	return b
}

// look reads the weights of a rune from the library.
func (o *order) look(c *collator, r rune) weights {
	if actsOnNeighbours(r) {
		return acting
	}
	var w weights
	primary, secondary, tertiary := c.levels(string(r))
	p := o.appendPrimaries(nil, primary)
	s, sEnd := appendSecondaries(nil, secondary)
	t, tEnd := appendTertiaries(nil, tertiary)
	if len(p) > len(w.primary) || len(s) > len(w.secondary) || len(t) > len(w.tertiary) {
		return acting
	}
	w.primaries, w.secondaries, w.tertiaries = uint8(copy(w.primary[:], p)), uint8(copy(w.secondary[:], s)), uint8(copy(w.tertiary[:], t))
	w.secondaryEnd, w.tertiaryEnd = uint8(sEnd), uint8(tEnd)
	if sEnd > 0 {
		w.traits |= accented
	}
	if tEnd > 0 {
		w.traits |= cased
	}
	return w
}

// actsOnNeighbours reports whether r next to other characters may have other weights than alone: it may change places
// with them, or be one with them. Two kinds of contraction are without a mark: a middle dot after an l, and the vowels
// that Thai, Lao and Tai Viet write before the consonant after which they are spoken.
func actsOnNeighbours(r rune) bool {
	switch {
	case r == '·', r >= 0x0e40 && r <= 0x0e44, r >= 0x0ec0 && r <= 0x0ec4, r >= 0xaab5 && r <= 0xaabc:
		return true
	}
	return unicode.Is(unicode.M, r) || norm.NFKD.PropertiesString(string(r)).LeadCCC() != 0
}

// collator is used by one goroutine at a time and has room for its keys.
type collator struct {
	*collate.Collator
	buffer collate.Buffer
}

// keepText is the length of the longest text after which a collator is reused, since it keeps the memory that the text
// took.
const keepText = 1 << 16

func (o *order) getCollator() *collator { return o.collators.Get().(*collator) }

func (o *order) putCollator(c *collator) { o.collators.Put(c) }

// levels returns the three parts of the key that golang.org/x/text/collate makes for a text, valid until the next call:
// primary weights of two bytes, or of three if the first bit is set, then two zeros, secondary weights of two bytes,
// two zeros, tertiary weights of one byte.
func (c *collator) levels(text string) (primary, secondary, tertiary []byte) {
	c.buffer.Reset()
	key := c.KeyFromString(&c.buffer, text)
	at := 0
	for key[at] != 0 || key[at+1] != 0 {
		at += primarySize(key[at:])
	}
	primary, key = key[:at], key[at+2:]
	at = 0
	for key[at] != 0 || key[at+1] != 0 {
		at += 2
	}
	return primary, key[:at], key[at+2:]
}

// appendWhole appends the key of any text.
func (o *order) appendWhole(dst, text []byte) []byte {
	c := o.getCollator()
	s := string(text)
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	primary, secondary, tertiary := c.levels(s)
	dst = o.appendPrimaries(dst, primary)
	start := len(dst)
	dst, end := appendSecondaries(append(dst, separator), secondary)
	dst, last := appendTertiaries(append(dst[:end], separator), tertiary)
	if len(s) <= keepText {
		o.putCollator(c)
	}
	switch {
	case last > end+1: // some are not common
		return dst[:last]
	case end > start+1:
		return dst[:end]
	}
	return dst[:start]
}
