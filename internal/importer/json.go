package importer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// object checks that a line is one JSON object, as strictly as the database
// will read it, and answers a copy of it.
func object(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(line)
	d := jsontext.NewDecoder(bytes.NewReader(line))
	value, err := d.ReadValue()
	if err != nil {
		return nil, jsonError(err)
	}
	if kind := value.Kind(); kind != '{' {
		return nil, fmt.Errorf("wants a JSON object, got %s", kindName(kind))
	}
	if int(d.InputOffset()) != len(line) {
		return nil, fmt.Errorf("wants one JSON object, got something after it in column %d", d.InputOffset()+1)
	}
	return bytes.Clone(value), nil
}

// jsonError is the library's error in a sentence about the line.
func jsonError(err error) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return err
	}
	reason := "it ends too early"
	if syntactic.Err != nil && !strings.Contains(syntactic.Err.Error(), "EOF") {
		reason = strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
	}
	return fmt.Errorf("is no JSON: %s at column %d", reason, syntactic.ByteOffset+1)
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

// members are an object's fields in their order; the object has been checked.
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

// appendQuoted appends a JSON string; text is valid UTF-8, as all input is.
func appendQuoted(dst []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(dst, text)
	if err != nil { // not UTF-8 after all: the server would refuse it, a replacement would hide it
		return append(dst, "null"...)
	}
	return quoted
}

// fromCells returns a row of CSV as an object. names are those of the columns in
// the collection. A cell is read by the type of the field it goes into; an empty
// one is no value. What cannot be a value of the type goes as the text it is, for
// the database to refuse by the field's name. Where there is a key, each row must have it.
func fromCells(names, cells []string, key string, types map[string]string) ([]byte, error) {
	dst := []byte{'{'}
	for i, cell := range cells {
		name := names[i]
		if cell == "" {
			if name == "id" && key != "" {
				return nil, fmt.Errorf("has nothing in %s, which is the key", key)
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

// cellValue is the JSON of a cell for a field of a type.
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
