package http1

import (
	"bufio"
	"testing"
)

func TestOneClientAloneIsWaitedForOnTheSpotAndTwoAreNot(t *testing.T) {
	s := &Server{Handler: HandlerFunc(func(r *Request) Answer {
		return Answer{Status: 200, Body: append(r.Scratch(), r.conn.eager.state()...)}
	})}
	addr := start(t, s)
	one := dial(t, addr)
	b := bufio.NewReader(one)
	ask := func() string {
		send(t, one, again)
		_, body := receive(t, b, "GET")
		return body
	}
	// Until it has been tried; what it found depends on the client's haste.
	await(t, "a wait on the spot", func() bool { return ask() != "parks" })

	two := dial(t, addr)
	c := bufio.NewReader(two)
	both := func() string {
		send(t, two, again)
		receive(t, c, "GET")
		return ask()
	}
	await(t, "an end of it", func() bool { return both() == "parks" })
	for range 3 * eagerTurns {
		if got := both(); got != "parks" {
			t.Fatalf("beside another client it %s", got)
		}
	}
}

// state says whether the next wait may be on the spot.
func (e *eager) state() string {
	if e.alone <= eagerTurns {
		return "parks"
	}
	return "waits"
}
