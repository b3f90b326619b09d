package router

import (
	"errors"
	"io"
	"strconv"
	"time"

	"fenec/internal/http1"
)

const (
	// streamSilence is how long a node may stay silent within an answer without a length, if --upstream-timeout is
	// shorter: streams are kept alive by a line every 15 seconds.
	streamSilence = 45 * time.Second
	// leastStreamBuffer and streamBuffer are the smallest and the largest copy buffer, in bytes: it grows with the reads.
	leastStreamBuffer = 4 << 10
	streamBuffer      = 32 << 10
)

// passOn makes an answer that is copied as it arrives, until the node or the client ends it: one without a length, or one
// too long to be held, of which message is the beginning. The connection to the node is released when it ends. A router that
// stops does not wait for the end of one without a length.
func (ex *exchange) passOn(w *wire, l *link, rep *http1.Response, message []byte) http1.Answer {
	r, rt := ex.request, ex.router
	if rep.Length < 0 && rt.streams.Add(1) > rt.budget.streams {
		rt.streams.Add(-1)
		w.close()
		return http1.ErrorAnswerRetry(503, "too many live queries are open at this router: send the request again later", 1)
	}
	if w.watch == nil {
		w.late()
	}
	w.Late(time.Time{}, nil)
	ex.watch = nil
	s := &stream{router: rt, wire: w, pool: &l.pool, silence: max(ex.silence, streamSilence), endless: rep.Length < 0}
	if s.endless {
		rt.held.add(w.watch)
		s.buf = make([]byte, leastStreamBuffer)
	} else {
		rt.held.remove(w.watch)
		s.buf = message
		s.begun = len(message) - len(rep.Head)
	}
	framing, length := "", max(0, rep.Length)
	if rep.Length < 0 && r.Minor > 0 {
		framing, s.chunked = "Transfer-Encoding: chunked\r\n", true
	}
	closing := !r.KeepAlive() || rep.Length < 0 && !s.chunked
	var head []byte
	if s.endless || !ex.plain(w) {
		head = appendAnswer(make([]byte, 0, len(rep.Head)+64), rep, w.hops, framing, closing)
	} else {
		head = rep.Head
	}
	return http1.Answer{Status: rep.Status, Raw: head, Length: length, Stream: s.copy, Apart: s.endless, Close: closing}
}

// stream copies one answer's body from a node to a client.
type stream struct {
	router  *Router
	wire    *wire
	pool    *pool
	silence time.Duration
	endless bool // without a length
	chunked bool // to the client
	buf     []byte
	begun   int // bytes of the body at the end of buf that have arrived
}

// copy runs until either side ends.
func (s *stream) copy(out *http1.Writer) error {
	err := s.pump(out)
	if s.endless {
		s.router.held.remove(s.wire.watch)
		s.router.streams.Add(-1)
	}
	if err == nil {
		s.pool.give(s.wire)
	} else {
		s.wire.close()
	}
	return err
}

func (s *stream) pump(out *http1.Writer) error {
	if _, err := out.Write(s.buf[len(s.buf)-s.begun:]); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	body := s.wire.Body(s.silence)
	for {
		n, err := body.Read(s.buf)
		if errors.Is(err, io.EOF) {
			return s.end(out)
		}
		if err != nil {
			return err
		}
		if err := s.piece(out, s.buf[:n]); err != nil {
			return err
		}
		if n == len(s.buf) && n < streamBuffer {
			s.buf = make([]byte, 2*n)
		}
	}
}

// piece forwards some of the body, as a chunk of its own if the body has no length.
func (s *stream) piece(out *http1.Writer, data []byte) error {
	if s.chunked {
		var size [20]byte
		if _, err := out.Write(append(strconv.AppendInt(size[:0], int64(len(data)), 16), '\r', '\n')); err != nil {
			return err
		}
	}
	if _, err := out.Write(data); err != nil {
		return err
	}
	if s.chunked {
		if _, err := out.WriteString("\r\n"); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (s *stream) end(out *http1.Writer) error {
	if !s.chunked {
		return nil
	}
	_, err := out.WriteString("0\r\n\r\n")
	return err
}
