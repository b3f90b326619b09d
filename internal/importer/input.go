package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Format is the format of the input.
type Format uint8

const (
	Guess  Format = iota // by the file name, else by the first byte
	NDJSON               // one JSON object per line
	CSV                  // RFC 4180, the field names in the first row
)

// ParseFormat returns the format with a name. The empty name is Guess.
func ParseFormat(name string) (Format, bool) {
	f, ok := map[string]Format{"": Guess, "ndjson": NDJSON, "csv": CSV}[name]
	return f, ok
}

const (
	// maxRecord is the maximum size of one JSON line or one CSV row.
	maxRecord = 16 << 20
	// headBytes is how many bytes are read to detect the format.
	headBytes = 4096
)

// record is one document of the input, or the reason it has none.
type record struct {
	line  int64  // the line it begins on, from 1
	lines int64  // number of lines
	end   int64  // the offset of the byte after it
	sum   uint64 // hash of the input up to end
	json  []byte // NDJSON: the object
	cells []string
	bad   error
}

// input reads records and keeps track of its position.
type input struct {
	name   string
	r      *bufio.Reader
	format Format
	header []string       // CSV: the field names
	offset int64          // of the next byte
	line   int64          // of the next byte, from 1
	sum    *xxhash.Digest // of the bytes before offset
	buf    []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// openInput detects the format from the first bytes and reads a CSV's header.
func openInput(source io.Reader, name string, format Format) (*input, error) {
	in := &input{name: name, r: bufio.NewReaderSize(source, 64<<10), line: 1, sum: xxhash.New()}
	head, err := in.r.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if bytes.HasPrefix(head, byteOrderMark) {
		head = head[len(byteOrderMark):]
		if err := in.pass(int64(len(byteOrderMark))); err != nil {
			return nil, err
		}
	}
	if in.format = format; format == Guess {
		in.format, err = guess(name, head)
		if err != nil {
			return nil, err
		}
	}
	if in.format == CSV {
		return in, in.readHeader()
	}
	return in, nil
}

func guess(name string, head []byte) (Format, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return CSV, nil
	case ".ndjson", ".jsonl":
		return NDJSON, nil
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(text) == 0 || text[0] == '{':
		return NDJSON, nil
	case text[0] == '[':
		return Guess, fmt.Errorf("%s: expected one JSON object per line, got an array; jq -c '.[]' converts it", name)
	}
	return CSV, nil
}

func (in *input) readHeader() error {
	r, err := in.next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: expected a first row with the field names, got an empty file", in.name)
	}
	if err == nil {
		err = r.bad
	}
	if err != nil {
		return fmt.Errorf("%s: invalid first row, which has the field names: %w", in.name, err)
	}
	seen := make(map[string]bool)
	for i, name := range r.cells {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] {
			return fmt.Errorf("%s: first row: expected a different field name in each column, got %q in column %d", in.name, name, i+1)
		}
		seen[name] = true
		in.header = append(in.header, name)
	}
	return nil
}

// next returns the next record, or io.EOF after the last one. It skips empty lines.
func (in *input) next() (record, error) {
	for {
		r := record{line: in.line}
		text, err := in.read()
		r.lines, r.end, r.sum = in.line-r.line, in.offset, in.sum.Sum64()
		switch {
		case errors.Is(err, errTooLong):
			r.bad = err
			return r, nil
		case err != nil:
			return record{}, err
		case len(bytes.TrimSpace(text)) == 0:
			continue
		case in.format == CSV:
			r.cells, r.bad = splitRow(text)
			if r.bad == nil && in.header != nil && len(r.cells) != len(in.header) {
				r.bad = fmt.Errorf("expected %d columns as in the first row, got %d", len(in.header), len(r.cells))
			}
		default:
			r.json, r.bad = object(text)
		}
		return r, nil
	}
}

var errTooLong = fmt.Errorf("longer than %d MiB", maxRecord>>20)

// read returns one line without its end, or for CSV one row, which may span several
// lines. The bytes are valid until the next call.
func (in *input) read() ([]byte, error) {
	in.buf = in.buf[:0]
	var quotes rowScanner
	tooLong := false
	for {
		part, err := in.r.ReadSlice('\n')
		in.offset += int64(len(part))
		in.sum.Write(part)
		if len(in.buf)+len(part) > maxRecord {
			tooLong = true
			in.buf = in.buf[:0]
		}
		if !tooLong {
			in.buf = append(in.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			quotes.scan(part)
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil && len(part) == 0 && len(in.buf) == 0 && !tooLong:
			return nil, io.EOF
		}
		if len(part) > 0 {
			in.line++
		}
		quotes.scan(part)
		if err == nil && in.format == CSV && quotes.inside && !tooLong {
			continue
		}
		if tooLong {
			return nil, errTooLong
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(in.buf, []byte("\n")), []byte("\r")), nil
	}
}

// sample reads up to n records of about the given number of bytes, to inspect them
// before any is sent.
func (in *input) sample(n int, bytes int64) ([]record, error) {
	var records []record
	for end := in.offset + bytes; len(records) < n && in.offset < end; {
		r, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", in.name, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// skip moves to the position of an earlier run, which is the start of a line. It
// fails if the bytes before it are not the ones that run imported.
func (in *input) skip(at position) error {
	if err := in.pass(at.Offset - in.offset); err != nil {
		return err
	}
	if in.sum.Sum64() != uint64(at.Sum) {
		return fmt.Errorf("%s: the first %d lines have changed since they were imported", in.name, at.Line)
	}
	in.line = at.Line + 1
	return nil
}

// pass skips n bytes.
func (in *input) pass(n int64) error {
	if n <= 0 {
		return nil
	}
	passed, err := io.CopyN(in.sum, in.r, n)
	in.offset += passed
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: expected at least %[3]d bytes, which were imported before, got %[2]d", in.name, in.offset, in.offset-passed+n)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	return nil
}
