package command

import (
	"strings"
	"testing"
)

func TestUpTakesThePortsAfterItsOwn(t *testing.T) {
	got, err := upAddresses("localhost:8090", 2)
	if want := "localhost:8090 localhost:8091 localhost:8092"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("addresses %v, %v, want %s", got, err, want)
	}
	got, err = upAddresses("[::1]:0", 2)
	if want := "[::1]:0 [::1]:0 [::1]:0"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("addresses %v, %v, want %s", got, err, want)
	}
}
