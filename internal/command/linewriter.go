package command

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lineQueue is how many bytes of lines are queued for a slow reader. Further
	// lines are lost.
	lineQueue = 256 << 10
	// keptQueue is the maximum capacity of a queue buffer that is reused.
	keptQueue = 16 << 10
	// lastWait is how long close waits for a slow reader.
	lastWait = time.Second
)

// lineWriter forwards lines to a stream that may be slow, stuck or broken. Write
// returns at once: one goroutine, started by start and ended by close, does the
// writing. Lines that do not fit the queue or cannot be written are counted.
type lineWriter struct {
	out  io.Writer
	lost atomic.Int64
	wake chan struct{} // the queue is not empty, or closing is set
	done chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	queue   []byte
	closing bool
}

func newLineWriter(out io.Writer) *lineWriter {
	return &lineWriter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// start starts the goroutine. It calls report with the number of lines lost since
// the last report, once the stream accepts lines again. report may write a line.
func (w *lineWriter) start(report func(lost int64)) {
	go func() {
		defer close(w.done)
		var buffer []byte
		reported, able := int64(0), false
		for range w.wake {
			buffer = w.take(buffer[:0])
			if lost := w.lost.Load(); able && lost > reported { // the stream accepts lines again
				report(lost - reported)
				reported = lost
			}
			if len(buffer) > 0 {
				_, err := w.out.Write(buffer)
				if able = err == nil; !able {
					w.lost.Add(lineCount(buffer))
				}
			}
			if cap(buffer) > keptQueue {
				buffer = nil
			}
			switch {
			case able && w.lost.Load() > reported:
				w.signal()
			case w.ended():
				return
			}
		}
	}()
}

// take returns the queue and replaces it with an empty one.
func (w *lineWriter) take(empty []byte) (queue []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue, w.queue = w.queue, empty
	return queue
}

// ended reports whether close was called and nothing is queued.
func (w *lineWriter) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing && len(w.queue) == 0
}

// Write queues whole lines. It always succeeds.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 && len(w.queue)+len(p) > lineQueue {
		w.lost.Add(lineCount(p))
		return len(p), nil
	}
	w.queue = append(w.queue, p...)
	w.signal()
	return len(p), nil
}

func (w *lineWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// close writes the queued lines and ends the goroutine. If the stream is stuck it
// returns after lastWait, because the process is about to exit.
func (w *lineWriter) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.done:
	case <-time.After(lastWait):
	}
}

func lineCount(p []byte) int64 { return int64(bytes.Count(p, []byte{'\n'})) }
