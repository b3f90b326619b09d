package client

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Shape selects the documents of a collection for a live query; the zero value selects all of them.
type Shape struct {
	// Filters must all hold.
	Filters []Filter
	// Where is a FenecQL condition that must hold too. It takes no parameters: values from outside the program belong
	// in Filters.
	Where string
	// Select lists the fields and paths of the rows, all fields if empty. The id is always included.
	Select []string
	// After is the position of an earlier subscription to the same shape. The changes since then are sent without a
	// seed if the tenant still has them.
	After Position
}

// Filter is a condition on a field, or on a path into a json field such as meta.lang.
type Filter struct {
	Field string
	Op    Op
	Value any // a text, number, bool, time.Time, or nil with Eq and Neq; with In a slice of those
}

// Op is how a Filter compares.
type Op string

// The operators of filters.
const (
	Eq   Op = "eq"
	Neq  Op = "neq"
	Lt   Op = "lt"
	Lte  Op = "lte"
	Gt   Op = "gt"
	Gte  Op = "gte"
	Like Op = "like" // the field is a text that matches the pattern, such as "emm*", ignoring case
	Has  Op = "has"  // the field is a list that contains the value
	In   Op = "in"   // the field is one of the values
)

// path returns the request path of a live query.
func (s *Shape) path(collection string) (string, error) {
	query := url.Values{}
	for _, f := range s.Filters {
		value, err := f.encode()
		if err != nil {
			return "", fmt.Errorf("filter on %s: %w", f.Field, err)
		}
		query.Add(f.Field, value)
	}
	if s.Where != "" {
		query.Set("where", s.Where)
	}
	if len(s.Select) > 0 {
		query.Set("select", strings.Join(s.Select, ","))
	}
	path := "/" + url.PathEscape(collection) + "/changes"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// encode returns the filter as the value of a query parameter.
func (f *Filter) encode() (string, error) {
	if f.Value == nil {
		switch f.Op {
		case Eq:
			return "is.null", nil
		case Neq:
			return "is.not_null", nil
		}
		return "", fmt.Errorf("nil is valid only with eq and neq, got %s", f.Op)
	}
	switch f.Op {
	case Eq, Neq, Lt, Lte, Gt, Gte, Like, Has:
		text, err := f.text(f.Value)
		return string(f.Op) + "." + text, err
	case In:
		list := reflect.ValueOf(f.Value)
		if list.Kind() != reflect.Slice {
			return "", fmt.Errorf("in: expected a slice, got %T", f.Value)
		}
		items := make([]string, list.Len())
		for i := range items {
			text, err := f.text(list.Index(i).Interface())
			if err != nil {
				return "", err
			}
			items[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		}
		return "in.(" + strings.Join(items, ",") + ")", nil
	}
	return "", fmt.Errorf("unknown operator %q", f.Op)
}

// text returns a value in the form that the field's type parses. A path has no type: there a text is encoded as a JSON
// string, so that "2" is not read as a number.
func (f *Filter) text(value any) (string, error) {
	switch v := value.(type) {
	case time.Time:
		value = v.Format(time.RFC3339Nano)
	case string:
	default:
		switch r := reflect.ValueOf(value); r.Kind() {
		case reflect.String:
			value = r.String()
		case reflect.Bool:
			return strconv.FormatBool(r.Bool()), nil
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
			text, err := json.Marshal(value)
			return string(text), err
		default:
			return "", fmt.Errorf("expected a text, number, bool or time, got %T", value)
		}
	}
	if f.Op != Like && strings.Contains(f.Field, ".") {
		text, err := json.Marshal(value)
		return string(text), err
	}
	return value.(string), nil
}
