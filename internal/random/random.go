// Package random makes random texts from a source that is an argument, so that a simulated cluster can choose it.
package random

import (
	"encoding/base32"
	"fmt"
	"io"
)

// Text returns a text of 26 letters and digits with 128 bits from a source of randomness. It panics if the source
// fails, as package crypto/rand does.
func Text(source io.Reader) string {
	var b [16]byte
	if _, err := io.ReadFull(source, b[:]); err != nil {
		panic(fmt.Sprintf("the source of randomness failed: %v", err))
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}
