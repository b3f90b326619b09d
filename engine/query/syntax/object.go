package syntax

import "strings"

// items reads the fields of a document or of a set: `{field: value, path: value}`.
func (p *parser) items() ([]Item, error) {
	items, _, err := p.pairs(true)
	return items, err
}

// pairs reads `{key: value, ...}`. The keys of a document are fields and paths, those of a value are
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
		if err := p.want(':', "a colon after the key"); err != nil {
			return nil, 0, err
		}
		x, h, err := p.binary(bindNone, "a value after the colon")
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

// key reads a name, a path of a document, or a text. In a document a text that reads as a path is one,
// since no field's name has a dot in it.
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
		return Path{}, p.unexpected("a colon after the key, as the keys inside a value are no paths")
	}
	return Path{Parts: p.parts.list(name.Text), Pos: name.Pos}, nil
}

// IsPath reports whether s reads as a path: two names or more with dots between.
func IsPath(s string) bool {
	if strings.IndexByte(s, '.') < 0 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !IsName(part) {
			return false
		}
	}
	return true
}

// text returns the path as it is written.
func (x *Path) text() string { return strings.Join(x.Parts, ".") }

// fewKeys is the number of keys up to which they are compared one by one.
const fewKeys = 12

// keys is the set of keys of an object so far. The zero value is empty and ready to use.
type keys struct {
	// true for each key, false for each prefix of one; nil while there are few.
	seen map[string]bool
}

// add adds key. It fails if items hold it already, or hold something inside it or around it.
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

// overlap reports whether one path is a prefix of the other.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// givenTwice returns the error for a key that conflicts with other, or with a key inside other.
func (p *parser) givenTwice(key *Path, other string) error {
	switch text := key.text(); {
	case text == other && len(key.Parts) == 1:
		return p.invalid(key.Pos, "%s is given twice", quote(text))
	case len(other) < len(text):
		return p.invalid(key.Pos, "%s is given together with %s, which contains it", quote(text), quote(other))
	default:
		return p.invalid(key.Pos, "%s is given twice, here and before as itself or in parts", quote(text))
	}
}
