package query

// truth is the value of a condition: one of SQL's three.
type truth uint8

const (
	no truth = iota
	yes
	unknown
)

// testFunc tests the frame's row.
type testFunc func(f *frame) truth

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// not swaps yes and no and leaves unknown.
func (t truth) not() truth {
	switch t {
	case no:
		return yes
	case yes:
		return no
	}
	return unknown
}

// allOf returns the three-valued `and` of tests: no as soon as one is no.
func allOf(tests []testFunc) testFunc {
	switch len(tests) {
	case 1:
		return tests[0]
	case 2:
		a, b := tests[0], tests[1]
		return func(f *frame) truth {
			x := a(f)
			if x == no {
				return no
			}
			if y := b(f); y != yes {
				return y
			}
			return x
		}
	}
	return func(f *frame) truth {
		all := yes
		for _, t := range tests {
			switch t(f) {
			case no:
				return no
			case unknown:
				all = unknown
			}
		}
		return all
	}
}

// anyOf returns the three-valued `or` of tests: yes as soon as one is yes.
func anyOf(tests []testFunc) testFunc {
	return func(f *frame) truth {
		some := no
		for _, t := range tests {
			switch t(f) {
			case yes:
				return yes
			case unknown:
				some = unknown
			}
		}
		return some
	}
}

// everyOf returns a test that is yes if every test is yes, and stops at the first that is not. A row that
// passes it is one of a statement's rows. It returns nil for no tests.
func everyOf(tests []testFunc) testFunc {
	switch len(tests) {
	case 0:
		return nil
	case 1:
		return tests[0]
	}
	return func(f *frame) truth {
		for _, t := range tests {
			if r := t(f); r != yes {
				return r
			}
		}
		return yes
	}
}

// relation is the set of comparison outcomes that make an operator true: bit 0 for less, bit 1 for
// equal, bit 2 for greater.
type relation uint8

const (
	less    relation = 1
	equal   relation = 2
	greater relation = 4
)

// holds reports whether an outcome of Compare (-1, 0 or 1) is in the set.
func (r relation) holds(outcome int) bool { return r>>uint(outcome+1)&1 == 1 }

// flip returns the relation with its sides exchanged.
func (r relation) flip() relation {
	return r&equal | r&less<<2 | r&greater>>2
}

// equality reports whether the relation is equal or not equal, which is defined for any two values;
// the others need values of one family.
func (r relation) equality() bool { return r == equal || r == less|greater }
