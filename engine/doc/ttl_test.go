package doc

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"fenec/engine/fail"

	"github.com/google/go-cmp/cmp"
)

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "90S": 90 * time.Second, "007h": 7 * time.Hour, "36500d": MaxSpan, "0s": 0,
		"9223372036855s": math.MaxInt64, "99999999999999999999d": math.MaxInt64,
	} {
		if got, ok := ParseSpan(text); got != want || !ok {
			t.Errorf("%s: got %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "m", "30", "30w", "+3m", "-3m", "1.5h", "3 m", "1_0m", "3mm", "0x3d", "３m"} {
		if got, ok := ParseSpan(text); ok {
			t.Errorf("%q is no span, got %v", text, got)
		}
	}
	for span, want := range map[time.Duration]string{
		time.Second: "1s", time.Minute: "1m", 90 * time.Second: "90s", 60 * time.Minute: "1h", 24 * time.Hour: "1d", 25 * time.Hour: "25h", MaxSpan: "36500d",
	} {
		if got := FormatSpan(span); got != want {
			t.Errorf("%v: got %s, want %s", span, got, want)
		}
	}
}

func TestARowIsGoneTheMillisecondItsTimeIsOver(t *testing.T) {
	ttl := &Field{Name: "at", Type: Type{Kind: TypeTimestamp}, Index: Index{Kind: IndexTTL, Span: 2 * time.Second}, Slot: 1}
	document := func(at Value) Document {
		var b Builder
		b.Reset(2)
		if err := b.Set(1, ttl.Type, at, "at"); err != nil {
			t.Fatal(err)
		}
		return b.AppendTo(nil, 1)
	}
	for _, x := range []struct {
		at, now int64
		gone    bool
	}{
		{5000, 6999, false},
		{5000, 7000, true},
		{-1, 1998, false},
		{-1, 1999, true},
		{math.MaxInt64, math.MaxInt64, false},
		{math.MaxInt64 - 2000, math.MaxInt64, true},
		{math.MinInt64, math.MinInt64 + 2000, true},
	} {
		if got := ttl.Gone(document(TimestampValue(x.at)), x.now); got != x.gone {
			t.Errorf("a row of %d is gone at %d: %v", x.at, x.now, got)
		}
	}
	if ttl.Gone(document(Value{}), math.MaxInt64) {
		t.Error("a row without a time is gone")
	}
}

// ttlHex is a schema with a ttl as stored in files.
const ttlHex = "02" + "0163" + "02" + "02" + "016e" + "02000000" + "00" + "026174" + "06000104" + "01" + "8801" + "00"

func TestASchemaWithATTLKeepsItsFormat(t *testing.T) {
	s := &Schema{Name: "c", Slots: 2, Fields: []Field{
		{Name: "n", Type: Type{Kind: TypeInt}},
		{Name: "at", Type: Type{Kind: TypeTimestamp}, Required: true, Index: Index{Kind: IndexTTL, Span: 136 * time.Second}, Slot: 1},
	}}
	if got := hex.EncodeToString(s.AppendBinary(nil)); got != ttlHex {
		t.Fatalf("encoded as\n%s, want\n%s", got, ttlHex)
	}
	b := s.AppendBinary(nil)
	got, err := DecodeSchema(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Error(diff)
	}
	refused := func(name string, s *Schema) {
		if _, err := DecodeSchema(s.AppendBinary(nil)); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: got %v, want a damaged schema", name, err)
		}
	}
	change := func(f func(s *Schema)) *Schema {
		c := s.Clone()
		f(c)
		return c
	}
	refused("a ttl of nothing", change(func(s *Schema) { s.Fields[1].Index.Span = 0 }))
	refused("too long a ttl", change(func(s *Schema) { s.Fields[1].Index.Span = MaxSpan + time.Second }))
	refused("a ttl on an int", change(func(s *Schema) { s.Fields[0].Index = Index{Kind: IndexTTL, Span: time.Second} }))
	refused("two ttls", change(func(s *Schema) {
		s.Fields = append(s.Fields, s.Fields[1])
	}))
	refused("a ttl on a path", change(func(s *Schema) { s.Paths = []PathIndex{{"n.k", IndexTTL}} }))
	refused("an unknown index", change(func(s *Schema) { s.Fields[0].Index.Kind = IndexInverted + 1 }))
	b[0] = 1
	if _, err := DecodeSchema(b); fail.KindOf(err) != fail.Damaged {
		t.Errorf("a ttl in a schema of the first version: %v", err)
	}
}
