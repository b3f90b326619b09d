package query

import (
	"context"
	"unsafe"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/index"
)

// DefaultMemory is how many bytes a statement may hold if its Account sets no limit.
const DefaultMemory = 512 << 20

const (
	// Uncounted is how many bytes a statement may hold before it takes from the budget: small ones share no lock.
	Uncounted = 64 << 10
	// takenAtOnce is what an Account takes from its Budget at a time, in bytes.
	takenAtOnce = 64 << 10
	// TokenBytes is about how many bytes the tree of a statement and its plan take for each token of its text.
	TokenBytes = 128
)

// Budget is what a request holds of the memory that statements share, also those of different databases.
type Budget interface {
	// Take takes n bytes more for the statement's request, and reports whether there was room.
	Take(n int64) bool
	// Give gives bytes back.
	Give(n int64)
}

// Account counts what one statement holds while it runs, or the statements of one batch together: their trees, what they
// sort, group, gather and compare with, and their answers. Everything that may grow with the data or the statement is
// counted here and nowhere else. It is used by one goroutine at a time; the zero value has the default limit and no budget.
type Account struct {
	Most       int64  // bytes that may be held, with those of Beside; 0 means DefaultMemory
	MostAnswer int    // the most bytes of the next answer, past which it fails with ErrLongAnswer; 0 means no limit but Most
	Budget     Budget // nil if nothing is shared
	Beside     int64  // bytes that the same request holds besides

	held   int64
	taken  int64 // from the budget
	lacked int64 // what was to be held when the budget last had no room
}

// Accounted is a context with an account. What runs under it is counted there.
type Accounted struct {
	context.Context
	Account *Account
}

// accountKey is the key of a context under which it holds its Account.
type accountKey struct{}

// Value implements context.Context.
func (c *Accounted) Value(key any) any {
	if key == (accountKey{}) {
		return c.Account
	}
	return c.Context.Value(key)
}

// AccountOf returns the account of a context, or nil if it has none.
func AccountOf(ctx context.Context) *Account {
	if ctx == nil {
		return nil
	}
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Hold counts n bytes more, or fewer if n is negative. If that is too much it counts them anyway and fails with kind
// TooLarge, or Busy if the budget has no room now. The caller then stops the statement.
func (a *Account) Hold(n int64, doing string) error {
	switch a.hold(n) {
	case fail.TooLarge:
		return a.tooLarge(doing)
	case fail.Busy:
		return a.busy(doing)
	}
	return nil
}

// hold is Hold that returns the kind of the error, or 0.
func (a *Account) hold(n int64) fail.Kind {
	a.held += n
	switch {
	case n <= 0:
	case a.held+a.Beside > a.most():
		return fail.TooLarge
	case a.Budget != nil && a.held > max(Uncounted, a.taken):
		more := (a.held - a.taken + takenAtOnce - 1) / takenAtOnce * takenAtOnce
		if !a.Budget.Take(more) {
			a.lacked = a.held
			return fail.Busy
		}
		a.taken += more
	}
	return 0
}

// longAnswer reports whether an answer is longer than the next one may be.
func (a *Account) longAnswer(answer []byte) bool {
	return a.MostAnswer > 0 && len(answer) > a.MostAnswer
}

func (a *Account) most() int64 {
	if a.Most > 0 {
		return a.Most
	}
	return DefaultMemory
}

func (a *Account) tooLarge(doing string) error {
	return fail.New(fail.TooLarge, "the statement needs more than the %d MiB of memory that one may hold: it was %s; ask for less at a time", a.most()>>20, doing)
}

func (a *Account) busy(doing string) error {
	return fail.New(fail.Busy, "the memory for statements and their answers is in use, send the request again: the statement was %s", doing)
}

// Held returns how many bytes are counted, 0 for a nil Account.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	return a.held
}

// Return sets the count back to held, after everything held since then has been released. a may be nil.
func (a *Account) Return(held int64) {
	if a != nil {
		a.held = held
	}
}

// Lacked returns how many bytes were to be held when the budget last had no room.
func (a *Account) Lacked() int64 { return a.lacked }

// Grant records n bytes that were taken from the budget for the statement before it runs.
func (a *Account) Grant(n int64) { a.taken += n }

// Settle ends the counting. Up to keep bytes stay taken from the budget; it returns how many, and the caller has to give
// them back. The rest is given back now.
func (a *Account) Settle(keep int64) int64 {
	keep = min(keep, a.taken)
	if a.Budget != nil && a.taken > keep {
		a.Budget.Give(a.taken - keep)
	}
	a.held, a.taken, a.lacked = 0, 0, 0
	return keep
}

// bytesOf returns the bytes of a slice's array.
func bytesOf[T any](s []T) int64 {
	var one T
	return int64(cap(s)) * int64(unsafe.Sizeof(one))
}

// fits counts again what the run holds. It returns false and sets the run's error if that is too much.
func (f *frame) fits() bool {
	if f.err != nil {
		return false
	}
	if f.account == nil { // a constant is being computed during planning
		f.account = &f.own
	}
	now := f.memory()
	more := now - f.counted
	f.counted = now
	if kind := f.account.hold(more); kind == fail.TooLarge {
		f.err = f.account.tooLarge(f.does())
	} else if kind == fail.Busy {
		f.err = f.account.busy(f.does())
	}
	f.outRoof, f.arenaRoof = max(cap(f.out), Uncounted), max(cap(f.arena), Uncounted)
	if f.err == nil && f.account.longAnswer(f.out) {
		f.err = ErrLongAnswer
	}
	return f.err == nil
}

// memory returns what a run holds: the capacity of all buffers that may be large.
func (f *frame) memory() int64 {
	n := f.extra + bytesOf(f.out) + bytesOf(f.arena) + bytesOf(f.fold) + f.pattern.bytes() + bytesOf(f.record) + bytesOf(f.picked)
	n += bytesOf(f.walk.ids) + bytesOf(f.walk.docs) + f.sorter.bytes() + f.search.bytes()
	for i := range f.operands {
		n += f.operands[i].bytes()
	}
	for i := range f.levels {
		n += f.levels[i].sorter.bytes()
	}
	if f.group.making != nil {
		n += f.group.making.bytes()
	}
	return n
}

// reserve counts n bytes that a run is about to hold outside its buffers. It returns false if that is too much.
func (f *frame) reserve(n int64) bool {
	f.extra += n
	return f.fits()
}

// outFits is fits if the answer has outgrown what was counted of it.
func (f *frame) outFits() bool { return len(f.out) <= f.outRoof || f.fits() }

// arenaFits is fits if the values of expressions have outgrown what was counted of them.
func (f *frame) arenaFits() bool { return len(f.arena) <= f.arenaRoof || f.fits() }

// fewItems is how many items a list may have before its growth is counted.
const fewItems = 1024

// filled reports whether the next item makes a long list grow, so that it has to be counted again.
func filled[T any](s []T) bool { return len(s) == cap(s) && len(s) >= fewItems }

func (o *operand) bytes() int64 {
	return bytesOf(o.values) + bytesOf(o.ints) + bytesOf(o.key) + o.pattern.bytes()
}

func (p *pattern) bytes() int64 { return bytesOf(p.folded) + bytesOf(p.ends) }

func (s *searchRun) bytes() int64 {
	r := &s.filter.members
	return bytesOf(s.hits) + bytesOf(s.other) + bytesOf(s.byID) + bytesOf(s.floats) + bytesOf(r.bits) + bytesOf(r.sorted)
}

func (s *sorter) bytes() int64 { return bytesOf(s.docs) + bytesOf(s.texts) + bytesOf(s.entries) }

const (
	hitBytes  = int64(unsafe.Sizeof(index.Hit{}))
	cellBytes = int64(unsafe.Sizeof(doc.Value{}))
	rowBytes  = int64(unsafe.Sizeof([]doc.Value{}))
)
