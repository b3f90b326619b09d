package syntax

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Trees and texts are cheap to draw. The command line may say another number.
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
