// Package client is a client of one tenant, of a node or through a router.
//
//	c := client.New("http://127.0.0.1:8081/t/acme", client.Options{})
//	defer c.Close()
//	books, err := client.Query[Book](ctx, c, "get books where year < $1 order year", 1900)
//
// Statements are FenecQL, and values go into them as parameters, $1 first: any value that encodes as JSON by the rules of
// github.com/go-json-experiment/json. An int64 arrives exactly; a time.Time is a timestamp; []float32 is a vector; []byte
// is bytes, in base64; nil, and a nil slice or map, is null. Rows are decoded by the same rules into structs, maps,
// or jsontext.Value, which is the JSON as it came; a whole number decoded into any is an int64 where it fits one.
//
// A Client starts no goroutine of its own, and may be used by many at once. Read, At, WithKey, WithKeys and WithPatience
// are copies of it that share its connections; they cost nothing and need not be closed. Every call ends with its context.
//
// # What is tried again
//
// Where no whole answer came, or one that says not now (503 or 429 with Retry-After, a router's 502 and 504), a read is
// sent again, after a pause that doubles and varies, until Options.Patience or the context is over. A write is sent again
// only under an idempotency key, which lets it run once however often it is sent: WithKey, WithKeys. Without one, a write
// goes out at most once, and where its answer is lost nobody knows whether it ran; one that could not even be connected
// is tried again.
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

// Forever is the patience of a client that only its contexts end.
const Forever = time.Duration(1<<63 - 1)

// maxAnswer bounds the bytes of an answer, and of one event of a live query.
const maxAnswer = 64 << 20

// keptConnections is how many idle connections a client keeps to its server.
const keptConnections = 64

// Options say how a tenant is reached. The zero value is a client without a token and with the defaults.
type Options struct {
	// Token is sent as a bearer token with every request, where there is one.
	Token string
	// HTTP sends the requests, in place of a client that keeps connections of its own. Redirects are not followed. A Timeout
	// of it cuts live queries short, which then come back.
	HTTP *http.Client
	// Patience is how long a request that may be sent again is, counted from its first failure, and how long a stream goes
	// on without its server. DefaultPatience where zero; negative: everything is sent once. Forever leaves it to the context.
	Patience time.Duration
	// Timeout is how long one try may take, beside what it asks the server to wait. DefaultTimeout where zero.
	Timeout time.Duration
}

// Client sends requests to one tenant.
type Client struct {
	base     string
	token    string
	http     *http.Client
	own      *http.Transport // closed by Close; nil where the caller brought an http.Client
	timeout  time.Duration
	patience time.Duration

	memory *memory // of the last write, shared by copies
	read   bool    // requests are marked as reads
	key    string  // of every write
	keys   bool    // every write has a key of its own
}

// New is a client of the tenant at base, such as http://127.0.0.1:8081/t/acme.
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
	// Following one would send a write a second time, and to a place the caller did not name.
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &sender
	return c
}

// Close lets go of the connections kept. What is under way ends with its own context.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Read is a copy whose requests only read, on whichever copy of the tenant: they are marked so, a write among them is
// refused with ErrForbidden, and they see every write that c, or a copy of it, was answered before. ErrBehind says that
// the copy asked did not get that far in time.
func (c *Client) Read() *Client {
	d := *c
	d.read = true
	return &d
}

// At is a copy that begins at a position, be it of another process, and remembers its own writes apart from c. The zero
// Position forgets.
func (c *Client) At(p Position) *Client {
	d := *c
	d.memory = &memory{last: p}
	return &d
}

// Position is that of the last write answered, zero where there was none.
func (c *Client) Position() Position { return c.memory.get() }

// WithKey is a copy for one write, which the server runs once however often it is sent under the key: now, again after a
// lost answer, and by another process a day later. Another write under the key is refused with ErrKeyReused.
func (c *Client) WithKey(key string) *Client {
	d := *c
	d.key, d.keys = key, false
	return &d
}

// WithKeys is a copy that sends every write under a random key of its own, so that a write whose answer is lost is sent
// again and still runs once. Each costs the tenant a small row, kept for a day.
func (c *Client) WithKeys() *Client {
	d := *c
	d.key, d.keys = "", true
	return &d
}

// WithPatience is a copy with another Options.Patience.
func (c *Client) WithPatience(d time.Duration) *Client {
	e := *c
	e.patience = d
	return &e
}

// nextKey is the key of a write, empty where it has none.
func (c *Client) nextKey() string {
	if c.keys {
		return rand.Text()
	}
	return c.key
}
