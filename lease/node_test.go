package lease

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const second = time.Second

func newTestNode(process string, missing ...string) *Node {
	return NewNode(NodeConfig{Leased: true, Process: process, Has: func(t string) bool { return !slices.Contains(missing, t) }})
}

func mustGrant(t *testing.T, n *Node, g Grant, now time.Duration) Change {
	t.Helper()
	_, c, err := n.Grant(g, now)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.Lost)
	slices.Sort(c.Gained)
	return c
}

func TestANodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		grant func(n *Node, stamp string) Grant
		want  Refusal
	}{
		"a length below zero":       {func(*Node, string) Grant { return Grant{Length: -1, Epoch: "e"} }, Refusal{Reason: BadValue}},
		"a length over an hour":     {func(*Node, string) Grant { return Grant{Length: time.Hour + 1, Epoch: "e"} }, Refusal{Reason: BadValue}},
		"an empty epoch":            {func(*Node, string) Grant { return Grant{Length: 1} }, Refusal{Reason: BadValue}},
		"an epoch of 129 bytes":     {func(*Node, string) Grant { return Grant{Epoch: strings.Repeat("e", 129)} }, Refusal{Reason: BadValue}},
		"an epoch it does not hold": {func(*Node, string) Grant { return Grant{Length: 1, Epoch: "f"} }, Refusal{Reason: OtherEpoch, Holds: true, Epoch: "e"}},
		"a stamp of another process": {func(*Node, string) Grant {
			return Grant{Length: 1, Epoch: "e", At: newTestNode("q").Status(10*second + 1).At} // as late as that of its lease
		}, Refusal{Reason: Overtaken}},
		"a stamp it has not given": {func(*Node, string) Grant { return Grant{Length: 1, Epoch: "e", At: "p.zzzzzzz"} }, Refusal{Reason: Overtaken}},
		"no stamp at all":          {func(*Node, string) Grant { return Grant{Length: 1, Epoch: "e", At: "garbage"} }, Refusal{Reason: Overtaken}},
		"a stamp older than that of its lease": {func(_ *Node, stamp string) Grant {
			return Grant{Length: 1, Epoch: "g", Primaries: []string{"c"}, At: stamp}
		}, Refusal{Reason: Overtaken}},
		"tenants it has no file of": {func(*Node, string) Grant {
			return Grant{Length: 1, Epoch: "g", Primaries: []string{"c", "x", "a", "y"}}
		}, Refusal{Reason: MissingFiles, Missing: []string{"x", "y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode("p", "x", "y")
			stamp := n.Status(10 * second).At
			mustGrant(t, n, Grant{Length: second, Epoch: "e", Primaries: []string{"a", "b"}, At: n.Status(10 * second).At}, 10*second)
			_, change, err := n.Grant(c.grant(n, stamp), 10*second)
			var got *Refusal
			if !errors.As(err, &got) || got.Error() == "" {
				t.Fatalf("got %v, want a refusal", err)
			}
			got.detail = ""
			if diff := cmp.Diff(c.want, *got, cmp.AllowUnexported(Refusal{})); diff != "" {
				t.Error(diff)
			}
			s := n.Status(10*second + 1)
			s.At = ""
			want := Status{Leased: true, Granted: true, Epoch: "e", Primaries: 2, Left: second}
			if s != want || change.Lost != nil || change.Gained != nil {
				t.Errorf("it changed the lease: %+v, %+v", s, change)
			}
		})
	}
}

func TestANodeThatTakesNoLeaseWritesAndRefusesGrants(t *testing.T) {
	n := NewNode(NodeConfig{Process: "p", Has: func(string) bool { return true }})
	term, ok := n.Write("a", second)
	if !ok || !n.Stands("a", term, time.Hour) {
		t.Error("it does not write")
	}
	_, _, err := n.Grant(Grant{Length: second, Epoch: "e", Primaries: []string{"a"}}, second)
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != NoLease {
		t.Errorf("got %v, want NoLease", err)
	}
	if s := n.Status(second); s.Leased || s.Granted || n.Runs(second) {
		t.Errorf("%+v", s)
	}
}

func TestARenewalNeedsTheEpochThatANodeHolds(t *testing.T) {
	n := newTestNode("p")
	_, _, err := n.Grant(Grant{Length: second, Epoch: "e"}, second)
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != OtherEpoch || r.Holds {
		t.Errorf("got %v, want a refusal that names no epoch", err)
	}
}

func TestAGrantRunsFromItsStamp(t *testing.T) {
	n := newTestNode("p")
	at := n.Status(10 * second).At
	mustGrant(t, n, Grant{Length: 3 * second, Epoch: "e", Primaries: []string{"a"}, At: at}, 12*second)
	if _, ok := n.Write("a", 13*second-1); !ok {
		t.Error("it does not write before the lease has lapsed")
	}
	if _, ok := n.Write("a", 13*second); ok {
		t.Error("it writes as the lease has lapsed")
	}
	if _, ok := n.Write("b", 12*second); ok {
		t.Error("it writes a tenant that is not in the list")
	}
	if lapse, ok := n.NextLapse(); !ok || lapse != 13*second {
		t.Errorf("the next lapse is at %s, %v, want 13s", lapse, ok)
	}
	late := newTestNode("q")
	at = late.Status(10 * second).At
	if c := mustGrant(t, late, Grant{Length: second, Epoch: "e", Primaries: []string{"a"}, At: at}, 12*second); c.Gained != nil {
		t.Errorf("a grant that lapsed before it was read gained %v", c.Gained)
	}
	if _, ok := late.NextLapse(); ok || late.Runs(12*second) {
		t.Error("a grant that lapsed before it was read runs")
	}
}

func TestStampsOfOneInstantAreInOrder(t *testing.T) {
	n := newTestNode("p")
	first, second := n.Status(time.Second).At, n.Status(time.Second).At
	mustGrant(t, n, Grant{Length: time.Second, Epoch: "e", Primaries: []string{"a"}, At: second}, time.Second)
	if _, _, err := n.Grant(Grant{Length: time.Second, Epoch: "f", Primaries: []string{"b"}, At: first}, time.Second); err == nil {
		t.Error("the grant with the earlier stamp overtook the later one")
	}
	mustGrant(t, n, Grant{Length: time.Second, Epoch: "e", At: second}, time.Second)
}

// TestAnAnswerStands asks, for a write that landed at 10 s under a lease until 11 s, whether its answer may go out.
func TestAnAnswerStands(t *testing.T) {
	list := func(now time.Duration, epoch string, tenants ...string) func(*testing.T, *Node) {
		return func(t *testing.T, n *Node) {
			mustGrant(t, n, Grant{Length: second, Epoch: epoch, Primaries: append([]string{}, tenants...)}, now)
		}
	}
	renew := func(now time.Duration) func(*testing.T, *Node) {
		return func(t *testing.T, n *Node) { mustGrant(t, n, Grant{Length: second, Epoch: "e"}, now) }
	}
	for name, c := range map[string]struct {
		meanwhile []func(*testing.T, *Node)
		at        time.Duration
		want      bool
	}{
		"if nothing happened":             {nil, 10*second + 9, true},
		"not once the lease has lapsed":   {nil, 11 * second, false},
		"if the lease was renewed":        {[]func(*testing.T, *Node){renew(10*second + 500)}, 11*second + 9, true},
		"if the tenant is in the new one": {[]func(*testing.T, *Node){list(10*second+5, "f", "z", "a")}, 10*second + 9, true},
		"not if the tenant left":          {[]func(*testing.T, *Node){list(10*second+5, "f", "b")}, 10*second + 9, false},
		"not if the tenant left and came back": {
			[]func(*testing.T, *Node){list(10*second+5, "f", "b"), list(10*second+6, "g", "a")}, 10*second + 9, false,
		},
		"not if it lapsed and was renewed":        {[]func(*testing.T, *Node){renew(12 * second)}, 12*second + 9, false},
		"not if it lapsed and was granted anew":   {[]func(*testing.T, *Node){list(12*second, "f", "a")}, 12*second + 9, false},
		"not if it was ended":                     {[]func(*testing.T, *Node){func(t *testing.T, n *Node) { mustGrant(t, n, Grant{Epoch: "e"}, 10*second+5) }}, 10*second + 9, false},
		"not if it was ended and granted at once": {[]func(*testing.T, *Node){list(10*second+5, "f"), list(10*second+5, "g", "a")}, 10*second + 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode("p")
			mustGrant(t, n, Grant{Length: second, Epoch: "e", Primaries: []string{"a", "b"}}, 10*second)
			term, ok := n.Write("a", 10*second+1)
			if !ok {
				t.Fatal("the write does not land")
			}
			for _, do := range c.meanwhile {
				do(t, n)
			}
			if got := n.Stands("a", term, c.at); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAGrantReportsWhatBeginsAndEnds(t *testing.T) {
	n := newTestNode("p")
	grant := func(now, length time.Duration, epoch string, list ...string) Change {
		g := Grant{Length: length, Epoch: epoch}
		if list != nil {
			g.Primaries = list
		}
		return mustGrant(t, n, g, now)
	}
	check := func(what string, got Change, lost, gained string) {
		t.Helper()
		if strings.Join(got.Lost, " ") != lost || strings.Join(got.Gained, " ") != gained {
			t.Errorf("%s: got %+v, want %q lost and %q gained", what, got, lost, gained)
		}
	}
	check("the first", grant(1*second, second, "e", "a", "b"), "", "a b")
	check("a renewal", grant(1*second+1, second, "e"), "", "")
	check("another list", grant(1*second+2, second, "f", "b", "c"), "a", "c")
	check("a renewal after a lapse that was not reported", grant(5*second, second, "f"), "b c", "b c")
	lost := n.Lapse(6 * second)
	slices.Sort(lost)
	check("a lapse", Change{Lost: lost}, "b c", "")
	check("a lapse again", Change{Lost: n.Lapse(7 * second)}, "", "")
	check("a renewal after a lapse that was reported", grant(8*second, second, "f"), "", "b c")
	check("no lapse yet", Change{Lost: n.Lapse(9*second - 1)}, "", "")
	check("an end with a list", grant(8*second+5000, 0, "g", "c"), "b c", "")
	check("after the end", grant(8*second+6000, second, "h", "c"), "", "c")
	check("an end without a list", grant(8*second+7000, 0, "h"), "", "")
	check("the lapse that it is", Change{Lost: n.Lapse(8*second + 8000)}, "c", "")
}

// TestALapseReportedByALaterClockIsALapse is a grant whose caller read the clock before another caller reported the lapse.
func TestALapseReportedByALaterClockIsALapse(t *testing.T) {
	n := newTestNode("p")
	mustGrant(t, n, Grant{Length: second, Epoch: "e", Primaries: []string{"a"}}, 10*second)
	n.Lapse(11 * second)
	if c := mustGrant(t, n, Grant{Length: 2 * second, Epoch: "e"}, 11*second-1); !slices.Equal(c.Gained, []string{"a"}) {
		t.Errorf("gained %v, want a", c.Gained)
	}
}

func TestAWriteAllocatesNothing(t *testing.T) {
	n := newTestNode("p")
	mustGrant(t, n, Grant{Length: second, Epoch: "e", Primaries: []string{"acme"}}, 0)
	if got := testing.AllocsPerRun(100, func() {
		term, _ := n.Write("acme", 1)
		n.Stands("acme", term, 2)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	n := newTestNode("p")
	var names []string
	for i := range 10_000 {
		names = append(names, "tenant-"+string(rune('a'+i%26))+strings.Repeat("x", i%7)+time.Duration(i).String())
	}
	if _, _, err := n.Grant(Grant{Length: second, Epoch: "e", Primaries: names}, 0); err != nil {
		b.Fatal(err)
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			n.Write(names[4711], 1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				n.Write(names[4711], 1)
			}
		})
	})
}

// TestANodeIsUsedConcurrently is for the race detector.
func TestANodeIsUsedConcurrently(t *testing.T) {
	n := newTestNode("p")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			now := time.Duration(i) * time.Millisecond
			if _, _, err := n.Grant(Grant{Length: time.Millisecond * 3 / 2, Epoch: "e", Primaries: []string{"a"}, At: n.Status(now).At}, now); err != nil {
				t.Error(err)
			}
			n.Lapse(now)
		}
	}()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
			if term, ok := n.Write("a", time.Duration(i)); ok && term == 0 {
				t.Error("a write under no term")
			}
			n.Runs(0)
		}
	}
}

func TestWhichRouterANodeObeys(t *testing.T) {
	first := Directory{Lineage: "l", Term: 3, History: "3-a"}
	for name, c := range map[string]struct {
		held, call Directory
		leased     bool
		want       Verdict
		reason     Reason
	}{
		"the first it hears":                         {Directory{}, first, false, AcceptAndRecord, 0},
		"the one it obeys":                           {first, first, true, Accept, 0},
		"one with a later term":                      {first, Directory{"l", 4, "4-b"}, true, AcceptAndRecord, 0},
		"not one with an earlier term":               {first, Directory{"l", 2, "2-a"}, false, Refuse, OlderTerm},
		"not another with the same term":             {first, Directory{"l", 3, "3-b"}, false, Refuse, OlderTerm},
		"not one of another lineage under a lease":   {first, Directory{"m", 9, "9-z"}, true, Refuse, OtherLineage},
		"one of another lineage while no lease runs": {first, Directory{"m", 1, "1-z"}, false, AcceptAndRecord, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.held.Judge(c.call, c.leased)
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			var r *Refusal
			if errors.As(err, &r) != (c.want == Refuse) || r != nil && (r.Reason != c.reason || r.History != first.History || r.Error() == "") {
				t.Errorf("got the error %v", err)
			}
		})
	}
}
