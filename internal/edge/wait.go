package edge

import (
	"errors"
	"strconv"
	"time"
)

const (
	// AfterWait is how long a read waits for the position in Fenec-After if it has no Fenec-Wait.
	AfterWait = 5 * time.Second
	// MaxWait bounds how long a request is held; longer waits are shortened to it.
	MaxWait = 30 * time.Second
)

// ParseWait parses how long a request asks to be held: milliseconds, or a duration such as 5s, shortened to MaxWait. ok is
// false for any other text.
func ParseWait(text []byte) (wait time.Duration, ok bool) {
	if len(text) == 0 { // as in most requests; the errors of strconv allocate
		return 0, false
	}
	ms, err := strconv.ParseUint(string(text), 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(ms, uint64(MaxWait.Milliseconds()))) * time.Millisecond, true
	}
	wait, err = time.ParseDuration(string(text))
	if err != nil || wait < 0 {
		return 0, false
	}
	return min(wait, MaxWait), true
}
