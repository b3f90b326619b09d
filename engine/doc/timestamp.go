package doc

import "strconv"

const (
	msPerSecond = 1000
	msPerMinute = 60 * msPerSecond
	msPerHour   = 60 * msPerMinute
	msPerDay    = 24 * msPerHour
)

// AppendTimestamp appends a point in time, in milliseconds since 1970 UTC, as ISO-8601 text: 2024-05-01T10:00:00Z, with
// milliseconds only if they are not zero. A year outside 0000 to 9999 has a sign and at least six digits.
func AppendTimestamp(dst []byte, ms int64) []byte {
	days, rest := ms/msPerDay, ms%msPerDay
	if rest < 0 {
		days--
		rest += msPerDay
	}
	year, month, day := civil(days)
	switch {
	case year < 0:
		dst = appendYear(append(dst, '-'), -year)
	case year > 9999:
		dst = appendYear(append(dst, '+'), year)
	default:
		dst = append2(append2(dst, int(year/100)), int(year%100))
	}
	dst = append2(append(dst, '-'), month)
	dst = append2(append(dst, '-'), day)
	t := int(rest)
	dst = append2(append(dst, 'T'), t/msPerHour)
	dst = append2(append(dst, ':'), t/msPerMinute%60)
	dst = append2(append(dst, ':'), t/msPerSecond%60)
	if milli := t % msPerSecond; milli != 0 {
		dst = append2(append(dst, '.', byte('0'+milli/100)), milli%100)
	}
	return append(dst, 'Z')
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendYear appends a year with at least six digits.
func appendYear(dst []byte, year int64) []byte {
	for limit := int64(100_000); limit > year && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, year, 10)
}

// civil returns the date of a day counted from 1970-01-01, in the proleptic Gregorian calendar. Internally days are
// counted from the first of March, so that a leap day is the last of its year, in eras of 400 years, which all have 146
// 097 days.
func civil(days int64) (year int64, month, day int) {
	days += 719468 // 1970-01-01 from 0000-03-01
	era := floorDiv(days, 146097)
	d := days - era*146097
	y := (d - d/1460 + d/36524 - d/146096) / 365
	d -= 365*y + y/4 - y/100
	m := (5*d + 2) / 153
	day = int(d-(153*m+2)/5) + 1
	year = y + era*400
	if m < 10 {
		return year, int(m) + 3, day
	}
	return year + 1, int(m) - 9, day
}

// dayOf is the inverse of civil.
func dayOf(year int64, month, day int) int64 {
	m := int64(month) - 3
	if month < 3 {
		m += 12
		year--
	}
	era := floorDiv(year, 400)
	y := year - era*400
	return era*146097 + y*365 + y/4 - y/100 + (153*m+2)/5 + int64(day) - 1 - 719468
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ParseTimestamp reads ISO-8601 text as milliseconds since 1970 UTC. The date is 2024-05-01, 20240501, 2024-05 or, with
// a sign, a year of six to nine digits. A time may follow after T or a space: 10, 10:00, 10:00:30, 100030, with a
// fraction of its last part (truncated to milliseconds); then Z, +02, +02:00, +0200, or nothing for UTC. 24:00 is the
// end of the day and a 60th second is the next minute.
func ParseTimestamp(text []byte) (ms int64, ok bool) {
	s := timeScanner{rest: text}
	day, ok := s.date()
	if !ok {
		return 0, false
	}
	if len(s.rest) == 0 {
		return atDay(day, 0)
	}
	if c := s.rest[0]; c != 'T' && c != 't' && c != ' ' {
		return 0, false
	}
	s.rest = s.rest[1:]
	clock, ok := s.clock()
	if !ok {
		return 0, false
	}
	offset, ok := s.offset()
	if !ok || len(s.rest) > 0 {
		return 0, false
	}
	return atDay(day, clock-offset)
}

// atDay returns the millisecond ms after (or before) the start of a day if an int64 holds it.
func atDay(day, ms int64) (int64, bool) {
	day += floorDiv(ms, msPerDay)
	ms -= floorDiv(ms, msPerDay) * msPerDay
	const first, last = -1<<63/msPerDay - 1, (1<<63 - 1) / msPerDay
	if day < first || day > last {
		return 0, false
	}
	if day < 0 { // towards zero first, so that the product of the first day does not overflow
		day++
		ms -= msPerDay
	}
	product := day * msPerDay
	sum := product + ms
	if product > 0 && ms > 0 && sum < 0 || product < 0 && ms < 0 && sum > 0 {
		return 0, false
	}
	return sum, true
}

type timeScanner struct{ rest []byte }

// number reads exactly width digits.
func (s *timeScanner) number(width int) (n int, ok bool) {
	if len(s.rest) < width {
		return 0, false
	}
	for _, c := range s.rest[:width] {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	s.rest = s.rest[width:]
	return n, true
}

// digits returns the number of digits that come next.
func (s *timeScanner) digits() int {
	n := 0
	for n < len(s.rest) && isDigit(s.rest[n]) {
		n++
	}
	return n
}

func (s *timeScanner) take(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// date reads a date as a day counted from 1970-01-01.
func (s *timeScanner) date() (day int64, ok bool) {
	text := s.rest
	sign, width := int64(1), s.digits()
	switch {
	case width == 4 || width == 8:
		width = 4
	case s.take('+') || s.take('-'):
		if text[0] == '-' {
			sign = -1
		}
		if width = s.digits(); width < 6 || width > 9 {
			return 0, false
		}
	default:
		return 0, false
	}
	y, ok := s.number(width)
	if !ok {
		return 0, false
	}
	year := sign * int64(y)
	extended := s.take('-')
	month, ok := s.number(2)
	if !ok || month < 1 || month > 12 {
		return 0, false
	}
	d := 1
	if !extended || s.take('-') {
		if d, ok = s.number(2); !ok || d < 1 || d > daysIn(year, month) {
			return 0, false
		}
	}
	return dayOf(year, month, d), true
}

func daysIn(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// clock reads a time of day in milliseconds.
func (s *timeScanner) clock() (ms int64, ok bool) {
	var part [3]int // hours, minutes, seconds
	if part[0], ok = s.number(2); !ok {
		return 0, false
	}
	unit := int64(msPerHour)
	extended := len(s.rest) > 0 && s.rest[0] == ':'
	for i := 1; i < len(part); i++ {
		if extended && !s.take(':') || !extended && s.digits() == 0 {
			break
		}
		if part[i], ok = s.number(2); !ok {
			return 0, false
		}
		unit /= 60
	}
	if part[0] > 24 || part[1] > 59 || part[2] > 60 {
		return 0, false
	}
	ms = int64(part[0])*msPerHour + int64(part[1])*msPerMinute + int64(part[2])*msPerSecond
	if s.take('.') || s.take(',') {
		n := s.digits()
		if n == 0 {
			return 0, false
		}
		// Nine digits decide every millisecond of an hour; the rest is cut.
		used := min(n, 9)
		fraction, _ := s.number(used)
		s.rest = s.rest[n-used:]
		ms += int64(fraction) * unit / int64(powersOfTen[used])
	}
	return ms, ms <= msPerDay || part[0] < 24
}

// offset reads the offset from UTC in milliseconds.
func (s *timeScanner) offset() (ms int64, ok bool) {
	if len(s.rest) == 0 || s.take('Z') || s.take('z') {
		return 0, true
	}
	sign := int64(1)
	if s.take('-') {
		sign = -1
	} else if !s.take('+') {
		return 0, false
	}
	hours, ok := s.number(2)
	if !ok {
		return 0, false
	}
	minutes := 0
	if s.take(':') || s.digits() > 0 {
		if minutes, ok = s.number(2); !ok {
			return 0, false
		}
	}
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	return sign * (int64(hours)*msPerHour + int64(minutes)*msPerMinute), true
}
