package lease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// script drives a keeper with leases of 3 s, so a third is 1 s and a lapse is certain after 3.3 s. It starts at 100 s.
type script struct {
	t    *testing.T
	k    *Keeper
	last map[string]Call // of each node
	at   int             // stamps given
}

const began = 100 * second

func newScript(t *testing.T, change func(*Config)) *script {
	c := Config{
		Length: 3 * second, Name: "k", Recorded: 3 * second,
		Nodes:   []NodeInfo{{Name: "a", Leased: true}, {Name: "b", Leased: true}},
		Tenants: []Placement{{Tenant: "t", Node: "a"}, {Tenant: "u", Node: "b"}},
	}
	if change != nil {
		change(&c)
	}
	k, err := NewKeeper(c, began)
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, k: k, last: map[string]Call{}}
}

// step steps at a time since the start and compares the actions: `read a`, `grant a t,u`, `renew a`, `abandon a`, and the rest
// by name.
func (s *script) step(at time.Duration, want string, events ...Event) {
	s.t.Helper()
	var got []string
	for _, a := range s.k.Step(began+at, events...) {
		switch a := a.(type) {
		case Read:
			s.last[a.Node] = a.Call
			got = append(got, "read "+a.Node)
		case Send:
			s.last[a.Node] = a.Call
			line := "renew " + a.Node
			if a.Grant.Primaries != nil {
				line = "grant " + a.Node + " " + strings.Join(a.Grant.Primaries, ",")
			}
			got = append(got, strings.TrimSpace(line))
		case Abandon:
			got = append(got, "abandon "+a.Node)
		case Lapsed:
			got = append(got, "lapsed "+a.Node)
		case FailOver:
			got = append(got, "fail over "+a.Node+" "+strings.Join(a.Tenants, ","))
		default:
			got = append(got, strings.Trim(strings.TrimPrefix(fmt.Sprintf("%T%v", a, a), "lease."), " "))
		}
	}
	if g := strings.Join(got, "; "); g != want {
		s.t.Errorf("at %s: got %q, want %q", at, g, want)
	}
}

// read answers the read of a node, which holds the epoch.
func (s *script) read(node, epoch string) Event {
	s.at++
	return Answered{node, s.last[node], Status{Leased: true, Granted: epoch != "", Epoch: epoch, At: fmt.Sprint(s.at)}}
}

func (s *script) ack(node string) Event { return Answered{node, s.last[node], Status{Leased: true}} }

func (s *script) lost(node string) Event {
	return Unanswered{node, s.last[node]}
}

func (s *script) refuse(node string, r Refusal) Event { return Refused{node, s.last[node], &r} }

// granted is a script in which both nodes hold their lists at 1 ms.
func granted(t *testing.T) *script {
	s := newScript(t, nil)
	s.step(0, "read a; read b")
	s.step(0, "grant a t", s.read("a", ""))
	s.step(0, "grant b u", s.read("b", ""))
	s.step(time.Millisecond, "Listed{a [t]}", s.ack("a"))
	s.step(time.Millisecond, "Listed{b [u]}", s.ack("b"))
	return s
}

func TestALeaseIsRenewedEveryThird(t *testing.T) {
	s := granted(t)
	if wake := s.k.Wake(); wake != began+second {
		t.Errorf("it wakes at %s, want at a third", wake-began)
	}
	s.step(second-1, "")
	s.step(second, "read a; read b")
	s.step(second+1, "renew a", s.read("a", "k-1"))
	s.step(second+2, "", s.ack("a"))
	s.step(second+3, "grant b u", s.read("b", "of another router"))
	s.step(second+4, "", s.refuse("b", Refusal{Reason: BadValue}))
	s.step(2*second, "read a; read b")
	if v, _ := s.k.View("a", began+2*second); v.Left != 2*second+1 || v.Age != second-1 || v.Lapsed {
		t.Errorf("%+v", v)
	}
}

func TestARenewalWithoutAnAnswerIsGivenUpAfterAThird(t *testing.T) {
	s := granted(t)
	s.step(second, "read a; read b")
	late := s.read("a", "k-1")
	s.step(2*second-1, "")
	s.step(2*second, "abandon a; abandon b; read a; read b")
	s.step(2*second+1, "", late)
	s.step(2*second+2, "renew a", s.read("a", "k-1"))
}

// lapses steps from both nodes granted until neither holds a lease.
func lapses(t *testing.T) *script {
	s := granted(t)
	s.step(second, "read a; read b")
	s.step(2*second, "abandon a; abandon b; read a; read b")
	s.step(3*second, "abandon a; abandon b; read a; read b")
	s.step(3300*time.Millisecond-1, "")
	s.step(3300*time.Millisecond, "lapsed a; lapsed b")
	return s
}

func TestAFailoverWaitsForARenewalSentAfterTheLapse(t *testing.T) {
	s := lapses(t)
	s.step(4*second, "abandon a; abandon b; read a; read b")
	s.step(5*second-1, "")
	s.step(5*second, "abandon a; abandon b; fail over a t; fail over b u; read a; read b")
	s.step(5100*time.Millisecond, "read b", s.lost("b"), Place{Tenant: "t", Node: "b"})
	s.step(5200*time.Millisecond, "grant b t", s.read("b", "k-2"))
	s.step(5300*time.Millisecond, "Returned{b}; Listed{b [t]}", s.ack("b"))
	s.step(5400*time.Millisecond, "", Release{"u"})
	s.step(6*second, "abandon a; read a")
	s.step(6100*time.Millisecond, "read b")
	s.step(6200*time.Millisecond, "grant b t,u", s.read("b", "k-3"))
	s.step(6300*time.Millisecond, "grant a", s.read("a", "k-1"))
	s.step(6400*time.Millisecond, "Returned{a}", s.ack("a"))
}

func TestAFailoverThatFailedIsTriedAgainEveryThird(t *testing.T) {
	s := lapses(t)
	s.step(4*second, "abandon a; abandon b; read a; read b")
	s.step(5*second, "abandon a; abandon b; fail over a t; fail over b u; read a; read b")
	s.step(5100*time.Millisecond, "", Release{"t"}, Release{"u"})
	s.step(5200*time.Millisecond, "", s.lost("a"))
	s.step(6*second, "abandon b; fail over a t; fail over b u; read a; read b")
	s.step(6100*time.Millisecond, "", Release{"t"})
	s.step(6200*time.Millisecond, "grant a t", s.read("a", ""))
}

func TestANodeThatAnswersAfterTheLapseGetsItsTenantsBack(t *testing.T) {
	s := lapses(t)
	s.step(3500*time.Millisecond, "renew a", s.read("a", "k-1"))
	s.step(3600*time.Millisecond, "Returned{a}; Listed{a [t]}", s.ack("a"))
}

func TestARouterThatWasStoppedFailsNobodyOver(t *testing.T) {
	s := granted(t)
	s.step(second, "read a; read b")
	s.step(50*second, "lapsed a; lapsed b; Gone{a}; Gone{b}")
	s.step(50*second+1, "renew a", s.read("a", "k-1"))
	s.step(50*second+1, "grant b u", s.read("b", ""))
	s = lapses(t)
	s.step(4*second, "abandon a; abandon b; read a; read b")
	s.step(9*second, "")
	s.step(9*second+1, "renew a", s.read("a", "k-1"))
	s.step(9125*time.Millisecond, "abandon b; fail over b u; read b")
}

func TestAGrantIsCountedFromTheAnswerWithItsStampWhetherItIsAnsweredOrNot(t *testing.T) {
	s := granted(t)
	s.step(second, "read a; read b")
	s.step(1900*time.Millisecond, "renew a", s.read("a", "k-1"))
	s.step(2*second, "abandon b; read b")
	s.step(2900*time.Millisecond, "abandon a; read a")
	s.step(3*second, "abandon b; read b")
	s.step(3300*time.Millisecond, "lapsed b")
	s.step(3900*time.Millisecond, "abandon a; read a")
	s.step(3900*time.Millisecond, "", s.lost("b"))
	s.step(5200*time.Millisecond-1, "read b")
	s.step(5200*time.Millisecond, "lapsed a")
}

func TestANodeThatTakesNoLeaseIsNotFailedOver(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Nodes[0].Leased = false })
	s.step(0, "read a; read b")
	s.step(1, "", Answered{"a", s.last["a"], Status{At: "1"}})
	s.step(2, "Leased{b false}", Answered{"b", s.last["b"], Status{At: "1"}})
	for i := range 40 {
		for _, a := range s.k.Step(began + 10*second + time.Duration(i)*500*time.Millisecond) {
			switch a.(type) {
			case FailOver, Send, Lapsed:
				t.Errorf("got %T%v", a, a)
			}
		}
	}
	if v, ok := s.k.View("a", began); !ok || !v.NoLease {
		t.Errorf("%+v", v)
	}
}

func TestANodeThatWasNeverLeasedIsNotFailedOver(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Nodes[0].Leased = false })
	s.step(0, "read a; read b")
	for i := 1; i < 40; i++ {
		for _, a := range s.k.Step(began + time.Duration(i)*500*time.Millisecond) {
			if f, ok := a.(FailOver); ok && f.Node == "a" {
				t.Error("it is failed over")
			}
		}
	}
	s = newScript(t, func(c *Config) { c.Nodes = c.Nodes[:1]; c.Nodes[0].Leased = false })
	s.step(0, "read a")
	s.step(1, "grant a t", s.read("a", ""))
	s.step(2, "Leased{a true}; Listed{a [t]}", s.ack("a"))
}

func TestATenantLeavesOneListBeforeItEntersAnother(t *testing.T) {
	for name, c := range map[string]struct {
		place Place
		steps func(s *script)
	}{
		"acknowledged": {Place{Tenant: "t", Node: "b"}, func(s *script) {
			s.step(110*time.Millisecond, "grant b u", s.read("b", "k-2"))
			s.step(120*time.Millisecond, "", s.ack("b"))
			s.step(130*time.Millisecond, "grant a", s.read("a", "k-1"))
			s.step(140*time.Millisecond, "read b", s.ack("a"))
			s.step(150*time.Millisecond, "grant b t,u", s.read("b", "k-3"))
			s.step(160*time.Millisecond, "Listed{b [t]}", s.ack("b"))
		}},
		"lapsed": {Place{Tenant: "t", Node: "b"}, func(s *script) {
			s.step(110*time.Millisecond, "grant b u", s.read("b", "k-2"))
			s.step(120*time.Millisecond, "", s.ack("b"), s.lost("a"))
			s.step(3300*time.Millisecond, "lapsed a; read a; read b")
			s.step(3310*time.Millisecond, "grant b t,u", s.read("b", "k-3"))
		}},
		"frozen": {Place{Tenant: "t", Node: "b", Frozen: true}, func(s *script) {
			s.step(110*time.Millisecond, "grant b t,u", s.read("b", "k-2"))
			s.step(120*time.Millisecond, "Listed{b [t]}", s.ack("b"))
			// It may not be promoted on a, whose grants still name it.
			s.step(130*time.Millisecond, "read b", Withhold{"t"})
			s.step(140*time.Millisecond, "grant b u", s.read("b", "k-3"))
			s.step(150*time.Millisecond, "", s.ack("b"))
			s.step(160*time.Millisecond, "grant a", s.read("a", "k-1"))
			s.step(170*time.Millisecond, "Free{t}", s.ack("a"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := granted(t)
			s.step(100*time.Millisecond, "read a; read b", c.place)
			c.steps(s)
		})
	}
}

func TestAWithheldTenantIsFreeOnceItsNodeAcknowledges(t *testing.T) {
	s := granted(t)
	s.step(100*time.Millisecond, "read a", Withhold{"t"})
	s.step(110*time.Millisecond, "grant a", s.read("a", "k-1"))
	s.step(120*time.Millisecond, "Free{t}", s.ack("a"))
	s.step(130*time.Millisecond, "", Release{"t"})
	s.step(second, "read b")
	s.step(1100*time.Millisecond, "read a")
	s.step(1110*time.Millisecond, "grant a t", s.read("a", "k-3"))
}

func TestADeletedTenantLeavesTheList(t *testing.T) {
	s := granted(t)
	s.step(100*time.Millisecond, "read a", Place{Tenant: "t"}, Place{Tenant: "none"}, Withhold{"none"}, Release{"none"})
	s.step(110*time.Millisecond, "grant a", s.read("a", "k-1"))
	s.step(120*time.Millisecond, "", s.ack("a"))
	if len(s.k.tenants) != 1 {
		t.Errorf("it keeps %d tenants, want 1", len(s.k.tenants))
	}
}

func TestMissingTenantsArePromotedAndTheRestIsGranted(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Tenants = append(c.Tenants, Placement{Tenant: "v", Node: "a"}) })
	s.step(0, "read a; read b")
	s.step(1, "grant a t,v", s.read("a", ""))
	s.step(2, "grant b u", s.read("b", ""))
	s.step(2, "Listed{b [u]}", s.ack("b"))
	s.step(2, "read a", s.refuse("a", Refusal{Reason: MissingFiles, Missing: []string{"t", "of another list"}}))
	s.step(3, "grant a v", s.read("a", ""))
	s.step(4, "Promote{a t}; Listed{a [v]}", s.ack("a")) // a has lost the files of lists of other routers too
	s.step(5, "", Release{"t"})                          // no replica: it is tried again with the next renewal
	s.step(second, "read b")
	s.step(second+2, "read a")
	s.step(second+3, "grant a t,v", s.read("a", "k-3"))
	s.step(second+4, "Promote{a t}; read a", s.refuse("a", Refusal{Reason: MissingFiles, Missing: []string{"t"}}))
}

func TestARefusedGrantIsSentAgainAtOnceAndThenEveryThird(t *testing.T) {
	for name, r := range map[string]Refusal{"an epoch not held": {Reason: OtherEpoch}, "overtaken": {Reason: Overtaken}} {
		t.Run(name, func(t *testing.T) {
			s := granted(t)
			s.step(second, "read a; read b")
			s.step(second+1, "renew a", s.read("a", "k-1"))
			s.step(second+2, "read a", s.refuse("a", r))
			want := "renew a"
			if r.Reason == OtherEpoch {
				want = "grant a t"
			}
			s.step(second+3, want, s.read("a", "k-1"))
			s.step(second+4, "", s.refuse("a", r))
			s.step(2*second, "abandon b; read b")
			s.step(2*second+2, "read a")
		})
	}
}

func TestARouterThatIsDeposedDoesNothingMore(t *testing.T) {
	s := granted(t)
	s.step(second, "read a; read b")
	s.step(second+1, "renew a", s.read("a", "k-1"))
	s.step(second+2, "abandon b; Deposed{7-x}", s.refuse("a", Refusal{Reason: OlderTerm, History: "7-x"}), Place{Tenant: "t", Node: "b"})
	s.step(10*second, "", s.read("b", ""))
	if s.k.Wake() < time.Duration(1<<62) {
		t.Error("it wakes")
	}
}

func TestARouterThatStartsCountsEveryNodeAsGranted(t *testing.T) {
	s := newScript(t, func(c *Config) {
		c.Recorded = 6 * second
		c.Tenants = append(c.Tenants, Placement{Tenant: "v", Node: "a", FailingOver: true})
	})
	s.step(0, "Free{v}; read a; read b")
	for at := second; at < 6600*time.Millisecond; at += second {
		s.step(at, "abandon a; abandon b; read a; read b")
	}
	s.step(6600*time.Millisecond, "lapsed a; lapsed b; RecordLength{3s}")
	s.step(7*second, "abandon a; abandon b; read a; read b", LengthRecorded{Err: errors.New("no space")})
	s.step(8*second, "RecordLength{3s}; abandon a; abandon b; fail over a t; fail over b u; read a; read b")
	s.step(8*second+1, "", LengthRecorded{Length: 3 * second})
	s.step(8*second+2, "grant b v", Place{Tenant: "v", Node: "b"}, s.read("b", ""))
}

func TestALongerLeaseIsRecordedBeforeItIsGranted(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Recorded = second })
	s.step(0, "RecordLength{3s}; read a; read b")
	s.step(1, "", s.read("a", ""))
	s.step(2, "read a", LengthRecorded{Length: 3 * second})
	s.step(3, "grant a t", s.read("a", ""))
}

func TestARouterWhoseDirectoryMayBeBehindTrustsNoList(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Behind = true })
	s.step(0, "read a; read b", Withhold{"u"})
	s.step(1, "grant a", s.read("a", "of another router"))
	s.step(2, "read a", s.ack("a"), Release{"u"})
	s.step(3, "grant a", s.read("a", "k-1"))
	s.step(4, "grant b u", s.read("b", ""))
	s.step(5, "Settled{}; Listed{b [u]}; read b", s.ack("b"))
	s.step(6, "read a", s.ack("a"))
	s.step(7, "grant a t", s.read("a", "k-2"))
	s = newScript(t, func(c *Config) { c.Behind = true })
	s.step(0, "read a; read b")
	s.step(1, "grant a", s.read("a", "of another router"))
	s.step(2, "read a", s.ack("a"))
	s.step(3, "grant a", s.read("a", "k-1"))
	s.step(4, "", s.ack("a"))
	s.step(second, "abandon b; read b")
	s.step(second+2, "read a")
	s.step(second+3, "renew a", s.read("a", "k-2"))
	s.step(second+4, "", s.ack("a"))
	s.step(2*second, "abandon b; read b")
	s.step(2*second+2, "read a")
	s.step(3*second, "abandon b; read b")
	s.step(3300*time.Millisecond, "lapsed b; Settled{}")
}

func TestARouterWhoseDirectoryMayBeBehindFinishesAFailoverOnceThatIsCertain(t *testing.T) {
	s := newScript(t, func(c *Config) {
		c.Behind, c.Tenants = true, append(c.Tenants, Placement{Tenant: "v", Node: "a", FailingOver: true})
	})
	s.step(0, "read a; read b")
	s.step(3300*time.Millisecond, "lapsed a; lapsed b; Settled{}; Free{v}")
}

// TestANodeThatAnswersReadsAndNoGrantsIsFailedOver is one whose disk hangs, for example.
func TestANodeThatAnswersReadsAndNoGrantsIsFailedOver(t *testing.T) {
	s := granted(t)
	for at, over := 2*time.Millisecond, false; !over; at += 50 * time.Millisecond {
		if at > 15*second {
			t.Fatal("it is not")
		}
		for _, a := range s.k.Step(began + at) {
			switch a := a.(type) {
			case Read:
				s.last[a.Node] = a.Call
				for _, a := range s.k.Step(began+at, s.read(a.Node, "k-1")) {
					if send, ok := a.(Send); ok {
						s.last[send.Node] = send.Call
					}
				}
			case FailOver:
				over = over || a.Node == "a"
			}
		}
	}
}

func TestANodeThatIsRemovedHoldsItsTenantsUntilItHasLapsed(t *testing.T) {
	s := granted(t)
	s.step(100*time.Millisecond, "read a; read b", Place{Tenant: "t", Node: "b"})
	s.step(110*time.Millisecond, "abandon a", RemoveNode{"a"}, RemoveNode{"none"})
	s.step(120*time.Millisecond, "grant b u", s.read("b", "k-2"))
	s.step(130*time.Millisecond, "", s.ack("b"))
	if _, ok := s.k.View("a", began); ok {
		t.Error("it is shown")
	}
	s.step(1100*time.Millisecond, "read b")
	s.step(1110*time.Millisecond, "renew b", s.read("b", "k-3"))
	s.step(1120*time.Millisecond, "", s.ack("b"))
	s.step(2100*time.Millisecond, "read b")
	s.step(2110*time.Millisecond, "renew b", s.read("b", "k-3"))
	s.step(2120*time.Millisecond, "", s.ack("b"))
	s.step(3100*time.Millisecond, "read b")
	s.step(3110*time.Millisecond, "renew b", s.read("b", "k-3"))
	s.step(3120*time.Millisecond, "", s.ack("b"))
	s.step(3300*time.Millisecond, "read b")
	s.step(3310*time.Millisecond, "grant b t,u", s.read("b", "k-3"))
	if len(s.k.nodes) != 1 {
		t.Error("it is kept")
	}
	s.step(3320*time.Millisecond, "read a", AddNode{NodeInfo{Name: "a", Passive: true}})
	if v, ok := s.k.View("a", began); !ok || !v.Passive {
		t.Errorf("%+v", v)
	}
}

func TestANodeThatAnswersNothingForTenLeasesIsGone(t *testing.T) {
	s := granted(t)
	var gone []string
	for at := second; at <= 31*second; at += 500 * time.Millisecond {
		for _, a := range s.k.Step(began + at) {
			if g, ok := a.(Gone); ok {
				gone = append(gone, fmt.Sprint(g.Node, at.Round(second)))
			}
		}
	}
	if !slices.Equal(gone, []string{"a31s", "b31s"}) && !slices.Equal(gone, []string{"a30s", "b30s"}) {
		t.Errorf("got %v", gone)
	}
}

func TestAGrantByHandIsCounted(t *testing.T) {
	s := newScript(t, nil)
	s.step(0, "read a; read b")
	s.step(1, "grant a t", Answered{"a", s.last["a"], Status{Leased: true, Granted: true, Epoch: "by hand", Left: 10 * second, At: "1"}})
	var at time.Duration
	for at = second; at < 20*second; at += 100 * time.Millisecond {
		if slices.ContainsFunc(s.k.Step(began+at), func(a Action) bool { return a == Lapsed{"a"} }) {
			break
		}
	}
	if at != 11*second+100*time.Millisecond {
		t.Errorf("it has lapsed at %s, want 11s", at)
	}
}

func TestAConfigurationIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		ok     bool
	}{
		"the shortest":          {Config{Length: 200 * time.Millisecond, Name: "k"}, true},
		"the longest":           {Config{Length: time.Hour, Name: "k", Recorded: time.Hour}, true},
		"too short":             {Config{Length: 199 * time.Millisecond, Name: "k"}, false},
		"too long":              {Config{Length: time.Hour + time.Millisecond, Name: "k"}, false},
		"parts of milliseconds": {Config{Length: second + 1, Name: "k"}, false},
		"no name":               {Config{Length: second}, false},
		"a name too long":       {Config{Length: second, Name: strings.Repeat("k", 120)}, false},
		"a record too long":     {Config{Length: second, Name: "k", Recorded: 2 * time.Hour}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewKeeper(c.config, began); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
