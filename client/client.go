// Package client is a client of one tenant, directly on a node or through a router.
//
//	c := client.New("http://127.0.0.1:8081/t/acme", client.Options{})
//	defer c.Close()
//	books, err := client.Query[Book](ctx, c, "get books where year < $1 order year", 1900)
//
// Statements are FenecQL. Values are passed as parameters, $1 first: any value that encodes as JSON by the rules of
// github.com/go-json-experiment/json. An int64 is transferred exactly; a time.Time is a timestamp; []float32 is a vector;
// []byte is bytes, in base64; nil, and a nil slice or map, is null. Rows are decoded by the same rules into structs, maps,
// or jsontext.Value, which is the JSON unchanged. A whole number decoded into any is an int64 if it fits.
//
// A Client starts no goroutine and is safe for concurrent use. Read, At, WithKey, WithKeys, WithRepeats and WithPatience
// return cheap copies that share its connections and need not be closed. Every call returns when its context ends.
//
// # Retries
//
// A request may get no complete response, or a temporary error (503 or 429 with Retry-After or from a proxy, a router's 502
// and 504). A read is then retried, with randomized pauses that double, until Options.Patience or the context ends. A write
// is retried only under an idempotency key, with which it runs once however often it is sent: WithKey, WithKeys; or if the
// caller allows it to run twice: WithRepeats. Any other write is sent at most once. If its response is lost, it may or may
// not have run. It is retried only if the connection could not be opened.
package client

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"
)

// Defaults of Options.
const (
	DefaultPatience = 30 * time.Second
	DefaultTimeout  = 2 * time.Minute
)

// Forever is the patience of a client that retries until the context ends.
const Forever = time.Duration(1<<63 - 1)

// maxAnswer is the maximum size in bytes of a response, and of one event of a live query.
const maxAnswer = 64 << 20

// keptConnections is the maximum number of idle connections to the server.
const keptConnections = 64

// Options set how a tenant is reached. The zero value is a client without a token and with the defaults.
type Options struct {
	// Token is sent as a bearer token with every request if it is not empty.
	Token string
	// HTTP sends the requests; if nil, the client uses its own connections. Redirects are not followed. Its Timeout
	// also ends the connections of live queries, which then reconnect.
	HTTP *http.Client
	// Patience is how long a request is retried, counted from its first failure, and how long a stream continues
	// without its server. Zero means DefaultPatience; a negative value disables retries; Forever retries until the
	// context ends.
	Patience time.Duration
	// Timeout is the maximum duration of one try, in addition to the time the server is asked to wait. Zero means
	// DefaultTimeout.
	Timeout time.Duration
}

// Client sends requests to one tenant.
type Client struct {
	base     string
	token    string
	http     *http.Client
	own      *http.Transport // closed by Close; nil if the caller passed an http.Client
	timeout  time.Duration
	patience time.Duration

	memory  *memory // position of the last write, shared by copies
	read    bool    // requests are marked as read-only
	key     string  // sent with every write
	keys    bool    // every write gets a random key
	repeats bool    // writes may run twice
}

// New returns a client of the tenant at base, such as http://127.0.0.1:8081/t/acme.
func New(base string, o Options) *Client {
	c := &Client{
		base:     strings.TrimRight(base, "/"),
		token:    o.Token,
		timeout:  o.Timeout,
		patience: o.Patience,
		memory:   &memory{},
	}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.patience == 0 {
		c.patience = DefaultPatience
	}
	sender := http.Client{}
	if o.HTTP != nil {
		sender = *o.HTTP
	} else {
		c.own = http.DefaultTransport.(*http.Transport).Clone()
		c.own.MaxIdleConnsPerHost = keptConnections
		c.own.DisableCompression = true
		sender.Transport = c.own
	}
	// Following a redirect would send a write twice, and to a URL the caller did not give.
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &sender
	return c
}

// Close closes the idle connections. Requests in progress end with their own contexts.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Read returns a copy whose requests only read and may be served by any copy of the tenant. A write sent by it fails
// with ErrForbidden. Its reads see every write that was acknowledged to c or its copies before. ErrBehind means that
// the copy asked did not hold these writes in time.
func (c *Client) Read() *Client {
	d := *c
	d.read = true
	return &d
}

// At returns a copy that starts at a position, for example one from another process, and remembers its own writes apart
// from c. The zero Position clears it.
func (c *Client) At(p Position) *Client {
	d := *c
	d.memory = &memory{last: p}
	return &d
}

// Position returns the position of the last acknowledged write, zero if there was none.
func (c *Client) Position() Position { return c.memory.get() }

// WithKey returns a copy for one write. The server runs that write once, however often it is sent under the key: after
// a lost response, or by another process a day later. A different write under the same key fails with ErrKeyReused.
func (c *Client) WithKey(key string) *Client {
	d := *c
	d.key, d.keys, d.repeats = key, false, false
	return &d
}

// WithKeys returns a copy that sends every write under its own random key, so that a write whose response is lost is
// retried and still runs once. Each key costs the tenant a small row, kept for a day.
func (c *Client) WithKeys() *Client {
	d := *c
	d.key, d.keys, d.repeats = "", true, false
	return &d
}

// WithRepeats returns a copy whose writes are retried as reads are, without a key. A write whose response was lost runs
// again, so this is for writes that may run twice: a put of documents that have their ids, or a set whose condition no
// longer holds once it has run. It costs the tenant nothing.
func (c *Client) WithRepeats() *Client {
	d := *c
	d.key, d.keys, d.repeats = "", false, true
	return &d
}

// WithPatience returns a copy with another Options.Patience.
func (c *Client) WithPatience(d time.Duration) *Client {
	e := *c
	e.patience = d
	return &e
}

// nextKey returns the key of the next write, empty if it has none.
func (c *Client) nextKey() string {
	if c.keys {
		return rand.Text()
	}
	return c.key
}
