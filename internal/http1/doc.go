// Package http1 is the HTTP/1.1 connection loop that node and router share,
// and the strict reading of what upstream nodes answer. Both halves of the
// product read a request through it, so they agree on every byte of it.
//
// A connection is one goroutine: it reads a head into a buffer it keeps,
// parses it in one pass, calls the Handler, writes the answer and waits for the
// next request. Nothing reads in the background. In the common case a request
// costs one read, one write and no allocation; deadlines are set only where the
// one the socket has would come too late.
//
// # Goroutines
//
// Server.Serve owns the accept loop, one goroutine a connection and a bounded
// number that refuse connections past the cap; Shutdown ends and waits for
// all of them. A request that waits or takes long (Context().Done, Watch, or Err
// for longer than watchAfter) gets a watcher, which the connection's goroutine
// stops before it goes on to the next request.
//
// # Locks
//
// Server.mu guards the sets of connections and listeners, peer.mu what a
// request's context has learnt of its client. Shutdown takes peer.mu while it
// holds Server.mu; nothing takes them the other way round.
//
// # Framing
//
// What is ambiguous is refused, with a JSON body and a close: the loop never
// guesses where a request ends. Percent-encoded dots are judged as the dots they
// stand for: a path segment that reads "." or ".." once %2e is decoded is
// refused like the plain one. Every other escape is left to the handler.
package http1
