package doc

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encode returns a JSON text as an encoded value.
func encode(t testing.TB, text string) Raw {
	t.Helper()
	raw, err := ParseJSON(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return raw
}
