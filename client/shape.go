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

// Shape says which documents of a collection a live query is about, all of them where it is empty.
type Shape struct {
	// Filters all have to hold.
	Filters []Filter
	// Where is a condition of FenecQL that has to hold too. It takes no parameters: values that are not the program's own
	// belong into Filters.
	Where string
	// Select are the fields and paths that rows have, all fields where empty. The id is always among them.
	Select []string
	// After is where an earlier subscription to the same shape stood: what happened since is sent without a seed, where
	// the tenant still knows it.
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
	Like Op = "like" // the field is a text that holds the value, a pattern such as "emm*", whatever its case
	Has  Op = "has"  // the field is a list that contains the value
	In   Op = "in"   // the field is one of the values
)

// path is the target of a live query.
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

// encode is the filter as the value of a query string.
func (f *Filter) encode() (string, error) {
	if f.Value == nil {
		switch f.Op {
		case Eq:
			return "is.null", nil
		case Neq:
			return "is.not_null", nil
		}
		return "", fmt.Errorf("nil goes with eq and neq, not with %s", f.Op)
	}
	switch f.Op {
	case Eq, Neq, Lt, Lte, Gt, Gte, Like, Has:
		text, err := f.text(f.Value)
		return string(f.Op) + "." + text, err
	case In:
		list := reflect.ValueOf(f.Value)
		if list.Kind() != reflect.Slice {
			return "", fmt.Errorf("in wants a slice, got %T", f.Value)
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
	return "", fmt.Errorf("there is no operator %q", f.Op)
}

// text is a value as it is read by the field's type. Below a path there is none: there a text is a JSON string, so that
// "2" is not the number.
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
			return "", fmt.Errorf("want a text, number, bool or time, got %T", value)
		}
	}
	if f.Op != Like && strings.Contains(f.Field, ".") {
		text, err := json.Marshal(value)
		return string(text), err
	}
	return value.(string), nil
}
