package random

import (
	"crypto/rand"
	"strings"
	"testing"
	"testing/iotest"
)

func TestTextIsOfItsSource(t *testing.T) {
	a, b := Text(rand.Reader), Text(rand.Reader)
	if len(a) != 26 || a == b {
		t.Errorf("%s and %s", a, b)
	}
	if Text(strings.NewReader("0123456789abcdef")) != Text(iotest.OneByteReader(strings.NewReader("0123456789abcdef"))) {
		t.Error("the same bytes make different texts")
	}
	defer func() {
		if recover() == nil {
			t.Error("a source that ends makes a text")
		}
	}()
	Text(strings.NewReader("short"))
}
