package query

import (
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/query/syntax"
)

// comparedWithNow is a comparison of a path with the time.
type comparedWithNow struct {
	whole *syntax.Binary
	path  *syntax.Path
	side  syntax.Expr
}

// readsOfTime finds the comparisons with now() in a condition, and whether it has an inner get. Any other use of now() is
// refused.
func readsOfTime(where syntax.Expr) (timed []comparedWithNow, inner bool, err error) {
	fine := map[*syntax.Call]bool{}
	syntax.Inspect(where, func(e syntax.Expr) {
		switch e := e.(type) {
		case *syntax.InnerGet:
			inner = true
		case *syntax.Binary:
			if t, now, ok := withNow(e); ok {
				timed = append(timed, t)
				fine[now] = true
			}
		case *syntax.Call:
			if e.Name == "now" && err == nil && !fine[e] {
				err = errorAt(fail.Invalid, e.Pos, "a statement that waits reads the time only where it compares a field with now(), plus or minus a number")
			}
		}
	})
	if err == nil && inner {
		err = innerTime(where)
	}
	return timed, inner, err
}

// innerTime fails if an inner get reads the time.
func innerTime(where syntax.Expr) (err error) {
	syntax.Inspect(where, func(e syntax.Expr) {
		if get, ok := e.(*syntax.InnerGet); ok && err == nil {
			err = noTime(get, "in an inner get")
		}
	})
	return err
}

// timeElsewhere fails if other clauses that determine how many rows a get has read the time.
func timeElsewhere(get *syntax.Get) error {
	if err := noTime(get.Having, "in having"); err != nil {
		return err
	}
	for i := range get.Lookups {
		if err := noTime(get.Lookups[i].Where, "in a lookup"); err != nil {
			return err
		}
	}
	return nil
}

func noTime(x syntax.Expr, where string) (err error) {
	syntax.Inspect(x, func(e syntax.Expr) {
		if call, ok := e.(*syntax.Call); ok && call.Name == "now" && err == nil {
			err = errorAt(fail.Invalid, call.Pos, "a statement that waits reads no time %s", where)
		}
	})
	return err
}

// withNow reads a comparison of a path with now(), plus or minus a number.
func withNow(e *syntax.Binary) (comparedWithNow, *syntax.Call, bool) {
	if _, ok := relations[e.Op]; !ok {
		return comparedWithNow{}, nil, false
	}
	for _, sides := range [...][2]syntax.Expr{{e.X, e.Y}, {e.Y, e.X}} {
		path, ok := sides[0].(*syntax.Path)
		if !ok {
			continue
		}
		if now := nowAndNumber(sides[1]); now != nil {
			return comparedWithNow{e, path, sides[1]}, now, true
		}
	}
	return comparedWithNow{}, nil, false
}

// nowAndNumber returns the now() of `now()`, `now() + n`, `n + now()` or `now() - n`, and nil for anything else.
func nowAndNumber(e syntax.Expr) *syntax.Call {
	switch e := e.(type) {
	case *syntax.Call:
		if e.Name == "now" {
			return e
		}
	case *syntax.Binary:
		now, number := e.X, e.Y
		if _, ok := now.(*syntax.Call); !ok && e.Op == syntax.Add {
			now, number = number, now
		}
		call, ok := now.(*syntax.Call)
		if ok && call.Name == "now" && (e.Op == syntax.Add || e.Op == syntax.Sub) && isNumber(number) {
			return call
		}
	}
	return nil
}

// isNumber reports whether an expression is a number, or a parameter that may be one.
func isNumber(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Literal:
		return e.Value.Kind == doc.Int
	case *syntax.Unary:
		return e.Op == syntax.Neg && isNumber(e.X)
	case *syntax.Param:
		return true
	}
	return false
}
