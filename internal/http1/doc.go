// Package http1 is the HTTP/1.1 connection loop that node and router share,
// and the strict parser of upstream nodes' answers. Both node and router
// read requests through it, so they agree on every byte of a request.
//
// A connection is one goroutine: it reads a head into a buffer it keeps,
// parses it in one pass, calls the Handler, writes the answer and waits for the
// next request. Nothing reads in the background. In the common case a request
// costs one read, one write and no allocation; a deadline is set only if the
// one the socket has would fire too late.
//
// # Goroutines
//
// Server.Serve owns the accept loop, one goroutine a connection and a bounded
// number that refuse connections past the cap; Shutdown ends and waits for
// all of them. A request that waits or takes long (Context().Done, Watch, or Err
// for longer than watchAfter) gets a watcher, which the connection's goroutine
// stops before it reads the next request.
//
// # Locks
//
// Server.mu guards the sets of connections and listeners, peer.mu the state of
// a request's client. Shutdown takes peer.mu while it holds Server.mu; no code
// takes them in the other order.
//
// # Framing
//
// An ambiguous request is refused with a JSON body and a close: the loop never
// guesses where a request ends. Percent-encoded dots count as dots: a path
// segment that is "." or ".." after decoding %2e is refused like the plain one.
// Every other escape is left to the handler.
package http1
