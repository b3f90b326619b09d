package doc

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimestampSpellings(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"the canonical form", "2024-05-01T10:20:30Z", "2024-05-01T10:20:30Z"},
		{"milliseconds", "2024-05-01T10:20:30.125Z", "2024-05-01T10:20:30.125Z"},
		{"a tenth of a second", "2024-05-01T10:20:30.1Z", "2024-05-01T10:20:30.100Z"},
		{"nanoseconds are cut", "2024-05-01T10:20:30.999999999Z", "2024-05-01T10:20:30.999Z"},
		{"more digits are cut", "2024-05-01T10:20:30.1239999999999Z", "2024-05-01T10:20:30.123Z"},
		{"a comma for the fraction", "2024-05-01T10:20:30,5Z", "2024-05-01T10:20:30.500Z"},
		{"no zone is UTC", "2024-05-01T10:20:30", "2024-05-01T10:20:30Z"},
		{"a space between", "2024-05-01 10:20:30+02", "2024-05-01T08:20:30Z"},
		{"small letters", "2024-05-01t10:20:30z", "2024-05-01T10:20:30Z"},
		{"ahead of UTC", "2024-05-01T01:20:30+02:00", "2024-04-30T23:20:30Z"},
		{"behind UTC", "2023-12-31T23:20:30-0330", "2024-01-01T02:50:30Z"},
		{"a date alone", "2024-02-29", "2024-02-29T00:00:00Z"},
		{"a month alone", "2024-02", "2024-02-01T00:00:00Z"},
		{"no seconds", "2024-05-01T10:20Z", "2024-05-01T10:20:00Z"},
		{"no minutes", "2024-05-01T10Z", "2024-05-01T10:00:00Z"},
		{"half an hour as a fraction", "2024-05-01T10.5Z", "2024-05-01T10:30:00Z"},
		{"half a minute as a fraction", "2024-05-01T10:20.5Z", "2024-05-01T10:20:30Z"},
		{"the basic form", "20240501T102030Z", "2024-05-01T10:20:30Z"},
		{"a basic date alone", "20240501", "2024-05-01T00:00:00Z"},
		{"the day's end", "2024-05-01T24:00:00Z", "2024-05-02T00:00:00Z"},
		{"a leap second", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
		{"the year 0", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"a year before 0", "-000001-12-31", "-000001-12-31T00:00:00Z"},
		{"a year past 9999", "+012345-01-01T00:00:00Z", "+012345-01-01T00:00:00Z"},
		{"the first there is", "-292275055-05-16T16:47:04.192Z", "-292275055-05-16T16:47:04.192Z"},
		{"the last there is", "+292278994-08-17T07:12:55.807Z", "+292278994-08-17T07:12:55.807Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ms, ok := ParseTimestamp([]byte(tc.in))
			if !ok {
				t.Fatal("was refused")
			}
			if got := string(AppendTimestamp(nil, ms)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatIsNoTimestampIsRefused(t *testing.T) {
	for _, s := range []string{
		"", "2024", "24-05-01", "2024-5-1", "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29", "1900-02-29", "2024-04-31", "2024-05-00",
		"2024-05-01T", "2024-05-01T25:00Z", "2024-05-01T24:00:01Z", "2024-05-01T24:00:00.001Z", "2024-05-01T10:60Z", "2024-05-01T10:20:61Z",
		"2024-05-01T10:20:30.Z", "2024-05-01T10:2Z", "2024-05-01T10:20:Z", "2024-05-01T10:20:30ZZ", "2024-05-01T10:20:30+", "2024-05-01T10:20:30+2",
		"2024-05-01T10:20:30+24:00", "2024-05-01T10:20:30+02:60", "2024-05-01T10:20:30+02:", "2024-05-01T10:20:30 UTC", "2024-05-01Z", "2024-05-01x10:20",
		"202405", "2024-0501", "+2024-05-01", "-2024-05-01", "+1234567890-01-01", "+292278995-01-01", "-292275056-01-01", "+292278994-08-17T07:12:55.808Z",
		"-292275055-05-16T16:47:04.191Z", " 2024-05-01", "2024-05-01 ", "１２３４-05-01", "tomorrow",
	} {
		if ms, ok := ParseTimestamp([]byte(s)); ok {
			t.Errorf("%q was read as %s", s, AppendTimestamp(nil, ms))
		}
	}
}

func TestTimestampsRoundTripAndAgreeWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.OneOf(
			rapid.Int64(),
			rapid.Int64Range(-62167219200000, 253402300799999),
			rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0, -1, msPerDay, -msPerDay}),
		).Draw(t, "ms")
		text := AppendTimestamp(nil, ms)
		if back, ok := ParseTimestamp(text); !ok || back != ms {
			t.Fatalf("%s reads back as %d %t", text, back, ok)
		}
		if at := time.UnixMilli(ms).UTC(); at.Year() >= 0 && at.Year() <= 9999 && ms > -1e15 && ms < 1e15 {
			layout := "2006-01-02T15:04:05Z"
			if ms%1000 != 0 {
				layout = "2006-01-02T15:04:05.000Z"
			}
			if want := at.Format(layout); string(text) != want {
				t.Fatalf("got %s, want %s", text, want)
			}
			zone := time.FixedZone("", 60*rapid.IntRange(-1439, 1439).Draw(t, "minutes"))
			local := at.In(zone)
			if y := local.Year(); y < 0 || y > 9999 {
				return
			}
			for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.000-0700", "20060102T150405.000Z07:00"} {
				s := local.Format(layout)
				if back, ok := ParseTimestamp([]byte(s)); !ok || back != ms {
					t.Fatalf("%s reads as %s %t, want %s", s, AppendTimestamp(nil, back), ok, text)
				}
			}
		}
	})
}

func FuzzParseTimestamp(f *testing.F) {
	for _, s := range []string{"2024-05-01T10:20:30.125+02:00", "20240501T102030Z", "+292278994-08-17T07:12:55.807Z", "2024-05", "2024-05-01 10,5-03"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ms, ok := ParseTimestamp(text)
		if !ok {
			return
		}
		written := AppendTimestamp(nil, ms)
		if back, ok := ParseTimestamp(written); !ok || back != ms {
			t.Fatalf("%q reads as %d, is written %s and reads back as %d", text, ms, written, back)
		}
		if want, err := time.Parse(time.RFC3339Nano, string(text)); err == nil && want.UnixMilli() != ms {
			t.Fatalf("%q reads as %s, the library has %s", text, written, want)
		}
	})
}
