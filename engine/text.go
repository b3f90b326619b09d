package engine

import (
	"context"
	"slices"
	"strings"

	"fenec/engine/fail"
	"fenec/engine/query"
	"fenec/engine/query/syntax"
)

// MaxLookups is how many levels a chain of lookups has.
const MaxLookups = syntax.MaxLookups

// Writes reports whether text is a statement that writes or compacts. It fails if text cannot be parsed.
func (db *DB) Writes(ctx context.Context, text string) (bool, error) {
	s, err := db.parsed(ctx, text)
	return err == nil && s.writes(), err
}

// Grows reports whether text is a statement that may add to the database: a put, an insert, a set, or one that creates a
// collection or an index. It fails if text cannot be parsed.
func (db *DB) Grows(ctx context.Context, text string) (bool, error) {
	s, err := db.parsed(ctx, text)
	return err == nil && s.grows(), err
}

// parsed returns a statement that is not run now. The account of the context bounds what it takes while it is parsed.
func (db *DB) parsed(ctx context.Context, text string) (*statement, error) {
	account := query.AccountOf(ctx)
	defer account.Return(account.Held())
	return db.statements.parseWithin(text, account)
}

// CheckCondition checks that all of text parses as one condition.
func CheckCondition(text string) error {
	_, err := syntax.ParseCondition(text)
	return err
}

// CheckHaving checks that all of text parses as one condition on groups.
func CheckHaving(text string) error {
	_, err := syntax.ParseHaving(text)
	return err
}

// IsName reports whether FenecQL reads text as a name: a letter or _, then letters, digits, combining marks and _.
func IsName(text string) bool { return syntax.IsName(text) }

// IsPath reports whether text is names joined by dots, at most as many as a path has.
func IsPath(text string) bool {
	for range syntax.MaxPath {
		name, rest, more := strings.Cut(text, ".")
		if !syntax.IsName(name) {
			return false
		}
		if !more {
			return true
		}
		text = rest
	}
	return false
}

// FollowsWrites returns nil if the rows of q change only with writes to the collection that it gets, else why not.
func (q *Query) FollowsWrites() (err error) {
	get, ok := q.statement.tree.(*syntax.Get)
	if !ok {
		return fail.New(fail.Invalid, "a live query is a get")
	}
	syntax.Inspect(get.Where, func(x syntax.Expr) {
		switch x := x.(type) {
		case *syntax.Call:
			if x.Name == "now" {
				err = fail.New(fail.Invalid, "now() does not go with a live query, whose rows change with writes and not with the time")
			}
		case *syntax.InnerGet:
			err = fail.New(fail.Invalid, "a get inside the filter does not go with a live query, whose rows change with writes to %s alone", get.Collection.Text)
		}
	})
	return err
}

// Fields returns the fields that the select and the condition of q read, without the id. whole reports whether q selects
// every field.
func (q *Query) Fields() (fields []string, whole bool) {
	get, ok := q.statement.tree.(*syntax.Get)
	if !ok {
		return nil, true
	}
	note := func(x syntax.Expr) {
		if path, ok := x.(*syntax.Path); ok && path.Parts[0] != "id" && !slices.Contains(fields, path.Parts[0]) {
			fields = append(fields, path.Parts[0])
		}
	}
	for i := range get.Select {
		syntax.Inspect(get.Select[i].Expr, note)
	}
	syntax.Inspect(get.Where, note)
	return fields, get.Select == nil
}
