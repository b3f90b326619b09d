package doc

import (
	"math"
	"strconv"
	"time"
)

// MaxSpan is the longest that a row may live past its time.
const MaxSpan = 36500 * 24 * time.Hour

// spanUnits are the units of a span, the largest first.
var spanUnits = [...]struct {
	unit byte
	span time.Duration
}{{'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// ParseSpan reads a span as the language writes it: a whole number and a unit, s, m, h or d, in either case. ok is
// false for anything else. A span longer than MaxSpan is returned as some span longer than MaxSpan.
func ParseSpan(text string) (span time.Duration, ok bool) {
	last := len(text) - 1
	if last < 1 || text[0] == '+' || text[0] == '-' {
		return 0, false
	}
	for _, u := range spanUnits {
		if text[last]|0x20 != u.unit {
			continue
		}
		n, err := strconv.ParseUint(text[:last], 10, 64)
		if n > uint64(math.MaxInt64/u.span) { // ParseUint returns the largest uint64 for a number past 64 bits
			return math.MaxInt64, true
		}
		return time.Duration(n) * u.span, err == nil
	}
	return 0, false
}

// FormatSpan returns a span of whole seconds in the largest unit that divides it.
func FormatSpan(span time.Duration) string {
	for _, u := range spanUnits {
		if span%u.span == 0 {
			return strconv.FormatInt(int64(span/u.span), 10) + string(u.unit)
		}
	}
	return span.String()
}

// TTL returns the field that defines when a row expires, nil if there is none.
func (s *Schema) TTL() *Field {
	for i := range s.Fields {
		if s.Fields[i].Index.Kind == IndexTTL {
			return &s.Fields[i]
		}
	}
	return nil
}

// Deadline returns the latest time of a row that is expired at now, both in epoch milliseconds; f is the ttl field of
// the row's collection.
func (f *Field) Deadline(now int64) int64 {
	if span := f.Index.Span.Milliseconds(); now >= math.MinInt64+span {
		return now - span
	}
	return math.MinInt64
}

// Gone reports whether the time of d plus the span is over at now, in epoch milliseconds. A document without a time
// does not expire.
func (f *Field) Gone(d Document, now int64) bool {
	at, ok := d.Field(f.Slot).Timestamp()
	return ok && at <= f.Deadline(now)
}
