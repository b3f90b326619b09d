package client

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	encoding = json.JoinOptions(json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))
	decoding = json.WithUnmarshalers(json.UnmarshalFromFunc(decodeAny))
)

// decodeAny decodes a whole number into any as an int64.
func decodeAny(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*value = n
		return nil
	}
	var f float64
	err = json.Unmarshal(text, &f)
	*value = f
	return err
}

// Decode decodes JSON, such as the document of a Change, by the same rules as rows.
func Decode[T any](text jsontext.Value) (T, error) {
	var v T
	err := json.Unmarshal(text, &v, decoding)
	return v, err
}

// appendStatement appends {"query": ..., "params": [...]}.
func appendStatement(dst []byte, statement string, params []any) ([]byte, error) {
	query, err := jsontext.AppendQuote(append(dst, `{"query":`...), statement)
	if err != nil {
		return dst, fmt.Errorf("the statement is not valid UTF-8: %w", err)
	}
	dst = query
	for i, param := range params {
		if i == 0 {
			dst = append(dst, `,"params":[`...)
		} else {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendParam(dst, param); err != nil {
			return dst, fmt.Errorf("parameter $%d: %w", i+1, err)
		}
	}
	if len(params) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// appendParam appends the JSON of a parameter, without a line feed, which would end a line of a batch.
func appendParam(dst []byte, param any) ([]byte, error) {
	if text, ok := param.(jsontext.Value); ok && bytes.IndexByte(text, '\n') < 0 && text.IsValid() {
		return append(dst, text...), nil
	}
	text, err := json.Marshal(param, encoding)
	return append(dst, text...), err
}

// reads reports whether a statement only reads, judged by its first word. It returns false in doubt.
func reads(statement string) bool {
	for {
		statement = strings.TrimLeft(statement, " \t\r\n")
		if !strings.HasPrefix(statement, "--") { // a comment
			break
		}
		_, statement, _ = strings.Cut(statement, "\n")
	}
	end := strings.IndexFunc(statement, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(statement)
	}
	switch strings.ToLower(statement[:end]) {
	case "get", "select", "explain", "collections", "describe":
		return true
	}
	return false
}
