package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lineQueue is how many bytes of lines wait for a slow reader. Lines past it
	// are lost.
	lineQueue = 256 << 10
	// keptQueue is the capacity up to which the buffers of a queue are kept.
	keptQueue = 16 << 10
	// lastWait is how long close waits for a reader.
	lastWait = time.Second
)

// lineWriter passes lines on to a stream that may be slow, stuck or broken.
// Write returns at once: one goroutine, which start begins and close ends, does
// the writing. Lines that do not fit the queue and lines that the stream refuses
// are counted.
type lineWriter struct {
	out  io.Writer
	lost atomic.Int64
	wake chan struct{} // there is something in the queue, or closing is set
	done chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	queue   []byte
	closing bool
}

func newLineWriter(out io.Writer) *lineWriter {
	return &lineWriter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// start begins to write. report is called with the number of lines lost since
// the last report, once the stream takes lines again. It may write a line.
func (w *lineWriter) start(report func(lost int64)) {
	go func() {
		defer close(w.done)
		var buffer []byte
		reported, able := int64(0), false
		for range w.wake {
			buffer = w.take(buffer[:0])
			if lost := w.lost.Load(); able && lost > reported { // and there is room for a line now
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

// take swaps the queue for an empty one.
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
	default: // it is awake already
	}
}

// close writes what is queued and ends the goroutine. If the stream is stuck it
// gives up after lastWait: the process is about to end, and the goroutine with it.
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
