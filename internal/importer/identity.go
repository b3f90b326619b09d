package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// identity says which field of the input becomes a document's id, and the new name
// of the input's field id if another field does.
type identity struct {
	key  string // the field whose value becomes the id; empty means id
	idAs string // the new name of the input's field id; empty keeps the name
}

// rename returns the name in the collection of a field of the input.
func (d identity) rename(field string) string {
	switch {
	case d.key != "" && field == d.key:
		return "id"
	case d.idAs != "" && field == "id":
		return d.idAs
	}
	return field
}

// source returns the field of the input that becomes the id. It is empty if each
// document gets a new id.
func (d identity) source() string {
	switch {
	case d.key != "":
		return d.key
	case d.idAs != "":
		return ""
	}
	return "id"
}

// errNoKey is the error of a line without the key.
type errNoKey struct{ key string }

func (e errNoKey) Error() string { return "has no field " + e.key + ", which is the key" }

// object returns an object of the input with its fields renamed.
func (d identity) object(object []byte) ([]byte, error) {
	if d.idAs == "" && d.key == "" {
		return object, nil
	}
	fields, err := members(object)
	if err != nil {
		return nil, err
	}
	dst := append(make([]byte, 0, len(object)+len(d.idAs)), '{')
	found := false
	for _, f := range fields {
		name := d.rename(f.name)
		switch {
		case d.key != "" && f.name == d.key:
			if f.value.Kind() == 'n' {
				return nil, fmt.Errorf("has null in %s, which is the key", d.key)
			}
			found = true
		case name == "id":
			return nil, fmt.Errorf("has a field id as well as the key %s; --id-as FIELD imports it under another name", d.key)
		case d.idAs != "" && name == d.idAs && f.name != "id":
			return nil, fmt.Errorf("has a field %s already, so --id-as %[1]s cannot use that name for the id", d.idAs)
		}
		dst = appendMember(dst, name, f.value)
	}
	if d.key != "" && !found {
		return nil, errNoKey{d.key}
	}
	return append(dst, '}'), nil
}

// header returns the names in the collection of a CSV's columns.
func (d identity) header(columns []string) ([]string, error) {
	if d.key != "" && !slices.Contains(columns, d.key) {
		return nil, fmt.Errorf("has no column %s, which --key names; its columns are %s", d.key, list(columns))
	}
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = d.rename(column)
	}
	switch {
	case d.key != "" && d.key != "id" && d.idAs == "" && slices.Contains(columns, "id"):
		return nil, fmt.Errorf("has a column id as well as the key %s; --id-as FIELD imports it under another name", d.key)
	case d.idAs != "" && d.idAs != d.key && slices.Contains(columns, "id") && slices.Contains(columns, d.idAs):
		return nil, fmt.Errorf("has a column %s already, so --id-as %[1]s cannot use that name for the id", d.idAs)
	}
	return names, nil
}

// checkKey refuses JSON input if none of its first lines has the key.
func (im *importer) checkKey(sample []record) error {
	if im.ids.key == "" {
		return nil
	}
	var names []string
	for _, r := range sample {
		if r.json == nil {
			continue
		}
		fields, err := members(r.json)
		if err != nil {
			continue
		}
		for _, f := range fields {
			if f.name == im.ids.key {
				return nil
			}
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s has no field %s, which --key names; the fields of its first lines are %s", im.Name, im.ids.key, list(names))
}

// checkIDs refuses input whose ids cannot be document ids, before a collection is
// created for it.
func (im *importer) checkIDs(sample []record) error {
	source := im.ids.source()
	if source == "" {
		return nil
	}
	column := slices.Index(im.in.header, source)
	for _, r := range sample {
		got := idOf(r, source, column)
		if got == "" || isID(got) {
			continue
		}
		problem := fmt.Sprintf("line %d of %s: field %s: expected a positive int as the id, got %s; ", r.line, im.Name, source, shorten(got))
		if source != "id" {
			return errors.New(problem + "use --key with another field, or leave it out to give each document a new id")
		}
		return errors.New(problem + "use --id-as FIELD to import it under another name, or --key FIELD to use another field as the id")
	}
	return nil
}

// idOf returns the JSON of a record's id, empty if it has none. column is the index
// of the field source in a CSV row.
func idOf(r record, source string, column int) string {
	switch {
	case r.bad != nil:
	case r.cells != nil:
		if column >= 0 && r.cells[column] != "" {
			return string(cellValue(r.cells[column], "int"))
		}
	default:
		fields, err := members(r.json)
		if err != nil {
			return ""
		}
		for _, f := range fields {
			if f.name == source && f.value.Kind() != 'n' {
				return string(f.value)
			}
		}
	}
	return ""
}

// isID reports whether a JSON value can be a document's id.
func isID(value string) bool {
	if jsontext.Value(value).Kind() != '0' {
		return false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n > 0
}

// list joins names for a message. It shortens long lists.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// shorten truncates a value for a message.
func shorten(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return value
}

// nothing ends an import that has read its whole input and imported no line.
func (im *importer) nothing(ctx context.Context) error {
	reason := im.Name + " has no lines"
	switch {
	case im.at.Bad > 0:
		reason = fmt.Sprintf("%s has only bad lines (%d)", im.Name, im.at.Bad)
	case im.in.format == CSV:
		reason = im.Name + " has no row after its field names"
	}
	dropped, err := im.undo(ctx)
	if dropped {
		reason += "; the collection " + im.Collection + ", which was created for it, was dropped again"
	}
	return errors.Join(errors.New("nothing was imported: "+reason), err)
}

// undo removes all traces of an import that imported no line: its position and
// state, and the collection if this import created it and it is still empty. It
// reports whether the collection was dropped.
func (im *importer) undo(ctx context.Context) (dropped bool, err error) {
	if im.state.Created {
		if dropped, err = im.dropEmpty(ctx); err != nil {
			return false, err
		}
	}
	if dropped {
		im.summary.Created = ""
	}
	return dropped, im.finish(ctx)
}
