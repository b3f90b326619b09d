package node

import (
	"bytes"

	"fenec/engine/doc"
	"fenec/engine/fail"
)

// comparison maps a filter's operator between a field and one value to FenecQL's.
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

// filter reads `field=[not.]operator.value`, or `field=value`, into one more condition. Values are parameters without a
// type, which are parsed by the type of their field.
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
	c.like(path, value)
	return nil
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

// in reads `(a,b,"c,d")`: values between parentheses, each bare or between quotes, in which a backslash escapes the next
// character.
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

// member cuts the first value off a list; more reports whether a comma followed it.
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

// like adds a match of a text with a pattern, which is a value like any other: the statement is the same for all patterns.
func (c *call) like(path, pattern []byte) {
	c.condition = append(append(append(c.condition, "like("...), path...), ", "...)
	c.condition = append(c.appendParam(c.condition, doc.TextValue(pattern)), ')')
}
