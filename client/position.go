package client

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Position is a change of a tenant: its number, and the history that it is of. The zero value is before all changes.
// As text, and so in JSON, it is 17@1-9f86d081884c7d659a2feaa0c55ad015.
type Position struct {
	Seq     uint64
	History string // <term>-<id>; empty where it is not known
}

// String is what ParsePosition reads.
func (p Position) String() string {
	if p.History == "" {
		return strconv.FormatUint(p.Seq, 10)
	}
	return strconv.FormatUint(p.Seq, 10) + "@" + p.History
}

// ParsePosition reads the text of a position.
func ParsePosition(text string) (Position, error) {
	number, history, _ := strings.Cut(text, "@")
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil || number[0] == '+' || strings.ContainsFunc(history, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Position{}, fmt.Errorf("want a position such as 17@1-9f86d081884c7d659a2feaa0c55ad015, got %q", text)
	}
	return Position{seq, history}, nil
}

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is ParsePosition.
func (p *Position) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePosition(string(text))
	return err
}

// positionOf reads the position in the head of an answer; ok tells whether it has one.
func positionOf(h http.Header) (p Position, ok bool) {
	seq, err := strconv.ParseUint(h.Get("Fenec-Seq"), 10, 63)
	return Position{seq, h.Get("Fenec-History")}, err == nil
}

// term is how often a history's file was forked.
func (p Position) term() uint64 {
	text, _, _ := strings.Cut(p.History, "-")
	n, _ := strconv.ParseUint(text, 10, 64) // 0 of what is no history
	return n
}

// lineage is what histories of one file have in common.
func (p Position) lineage() string {
	_, id, _ := strings.Cut(p.History, "-")
	return id[:min(16, len(id))]
}

// memory is the last position that its clients know. Answers may be read in another order than they were given, so of one
// history the higher number counts, and of one lineage the later fork; another lineage is a tenant made anew.
type memory struct {
	mu   sync.Mutex
	last Position
}

func (m *memory) get() Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *memory) learn(p Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p.History == m.last.History && p.Seq <= m.last.Seq:
	case p.lineage() == m.last.lineage() && p.term() < m.last.term():
	default:
		m.last = p
	}
}
