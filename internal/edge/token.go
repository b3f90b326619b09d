// Package edge is what a node and a router share at the edge of HTTP, in addition to the connection loop (internal/http1):
// who may send a request, which methods a path accepts, how a path is split, how long a request asks to wait, and what an
// address and a pair of certificate files are.
package edge

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"

	"fenec/internal/http1"
)

// Token is a bearer token that requests may carry. Of the zero Token, which is that of an empty text, no request carries it.
type Token struct {
	sum [sha256.Size]byte // so that a comparison takes the same time whatever is right and however long it is
	set bool
}

// NewToken returns the Token of a text.
func NewToken(text string) Token { return Token{sha256.Sum256([]byte(text)), text != ""} }

// Set reports whether there is a token.
func (t *Token) Set() bool { return t.set }

// In reports whether a request carries the token.
func (t *Token) In(r *http1.Request) bool {
	given := r.Get("Authorization")
	const scheme = "Bearer "
	if !t.set || len(given) < len(scheme) || !bytes.EqualFold(given[:len(scheme)], []byte(scheme)) {
		return false
	}
	sum := sha256.Sum256(bytes.TrimLeft(given[len(scheme):], " "))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}

var challenge = http1.Header{Name: []byte("WWW-Authenticate"), Value: []byte(`Bearer realm="fenec"`)}

// Unauthorized returns the answer for a request whose token is missing or wrong.
func Unauthorized(r *http1.Request) http1.Answer {
	message := "the token is wrong"
	if r.Get("Authorization") == nil {
		message = "a token is required: Authorization: Bearer <token>"
	}
	a := http1.ErrorAnswer(401, message)
	a.Headers = append(a.Headers[:len(a.Headers):len(a.Headers)], challenge)
	return a
}
