package rest

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
func (s *Statement) filter(path, text []byte) error {
	if err := checkPath("the query string", path); err != nil {
		return err
	}
	value, negated := bytes.CutPrefix(text, notPrefix)
	op, value, found := bytes.Cut(value, dot)
	if !found || !isOperator(op) {
		op, value, negated = opEqual, text, false
	}
	s.and()
	if negated {
		s.condition = append(s.condition, "not ("...)
	}
	if err := s.operation(path, op, value); err != nil {
		return err
	}
	if negated {
		s.condition = append(s.condition, ')')
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

func (s *Statement) operation(path, op, value []byte) error {
	if sign := comparison(op); sign != "" {
		s.condition = append(append(s.condition, path...), sign...)
		s.condition = s.AppendParam(s.condition, untyped(value))
		return nil
	}
	switch string(op) {
	case "is":
		return s.is(path, value)
	case "in":
		return s.in(path, value)
	}
	s.like(path, value)
	return nil
}

func untyped(text []byte) doc.Value { return doc.Value{Kind: doc.Untyped, B: text} }

func (s *Statement) is(path, value []byte) error {
	s.condition = append(s.condition, path...)
	switch string(value) {
	case "null":
		s.condition = append(s.condition, " is null"...)
	case "not_null":
		s.condition = append(s.condition, " is not null"...)
	case "true", "false":
		s.condition = append(append(s.condition, " = "...), value...)
	default:
		return fail.New(fail.Invalid, "%s=is.: expected null, not_null, true or false, got %s", path, Quoted(value))
	}
	return nil
}

// in reads `(a,b,"c,d")`: values between parentheses, each bare or between quotes, in which a backslash escapes the next
// character.
func (s *Statement) in(path, list []byte) error {
	if len(list) < 2 || list[0] != '(' || list[len(list)-1] != ')' {
		return fail.New(fail.Invalid, "%s=in.: expected values between parentheses, as in.(a,b), got %s", path, Quoted(list))
	}
	list = list[1 : len(list)-1]
	s.condition = append(append(s.condition, path...), " in ["...)
	for first := true; len(list) > 0 || !first; first = false {
		value, rest, more, err := s.member(path, list)
		if err != nil {
			return err
		}
		if !first {
			s.condition = append(s.condition, ',')
		}
		s.condition = s.AppendParam(s.condition, untyped(value))
		if list = rest; !more {
			break
		}
	}
	s.condition = append(s.condition, ']')
	return nil
}

// member cuts the first value off a list; more reports whether a comma followed it.
func (s *Statement) member(path, list []byte) (value, rest []byte, more bool, err error) {
	if len(list) == 0 || list[0] != '"' {
		value, rest, more = bytes.Cut(list, comma)
		return value, rest, more, nil
	}
	start := len(s.Values)
	for i := 1; i < len(list); i++ {
		switch {
		case list[i] == '\\' && i+1 < len(list):
			i++
			s.Values = append(s.Values, list[i])
		case list[i] != '"':
			s.Values = append(s.Values, list[i])
		case i+1 == len(list) || list[i+1] == ',':
			value = s.Values[start:len(s.Values):len(s.Values)]
			if i+1 == len(list) {
				return value, nil, false, nil
			}
			return value, list[i+2:], true, nil
		default:
			return nil, nil, false, fail.New(fail.Invalid, "%s=in. has more behind a quoted value than a comma: %s", path, Quoted(list[i+1:]))
		}
	}
	return nil, nil, false, fail.New(fail.Invalid, "%s=in. has a quote that is not closed: %s", path, Quoted(list))
}

// like adds a match of a text with a pattern, which is a value like any other: the statement is the same for all patterns.
func (s *Statement) like(path, pattern []byte) {
	s.condition = append(append(append(s.condition, "like("...), path...), ", "...)
	s.condition = append(s.AppendParam(s.condition, doc.TextValue(pattern)), ')')
}
