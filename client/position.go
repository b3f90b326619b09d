package client

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Position identifies a change of a tenant by its number and its history. The zero value is before all changes. As
// text, and in JSON, it is 17@1-9f86d081884c7d659a2feaa0c55ad015.
type Position struct {
	Seq     uint64
	History string // <term>-<id>; empty if unknown
}

// String returns the text form, which ParsePosition parses.
func (p Position) String() string {
	if p.History == "" {
		return strconv.FormatUint(p.Seq, 10)
	}
	return strconv.FormatUint(p.Seq, 10) + "@" + p.History
}

// ParsePosition parses the text form of a position.
func ParsePosition(text string) (Position, error) {
	number, history, _ := strings.Cut(text, "@")
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil || number[0] == '+' || strings.ContainsFunc(history, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Position{}, fmt.Errorf("position: expected text such as 17@1-9f86d081884c7d659a2feaa0c55ad015, got %q", text)
	}
	return Position{seq, history}, nil
}

// MarshalText returns the text form.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses the text form.
func (p *Position) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePosition(string(text))
	return err
}

// positionOf returns the position in the headers of a response; ok reports whether there is one.
func positionOf(h http.Header) (p Position, ok bool) {
	seq, err := strconv.ParseUint(h.Get("Fenec-Seq"), 10, 63)
	return Position{seq, h.Get("Fenec-History")}, err == nil
}

// term returns how often the history's file has forked.
func (p Position) term() uint64 {
	text, _, _ := strings.Cut(p.History, "-")
	n, _ := strconv.ParseUint(text, 10, 64) // 0 for an invalid history
	return n
}

// lineage returns the part that all histories of one tenant share.
func (p Position) lineage() string {
	_, id, _ := strings.Cut(p.History, "-")
	return id[:min(16, len(id))]
}

// memory is the latest position known to the clients that share it. Responses may arrive out of order, so within a
// history the higher number wins, and within a lineage the later fork. Another lineage is a tenant that was created
// again.
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
