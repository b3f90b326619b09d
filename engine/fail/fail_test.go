package fail

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestErrorText(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"an error without a place is its message":         {New(NotFound, "no collection %q", "notes"), `no collection "notes"`},
		"an error with a place ends with it":              {At(Invalid, 1, 9, "want a name, got %d", 7), "want a name, got 7 line 1 column 9"},
		"a cause is part of the message":                  {New(Storage, "write block: %w", io.ErrShortWrite), "write block: short write"},
		"a wrapped error keeps the sentence of the first": {fmt.Errorf("put: %w", New(Full, "disk full")), "put: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestKindOf(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Kind
	}{
		"an error of ours has its kind":          {New(Conflict, "taken"), Conflict},
		"a wrapped error of ours keeps its kind": {fmt.Errorf("a: %w", fmt.Errorf("b: %w", New(Frozen, "frozen"))), Frozen},
		"a joined error of ours keeps its kind":  {errors.Join(io.EOF, New(Closed, "closing")), Closed},
		"the outermost kind counts":              {New(Storage, "x: %w", New(Full, "y")), Storage},
		"a foreign error has none":               {io.EOF, 0},
		"no error has none":                      {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := KindOf(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCauseIsReachable(t *testing.T) {
	if err := New(Storage, "sync: %w", io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause of an error made with the wrapping verb is not found by errors.Is")
	}
}

func TestEveryKindHasItsOwnName(t *testing.T) {
	seen := map[string]Kind{}
	for k := Invalid; k <= Reused; k++ {
		name := k.String()
		if strings.HasPrefix(name, "kind ") {
			t.Errorf("kind %d has no name", k)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("kinds %d and %d are both called %q", other, k, name)
		}
		seen[name] = k
	}
	if got := Kind(200).String(); got != "kind 200" {
		t.Errorf("an unknown kind reads %q", got)
	}
}
