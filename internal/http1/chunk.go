package http1

import (
	"bytes"
	"io"
	"time"
)

// maxChunkLine is the longest size line or trailer field of a chunked body.
const maxChunkLine = 4 << 10

// maxFraming bounds trailers, and what a body's size lines may take beyond
// their data: a megabyte of one-byte chunks is served, endless extensions are
// not.
const maxFraming = 16 << 10

// readLine reads and judges one line of a chunked body's framing.
func (b *body) readLine(until time.Time, silence time.Duration) error {
	line, err := b.line(until, silence)
	if err != nil {
		return err
	}
	switch b.state {
	case bodyChunkSize:
		return b.readSize(line)
	case bodyChunkEnd:
		if len(line) > 0 {
			return b.fail(b.bad, "a chunk of the body is longer than its size says")
		}
		b.state = bodyChunkSize
	case bodyTrailer:
		if len(line) == 0 {
			b.err = io.EOF
			return nil
		}
		if b.framing += len(line); b.framing > maxFraming {
			return b.fail(b.bad, "the trailers of the body are over %d bytes", maxFraming)
		}
		return b.readTrailer(line)
	}
	return nil
}

// line takes a line of the framing off the buffer, without its end.
func (b *body) line(until time.Time, silence time.Duration) ([]byte, error) {
	in, scanned := b.in, 0
	for {
		have := in.buf[in.start:in.end]
		if i := bytes.IndexByte(have[scanned:], '\n'); i >= 0 {
			i += scanned
			if i == 0 || have[i-1] != '\r' {
				return nil, b.fail(b.bad, "a line of the body's chunks ends in a bare line feed")
			}
			line := have[:i-1]
			if skipText(line, 0) < len(line) {
				return nil, b.fail(b.bad, "there is a control character among the body's chunks")
			}
			in.start += i + 1
			return line, nil
		}
		if scanned = len(have); scanned > maxChunkLine {
			return nil, b.fail(b.bad, "a line of the body's chunks is over %d bytes", maxChunkLine)
		}
		in.room()
		if err := in.fill(waitUntil(until, silence)); err != nil {
			return nil, b.lost(err)
		}
	}
}

// readSize reads "<hex>[;extensions]". Extensions are passed over.
func (b *body) readSize(line []byte) error {
	var n int64
	i := 0
	for ; i < len(line); i++ {
		digit, ok := hexDigit(line[i])
		if !ok {
			break
		}
		if i == 15 {
			return b.fail(b.bad, "the size of a chunk is out of range: %q", clip(line))
		}
		n = n<<4 | int64(digit)
	}
	if i == 0 || i < len(line) && line[i] != ';' {
		return b.fail(b.bad, "the size of a chunk is no hexadecimal number: %q", clip(line))
	}
	// A chunk pays for 16 bytes of its size line, the rest is bounded.
	if b.framing += max(0, len(line)-16); b.framing > maxFraming {
		return b.fail(b.bad, "the chunk extensions of the body are over %d bytes", maxFraming)
	}
	b.left, b.state = n, bodyChunk
	if n == 0 {
		b.state = bodyTrailer
	}
	return nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// readTrailer judges a trailer field as a header is judged and refuses those
// that would have changed what came before. Trailers are not handed on.
func (b *body) readTrailer(line []byte) error {
	i := 0
	for i < len(line) && token[line[i]] {
		i++
	}
	if i == 0 || i == len(line) || line[i] != ':' {
		return b.fail(b.bad, "a trailer of the body is no header: %q", clip(line))
	}
	switch name := line[:i]; {
	case foldEqual(name, "content-length"), foldEqual(name, "transfer-encoding"), foldEqual(name, "host"), foldEqual(name, "authorization"):
		return b.fail(b.bad, "%s may not be a trailer", name)
	}
	return nil
}
