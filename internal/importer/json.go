package importer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// object checks that a line is one JSON object, as strictly as the database does,
// and returns a copy of it.
func object(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(line)
	if text := jsontext.Value(line); text.Kind() == '{' && text.IsValid() {
		return bytes.Clone(line), nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(line))
	value, err := d.ReadValue()
	if err != nil {
		return nil, jsonError(err)
	}
	if kind := value.Kind(); kind != '{' {
		return nil, fmt.Errorf("expected a JSON object, got %s", kindName(kind))
	}
	if int(d.InputOffset()) != len(line) {
		return nil, fmt.Errorf("expected one JSON object, got more data at column %d", d.InputOffset()+1)
	}
	return bytes.Clone(value), nil
}

// jsonError converts an error of the JSON library into one about the line.
func jsonError(err error) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return err
	}
	reason := "unexpected end"
	if syntactic.Err != nil && !strings.Contains(syntactic.Err.Error(), "EOF") {
		reason = strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
	}
	return fmt.Errorf("invalid JSON: %s at column %d", reason, syntactic.ByteOffset+1)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "a list"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a bool"
	}
}

// member is one field of an object.
type member struct {
	name  string
	value jsontext.Value
}

// members returns an object's fields in order. The object must be valid.
func members(object []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, jsonError(err)
	}
	var fields []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, jsonError(err)
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, jsonError(err)
		}
		fields = append(fields, member{key, value.Clone()})
	}
	return fields, nil
}

func appendMember(dst []byte, name string, value []byte) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = appendQuoted(dst, name)
	dst = append(dst, ':')
	return append(dst, value...)
}

// appendQuoted appends a JSON string. Text is valid UTF-8, since all input is
// checked.
func appendQuoted(dst []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(dst, text)
	if err != nil { // a replacement character would hide invalid UTF-8
		return append(dst, "null"...)
	}
	return quoted
}

// fromCells returns a row of CSV as an object. names are the columns' names in the
// collection. A cell is converted by the type of its field; an empty cell has no
// value. A cell that is invalid for the type is sent as text, so that the database
// refuses it with the field's name. If there is a key, each row must have it.
func fromCells(names, cells []string, key string, types map[string]string) ([]byte, error) {
	dst := []byte{'{'}
	for i, cell := range cells {
		name := names[i]
		if cell == "" {
			if name == "id" && key != "" {
				return nil, fmt.Errorf("has no value in %s, which is the key", key)
			}
			continue
		}
		fieldType := types[name]
		if name == "id" {
			fieldType = "int"
		}
		dst = appendMember(dst, name, cellValue(cell, fieldType))
	}
	return append(dst, '}'), nil
}

// cellValue returns the JSON of a cell for a field type.
func cellValue(cell, fieldType string) []byte {
	text := strings.TrimSpace(cell)
	bare := false
	switch fieldType {
	case "int", "float":
		bare = isNumber(text)
	case "timestamp":
		_, err := strconv.ParseInt(text, 10, 64)
		bare = err == nil && isNumber(text)
	case "bool":
		text = strings.ToLower(text)
		bare = text == "true" || text == "false"
	case "text", "bytes", "":
	default: // json and lists
		bare = jsontext.Value(text).IsValid()
	}
	if bare {
		return []byte(text)
	}
	return appendQuoted(nil, cell)
}

func isNumber(text string) bool {
	v := jsontext.Value(text)
	return v.Kind() == '0' && v.IsValid()
}
