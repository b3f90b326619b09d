package node

import (
	"strconv"
	"time"
	"unsafe"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/internal/http1"
)

// answered calls run, which runs the request's statements and makes their answer, and repeats it while there is no room.
func (c *call) answered(run func() (http1.Answer, error)) (a http1.Answer, err error) {
	var began time.Time
	held := c.asked.wait
	if c.asked.waits {
		began = time.Now()
	}
	err = c.memory.run(func() (err error) {
		if c.asked.waits { // a claim is not held longer because it ran before
			c.asked.wait = max(0, held-time.Since(began))
		}
		a, err = run()
		return err
	})
	return a, err
}

// finish returns the request's answer, whose memory is held until the client has it unless it is short. An answer that was made
// without the account waits for room. That of a statement never does, since the statement may have written: the account has
// counted each that is longer than engine.Uncounted.
func (c *call) finish(a http1.Answer) http1.Answer {
	n := int64(cap(a.Body))
	if a.Stream != nil {
		n = c.pieces
	}
	c.memory.keep(n)
	if len(a.Body) > engine.Uncounted && !c.memory.hold(n) {
		return c.node.answerError(c.request, errNoRoom())
	}
	return a
}

// answer returns a result as an answer with status 200.
func (c *call) answer(res *engine.Result) http1.Answer {
	a := http1.Answer{Status: 200, Headers: c.head(res)}
	if res.Kind == engine.Rows {
		a.Body = res.Body
	} else {
		a.Body = appendResult(c.request.Scratch(), res)
	}
	return a
}

// appendResult appends a result in the form of /query.
func appendResult(dst []byte, res *engine.Result) []byte {
	switch res.Kind {
	case engine.Affected:
		return appendCount(dst, "affected", res.Affected)
	case engine.Message:
		dst = append(dst, `{"message":`...)
		dst = doc.AppendQuoted(dst, []byte(res.Message))
		return append(dst, '}')
	}
	return append(dst, res.Body...)
}

// appendCount appends `{"key":n}`.
func appendCount(dst []byte, key string, n int64) []byte {
	return append(appendNumber(append(dst, '{'), key, n), '}')
}

// appendNumber appends `"key":n`.
func appendNumber(dst []byte, key string, n int64) []byte {
	dst = append(append(append(dst, '"'), key...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// answerBatch returns `{"ok": n, "results": [...]}`. If a statement wrote, the headers have the tenant's position after it.
func (c *call) answerBatch(results []engine.Result) http1.Answer {
	a := http1.Answer{Status: 200, Headers: c.batchHeaders(results)}
	b := batchAnswer{results: results}
	length := b.length()
	if c.pieces = 0; length <= engine.Uncounted {
		a.Body = b.appendTo(c.request.Grow(length))
		return a
	}
	c.pieces = int64(cap(results)) * int64(unsafe.Sizeof(results[0]))
	for i := range results {
		c.pieces += int64(cap(results[i].Body))
	}
	a.Length, a.Stream = int64(length), (&batchAnswer{results: results}).writeTo
	return a
}

// keptBatch returns the answer of a batch as it is stored under a key.
func keptBatch(results []engine.Result) http1.Answer {
	b := batchAnswer{results: results}
	return http1.Answer{Status: 200, Body: b.appendTo(make([]byte, 0, b.length()))}
}

// batchHeaders returns the headers of a batch, with the tenant's position if it wrote or the request asks for it.
func (c *call) batchHeaders(results []engine.Result) []http1.Header {
	for i := len(results) - 1; i >= 0; i-- {
		if results[i].Wrote || c.asked.marked {
			return writeHeaders(&results[i])
		}
	}
	return http1.JSON
}

// batchAnswer is the answer of a batch, written in pieces: the rows of its results are not copied.
type batchAnswer struct {
	results []engine.Result
	scratch []byte
}

var (
	batchRows  = []byte(`{"rows":`)
	batchEnd   = []byte("]}")
	batchComma = []byte(",")
	objectEnd  = []byte("}")
)

func (b *batchAnswer) length() (n int) {
	b.write(func(p []byte) error { n += len(p); return nil })
	return n
}

func (b *batchAnswer) appendTo(dst []byte) []byte {
	b.write(func(p []byte) error { dst = append(dst, p...); return nil })
	return dst
}

func (b *batchAnswer) writeTo(w *http1.Writer) error {
	return b.write(func(p []byte) error { _, err := w.Write(p); return err })
}

// write calls piece with each part of the answer, until piece fails.
func (b *batchAnswer) write(piece func([]byte) error) error {
	b.scratch = appendNumber(append(b.scratch[:0], '{'), "ok", int64(len(b.results)))
	err := piece(append(b.scratch, `,"results":[`...))
	for i := range b.results {
		if i > 0 && err == nil {
			err = piece(batchComma)
		}
		if err == nil {
			err = b.writeResult(&b.results[i], piece)
		}
	}
	if err == nil {
		err = piece(batchEnd)
	}
	return err
}

// writeResult writes a result in the form of /batch: always an object, with rows under "rows".
func (b *batchAnswer) writeResult(res *engine.Result, piece func([]byte) error) error {
	if res.Kind != engine.Rows {
		b.scratch = appendResult(b.scratch[:0], res)
		return piece(b.scratch)
	}
	err := piece(batchRows)
	if err == nil {
		err = piece(res.Body)
	}
	if err == nil {
		err = piece(objectEnd)
	}
	return err
}
