package http1

import (
	"bytes"
	"io"
	"time"
)

// maxChunkLine is the longest size line or trailer field of a chunked body.
const maxChunkLine = 4 << 10

// maxFraming bounds trailers, and the bytes of a body's size lines beyond 16 a
// chunk: a megabyte of one-byte chunks is accepted, endless extensions are not.
const maxFraming = 16 << 10

// readLine reads and checks one line of a chunked body's framing.
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
			return b.fail(b.bad, "a chunk of the body is longer than its size line")
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

// line reads a line of the framing from the buffer, without its end.
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
				return nil, b.fail(b.bad, "a line of the body's chunks has a control character")
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

// readSize reads "<hex>[;extensions]". Extensions are ignored.
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
		return b.fail(b.bad, "the size of a chunk is not a hexadecimal number: %q", clip(line))
	}
	// Each chunk allows 16 bytes of size line; the rest counts towards maxFraming.
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

// readTrailer checks a trailer field like a header and refuses those that would
// change what came before. Trailers are dropped.
func (b *body) readTrailer(line []byte) error {
	i := 0
	for i < len(line) && token[line[i]] {
		i++
	}
	if i == 0 || i == len(line) || line[i] != ':' {
		return b.fail(b.bad, "a trailer of the body is not a header: %q", clip(line))
	}
	switch name := line[:i]; {
	case foldEqual(name, "content-length"), foldEqual(name, "transfer-encoding"), foldEqual(name, "host"), foldEqual(name, "authorization"):
		return b.fail(b.bad, "%s is not allowed as a trailer", name)
	}
	return nil
}
