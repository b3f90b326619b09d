package lease

import (
	"strconv"
	"strings"
	"time"
)

// stamps makes and reads the stamps of one process of a node. A stamp names an instant of the process: its text is opaque to
// all others. Each is later than those before it, so a grant under one overtakes all grants under the earlier ones.
type stamps struct {
	process string
	last    time.Duration
}

func (s *stamps) make(now time.Duration) (time.Duration, string) {
	s.last = max(now, s.last+1)
	return s.last, s.process + "." + strconv.FormatInt(int64(s.last), 36)
}

// read returns the instant of a stamp of this process.
func (s *stamps) read(text string) (time.Duration, bool) {
	process, counter, _ := strings.Cut(text, ".")
	at, err := strconv.ParseInt(counter, 36, 64)
	if process != s.process || err != nil || at < 0 || time.Duration(at) > s.last {
		return 0, false
	}
	return time.Duration(at), true
}
