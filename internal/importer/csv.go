package importer

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// rowScanner finds the end of a CSV row, which is a line's end outside a quoted
// cell. It scans the bytes in parts of any size.
type rowScanner struct {
	inside  bool // within a quoted cell
	after   bool // the last byte was a quote within a quoted cell: its end, or the first of two
	started bool // the cell has a byte before this one
}

func (s *rowScanner) scan(part []byte) {
	for _, c := range part {
		switch {
		case s.inside && s.after && c == '"':
			s.after = false // doubled
		case s.inside && s.after:
			s.inside, s.after = false, false
			s.started = c != ',' && c != '\n'
		case s.inside:
			s.after = c == '"'
		case c == ',' || c == '\n':
			s.started = false
		case c == '"' && !s.started:
			s.inside, s.after, s.started = true, false, true
		default:
			s.started = true
		}
	}
	if s.inside && s.after && bytes.HasSuffix(part, []byte{'\n'}) {
		s.inside = false
	}
}

var (
	errBareQuote = errors.New("quote in a cell that is not quoted")
	errAfter     = errors.New("quoted cell: expected a comma or the end of the line after it")
	errUnclosed  = errors.New("quoted cell without a closing quote")
	errUTF8      = errors.New("invalid UTF-8")
)

// splitRow splits a row, without its end, into cells.
func splitRow(row []byte) ([]string, error) {
	if !utf8.Valid(row) {
		return nil, errUTF8
	}
	var cells []string
	for {
		if len(row) == 0 || row[0] != '"' {
			cell, rest, more := bytes.Cut(row, []byte{','})
			if bytes.IndexByte(cell, '"') >= 0 {
				return nil, errBareQuote
			}
			cells = append(cells, string(cell))
			if !more {
				return cells, nil
			}
			row = rest
			continue
		}
		cell, rest, err := quotedCell(row[1:])
		if err != nil {
			return nil, err
		}
		cells = append(cells, string(cell))
		if len(rest) == 0 {
			return cells, nil
		}
		if rest[0] != ',' {
			return nil, errAfter
		}
		row = rest[1:]
	}
}

// quotedCell reads a cell from after its opening quote to after its closing one.
func quotedCell(row []byte) (cell, rest []byte, err error) {
	for {
		i := bytes.IndexByte(row, '"')
		if i < 0 {
			return nil, nil, errUnclosed
		}
		cell = append(cell, row[:i]...)
		row = row[i+1:]
		if len(row) == 0 || row[0] != '"' {
			return cell, row, nil
		}
		cell = append(cell, '"')
		row = row[1:]
	}
}
