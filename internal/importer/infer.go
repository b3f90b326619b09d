package importer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is the type common to the values of a field so far, from the most specific
// to the most general.
type shape uint8

const (
	unseen shape = iota // only null
	bools
	ints
	floats
	timestamps
	texts
	mixed // anything else: json
	firstList
)

// A list of a shape is firstList + the shape of its elements; an empty list is
// firstList itself.

// join returns the narrowest shape that holds the values of both.
func join(a, b shape) shape {
	switch {
	case a == b || b == unseen:
		return a
	case a == unseen:
		return b
	case a >= firstList && b >= firstList:
		if elements := join(a-firstList, b-firstList); elements < mixed {
			return firstList + elements
		}
		return mixed
	case a >= firstList || b >= firstList:
		return mixed
	case isNumeric(a) && isNumeric(b):
		return floats
	case isText(a) && isText(b):
		return texts
	}
	return mixed
}

func isNumeric(s shape) bool { return s == ints || s == floats }
func isText(s shape) bool    { return s == timestamps || s == texts }

func (s shape) String() string {
	switch s {
	case bools:
		return "bool"
	case ints:
		return "int"
	case floats:
		return "float"
	case timestamps:
		return "timestamp"
	case mixed:
		return "json"
	}
	if s >= firstList {
		return "[" + (s - firstList).String() + "]"
	}
	return "text"
}

// ofJSON returns the shape of one JSON value.
func ofJSON(v jsontext.Value) shape {
	switch v.Kind() {
	case 'n':
		return unseen
	case 't', 'f':
		return bools
	case '0':
		if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return ints
		}
		return ofDigits(string(v))
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err == nil && isTimestamp(string(text)) {
			return timestamps
		}
		return texts
	case '[':
		return ofList(v)
	}
	return mixed
}

// ofDigits returns the shape of a number that is not an int64: a float if it has a
// fraction or an exponent, and json for an integer, whose digits a float would
// lose.
func ofDigits(text string) shape {
	if strings.ContainsAny(text, ".eE") {
		return floats
	}
	return mixed
}

func ofList(v jsontext.Value) shape {
	d := jsontext.NewDecoder(strings.NewReader(string(v)))
	if _, err := d.ReadToken(); err != nil {
		return mixed
	}
	list := firstList
	for d.PeekKind() != ']' {
		element, err := d.ReadValue()
		if err != nil || element.Kind() == 'n' {
			return mixed
		}
		list = join(list, firstList+min(ofJSON(element), mixed))
		if list == mixed {
			return mixed
		}
	}
	return list
}

// ofCell returns the shape of one CSV cell.
func ofCell(cell string) shape {
	text := strings.TrimSpace(cell)
	switch {
	case text == "":
		return unseen
	case strings.EqualFold(text, "true") || strings.EqualFold(text, "false"):
		return bools
	case isNumber(text):
		return min(ofJSON(jsontext.Value(text)), texts) // a cell is never json
	case isTimestamp(text):
		return timestamps
	}
	return texts
}

func isTimestamp(text string) bool {
	if len(text) < len("2006-01-02T15:04:05Z") {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// infer returns a statement that creates a collection for the sample, with a field
// for each name in the order of first use.
func infer(collection string, ids identity, header []string, sample []record) (string, error) {
	shapes := make(map[string]shape)
	var names []string
	see := func(field string, s shape) {
		name := ids.rename(field)
		before, ok := shapes[name]
		if !ok {
			names = append(names, name)
		}
		shapes[name] = join(before, s)
	}
	for _, name := range header {
		see(name, unseen)
	}
	for _, r := range sample {
		switch {
		case r.bad != nil:
		case header != nil:
			for i, cell := range r.cells {
				see(header[i], ofCell(cell))
			}
		default:
			fields, err := members(r.json)
			if err != nil {
				continue
			}
			for _, f := range fields {
				see(f.name, ofJSON(f.value))
			}
		}
	}
	var fields []string
	for _, name := range names {
		if name == "id" {
			continue
		}
		if !IsName(name) {
			return "", fmt.Errorf("invalid field name %q: expected a letter or _, then letters, digits and _; rename it, or create the collection without the field", name)
		}
		s := shapes[name]
		if header != nil && s == mixed { // cells of different kinds are text
			s = texts
		}
		fields = append(fields, name+" "+s.String())
	}
	if len(fields) == 0 {
		for _, r := range sample {
			if r.bad != nil { // the first bad line probably explains the whole file
				return "", fmt.Errorf("cannot create a collection: the data has no field: line %d: %w", r.line, r.bad)
			}
		}
		return "", errors.New("cannot create a collection: the data has no field")
	}
	return "create collection if not exists " + collection + " (" + strings.Join(fields, ", ") + ")", nil
}

// IsName reports whether text is a valid name of a collection or a field.
func IsName(text string) bool {
	for i, c := range text {
		switch {
		case c == '_' || unicode.IsLetter(c):
		case i > 0 && (unicode.IsDigit(c) || unicode.IsMark(c)):
		default:
			return false
		}
	}
	return text != ""
}
