package syntax

import "strings"

// items reads the fields of a document or of a set: `{field: value, path: value}`.
func (p *parser) items() ([]Item, error) {
	items, _, err := p.pairs(true)
	return items, err
}

// pairs reads `{key: value, ...}`. Of a document the keys are fields and paths, of a value they are
// single keys.
func (p *parser) pairs(document bool) ([]Item, int, error) {
	p.advance()
	height := 0
	if p.takeKind('}') {
		return []Item{}, 0, nil
	}
	items := make([]Item, 0, max(p.width, 1)) // documents of one put mostly have the same fields
	var seen keys
	for {
		key, err := p.key(document)
		if err != nil {
			return nil, 0, err
		}
		if err := seen.add(p, items, &key); err != nil {
			return nil, 0, err
		}
		if err := p.want(':', "a colon behind the key"); err != nil {
			return nil, 0, err
		}
		x, h, err := p.binary(bindNone, "a value behind the colon")
		if err != nil {
			return nil, 0, err
		}
		items = append(items, Item{Key: key, Value: x})
		height = max(height, h)
		if p.takeKind(',') {
			continue
		}
		p.width = min(len(items), fewKeys)
		return items, height, p.want('}', "a comma and the next key, an operator or }")
	}
}

// key reads a name, a path of a document, or a text. A document's text is a path where it reads as
// one, for no field's name has a dot in it.
func (p *parser) key(document bool) (Path, error) {
	switch {
	case p.tok.kind == kindText:
		at := p.tok.pos
		text := string(p.text().B)
		if document && IsPath(text) {
			parts := strings.Split(text, ".")
			if len(parts) > MaxPath {
				return Path{}, p.pathTooLong(at)
			}
			return Path{Parts: parts, Pos: at}, nil
		}
		return Path{Parts: p.parts.list(text), Pos: at}, nil
	case document:
		return p.path("a field's name")
	}
	name, err := p.name("a key (a name or a text)")
	if err != nil {
		return Path{}, err
	}
	if p.tok.kind == '.' {
		return Path{}, p.unexpected("a colon behind the key, as the keys inside a value are no paths")
	}
	return Path{Parts: p.parts.list(name.Text), Pos: name.Pos}, nil
}

// IsPath reports whether s reads as a path: two names or more with dots between.
func IsPath(s string) bool {
	if strings.IndexByte(s, '.') < 0 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isName(part) {
			return false
		}
	}
	return true
}

// text is the path as it is written.
func (x *Path) text() string { return strings.Join(x.Parts, ".") }

// fewKeys is up to how many keys are compared one by one.
const fewKeys = 12

// keys tells which keys an object has so far. The zero value is ready.
type keys struct {
	// Each key, and as false each path that only leads to one; nil while there are few.
	seen map[string]bool
}

// add refuses key where items hold it already, or hold something that is inside it or around it.
func (k *keys) add(p *parser, items []Item, key *Path) error {
	if len(items) < fewKeys {
		for i := range items {
			if other := &items[i].Key; overlap(other.Parts, key.Parts) {
				return p.givenTwice(key, other.text())
			}
		}
		return nil
	}
	if k.seen == nil {
		k.seen = make(map[string]bool, 2*len(items))
		for i := range items {
			k.note(&items[i].Key)
		}
	}
	whole := key.text()
	if _, ok := k.seen[whole]; ok {
		return p.givenTwice(key, whole)
	}
	for i := range whole {
		if whole[i] == '.' && len(key.Parts) > 1 && k.seen[whole[:i]] {
			return p.givenTwice(key, whole[:i])
		}
	}
	k.note(key)
	return nil
}

func (k *keys) note(key *Path) {
	whole := key.text()
	for i := range whole {
		if whole[i] == '.' && len(key.Parts) > 1 {
			k.seen[whole[:i]] = false
		}
	}
	k.seen[whole] = true
}

// overlap reports whether one path begins with the other.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// givenTwice refuses a key; other is the one it meets, or leads to one that it meets.
func (p *parser) givenTwice(key *Path, other string) error {
	switch text := key.text(); {
	case text == other && len(key.Parts) == 1:
		return p.invalid(key.Pos, "%s is given twice", quote(text))
	case len(other) < len(text):
		return p.invalid(key.Pos, "%s is given beside %s, which it is inside", quote(text), quote(other))
	default:
		return p.invalid(key.Pos, "%s is given twice, here and before as itself or in parts", quote(text))
	}
}
