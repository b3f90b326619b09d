package http1

import "time"

// The bounds of one connection. They are constants rather than options, so that
// a node and the router in front of it always agree on what fits.
const (
	// MaxHead is the longest request or response head, from its first byte to
	// the blank line inclusive. A longer request head is answered 431.
	MaxHead = 64 << 10
	// RouterRoom is how much longer than MaxHead a request head may be that
	// Server.Trusts: room for what a router adds.
	RouterRoom = 1 << 10
	// MaxBody is the longest body that Request.Body accepts. A longer one is 413.
	MaxBody = 64 << 20
	// BodyMemory bounds the bodies that a process without a bound of its own
	// holds: two of the longest.
	BodyMemory = 2 * MaxBody
	// MaxRequestID is the longest X-Request-Id accepted from a client.
	MaxRequestID = 128

	// HeadTimeout is how long a head may take from its first byte to its last.
	HeadTimeout = 10 * time.Second
	// BodyTimeout is how long a client may send nothing of a body it announced.
	BodyTimeout = 30 * time.Second
	// BodyRate is the bytes a second that a body must arrive at, and it may lag
	// by BodyTimeout at most. So a trickle does not hold a connection and the
	// memory of the bytes that came before.
	BodyRate = 16 << 10
	// BodyWait is how long a body waits for room in Server.Bodies.
	BodyWait = 5 * time.Second
	// WriteTimeout is how long a client may accept none of the bytes sent to it.
	WriteTimeout = 60 * time.Second
	// DefaultIdleTimeout is how long a connection may stay idle between requests
	// if Server.IdleTimeout is zero.
	DefaultIdleTimeout = 60 * time.Second
	// HandshakeTimeout bounds a TLS handshake.
	HandshakeTimeout = 10 * time.Second

	// maxDiscard is how much of an unread body is discarded to keep its
	// connection; past it the connection is closed instead.
	maxDiscard = 256 << 10
	// lingerTime and lingerBytes bound what is discarded after a refusal, so
	// that the client reads the refusal and not the reset that closing a socket
	// with unread bytes would send.
	lingerTime  = 2 * time.Second
	lingerBytes = 2 * MaxBody
	// leastRefusals and maxRefusals bound how many connections past the cap are
	// refused at a time. The next one waits to be accepted.
	leastRefusals = 4
	maxRefusals   = 64
	// refusalGrace is how long a refused connection may take once the next one waits.
	refusalGrace = 100 * time.Millisecond

	readBuffer  = 4 << 10  // what a connection starts with
	keepBuffer  = 64 << 10 // what a connection keeps between requests, each way
	headRoom    = 512      // before the scratch buffer, for the answer's head
	copyBody    = 16 << 10 // longer bodies are not copied beside their head
	streamBlock = 16 << 10 // what a Writer buffers before it writes without a Flush
)
