package node

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// comparison is the operator of FenecQL that a filter's operator stands for between a field and one value.
func comparison(op []byte) string {
	switch string(op) {
	case "eq":
		return " = "
	case "neq":
		return " != "
	case "lt":
		return " < "
	case "lte":
		return " <= "
	case "gt":
		return " > "
	case "gte":
		return " >= "
	case "has":
		return " has "
	}
	return ""
}

// filter reads `field=[not.]operator.value`, or `field=value`, into one more condition. Values are parameters without
// a type, read by the type of the field they meet.
func (c *call) filter(path, text []byte) error {
	if err := checkPath("the query string", path); err != nil {
		return err
	}
	value, negated := bytes.CutPrefix(text, notPrefix)
	op, value, found := bytes.Cut(value, dot)
	if !found || !isOperator(op) {
		op, value, negated = opEqual, text, false
	}
	c.and()
	if negated {
		c.condition = append(c.condition, "not ("...)
	}
	if err := c.operation(path, op, value); err != nil {
		return err
	}
	if negated {
		c.condition = append(c.condition, ')')
	}
	return nil
}

var (
	notPrefix = []byte("not.")
	opEqual   = []byte("eq")
)

func isOperator(op []byte) bool {
	switch string(op) {
	case "like", "in", "is":
		return true
	}
	return comparison(op) != ""
}

func (c *call) operation(path, op, value []byte) error {
	if sign := comparison(op); sign != "" {
		c.condition = append(append(c.condition, path...), sign...)
		c.condition = c.appendParam(c.condition, untyped(value))
		return nil
	}
	switch string(op) {
	case "is":
		return c.is(path, value)
	case "in":
		return c.in(path, value)
	}
	return c.like(path, value)
}

func untyped(text []byte) doc.Value { return doc.Value{Kind: doc.Untyped, B: text} }

func (c *call) is(path, value []byte) error {
	c.condition = append(c.condition, path...)
	switch string(value) {
	case "null":
		c.condition = append(c.condition, " is null"...)
	case "not_null":
		c.condition = append(c.condition, " is not null"...)
	case "true", "false":
		c.condition = append(append(c.condition, " = "...), value...)
	default:
		return fail.New(fail.Invalid, "%s=is. wants null, not_null, true or false, got %s", path, quoted(value))
	}
	return nil
}

// in reads `(a,b,"c,d")`: values between parentheses, each bare or between quotes, where a backslash takes the next
// character as it is.
func (c *call) in(path, list []byte) error {
	if len(list) < 2 || list[0] != '(' || list[len(list)-1] != ')' {
		return fail.New(fail.Invalid, "%s=in. wants values between parentheses, as in.(a,b), got %s", path, quoted(list))
	}
	list = list[1 : len(list)-1]
	c.condition = append(append(c.condition, path...), " in ["...)
	for first := true; len(list) > 0 || !first; first = false {
		value, rest, more, err := c.member(path, list)
		if err != nil {
			return err
		}
		if !first {
			c.condition = append(c.condition, ',')
		}
		c.condition = c.appendParam(c.condition, untyped(value))
		if list = rest; !more {
			break
		}
	}
	c.condition = append(c.condition, ']')
	return nil
}

// member takes the first value off a list; more tells that a comma followed it.
func (c *call) member(path, list []byte) (value, rest []byte, more bool, err error) {
	if len(list) == 0 || list[0] != '"' {
		value, rest, more = bytes.Cut(list, comma)
		return value, rest, more, nil
	}
	start := len(c.values)
	for i := 1; i < len(list); i++ {
		switch {
		case list[i] == '\\' && i+1 < len(list):
			i++
			c.values = append(c.values, list[i])
		case list[i] != '"':
			c.values = append(c.values, list[i])
		case i+1 == len(list) || list[i+1] == ',':
			value = c.values[start:len(c.values):len(c.values)]
			if i+1 == len(list) {
				return value, nil, false, nil
			}
			return value, list[i+2:], true, nil
		default:
			return nil, nil, false, fail.New(fail.Invalid, "%s=in. has more behind a quoted value than a comma: %s", path, quoted(list[i+1:]))
		}
	}
	return nil, nil, false, fail.New(fail.Invalid, "%s=in. has a quote that is not closed: %s", path, quoted(list))
}

// like reads a pattern, in which % or * stands for any text and _ for any character, and a backslash takes the next
// character as it is. FenecQL has no patterns, so only those are taken that it can say exactly: a text, a beginning
// `abc%`, any text `%`, and a part `%12%` of characters that have no case, since ~ ignores case.
func (c *call) like(path, pattern []byte) error {
	text, opens, closes, err := c.pattern(path, pattern)
	if err != nil {
		return err
	}
	switch {
	case (opens || closes) && len(text) == 0:
		c.condition = append(append(c.condition, path...), " is not null"...)
	case !opens && !closes:
		c.condition = append(append(c.condition, path...), " = "...)
		c.condition = c.appendParam(c.condition, doc.TextValue(text))
	case !opens:
		c.prefix(path, text)
	case closes && !hasCase(text):
		c.condition = append(append(c.condition, path...), " ~ "...)
		c.condition = c.appendParam(c.condition, doc.TextValue(text))
	default:
		return errPattern(path, pattern)
	}
	return nil
}

func errPattern(path, pattern []byte) error {
	return fail.New(fail.Unsupported, "%s=like.%s comes with a later version: for now like takes a text, text%% and, "+
		"of characters without upper and lower case, %%text%%; where=%s ~ \"text\" finds a part whatever its case",
		clipped(path), clipped(pattern), clipped(path))
}

// pattern reads what stands between the wildcards at a pattern's ends.
func (c *call) pattern(path, pattern []byte) (text []byte, opens, closes bool, err error) {
	start := len(c.values)
	for i := 0; i < len(pattern); i++ {
		switch b := pattern[i]; {
		case b == '\\' && i+1 < len(pattern):
			i++
			fallthrough
		case b != '%' && b != '*' && b != '_':
			if closes {
				return nil, false, false, errPattern(path, pattern)
			}
			c.values = append(c.values, pattern[i])
		case b == '_':
			return nil, false, false, errPattern(path, pattern)
		case len(c.values) == start && !closes && i == 0:
			opens = true
		default:
			closes = true
		}
	}
	return c.values[start:len(c.values):len(c.values)], opens, closes, nil
}

// prefix asks for texts that begin with text. By their bytes, which coalesce orders them by whatever the field's
// collation, these are the ones from it up to the first text that is above everything beginning with it, where there
// is one.
func (c *call) prefix(path, text []byte) {
	c.condition = append(c.condition, '(')
	c.relate(path, " >= ", text)
	start := len(c.values)
	if c.values = appendSuccessor(c.values, text); len(c.values) > start {
		c.condition = append(c.condition, " and "...)
		c.relate(path, " < ", c.values[start:len(c.values):len(c.values)])
	}
	c.condition = append(c.condition, ')')
}

// relate compares texts by their bytes.
func (c *call) relate(path []byte, sign string, text []byte) {
	c.condition = append(append(append(c.condition, "coalesce("...), path...), ')')
	c.condition = c.appendParam(append(c.condition, sign...), doc.TextValue(text))
}

// appendSuccessor appends the least text above all that begin with text, nothing where there is none. The order of
// bytes is that of code points.
func appendSuccessor(dst, text []byte) []byte {
	for len(text) > 0 {
		last, size := utf8.DecodeLastRune(text)
		text = text[:len(text)-size]
		switch {
		case last == unicode.MaxRune:
			continue
		case last == 0xd7ff:
			last = 0xe000 // past the surrogates, which are no characters
		default:
			last++
		}
		return utf8.AppendRune(append(dst, text...), last)
	}
	return dst
}

// hasCase tells whether a character of text has another that differs by case only.
func hasCase(text []byte) bool {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if unicode.SimpleFold(r) != r {
			return true
		}
		i += size
	}
	return false
}
