package syntax

import (
	"strings"

	"fenec/engine/doc"
)

// clause is one of the clauses that follow a collection, as a bit of a set.
type clause uint16

const (
	clauseSelect clause = 1 << iota
	clauseWhere
	clauseOrder
	clauseLimit
	clauseOffset
	clauseCount
	clauseReturning
	clauseRequire
	clauseLater // all that a later version brings

	getClauses    = clauseSelect | clauseWhere | clauseOrder | clauseLimit | clauseOffset | clauseCount | clauseLater
	changeClauses = clauseWhere | clauseOrder | clauseLimit | clauseReturning | clauseRequire

	// A count is a row of its own, not a page of rows.
	clausesOfRows = clauseSelect | clauseOrder | clauseLimit | clauseOffset
)

var clauseWords = [...]struct {
	word string
	bit  clause
}{
	{"select", clauseSelect},
	{"where", clauseWhere},
	{"order", clauseOrder},
	{"limit", clauseLimit},
	{"offset", clauseOffset},
	{"count", clauseCount},
	{"returning", clauseReturning},
	{"require", clauseRequire},
	{"near", clauseLater},
	{"match", clauseLater},
	{"rerank", clauseLater},
	{"fuse", clauseLater},
	{"lookup", clauseLater},
	{"group", clauseLater},
	{"having", clauseLater},
}

// clauses is what was read behind a collection's name.
type clauses struct {
	given     clause
	more      string // what could go on in the last one
	selected  []SelectItem
	where     Expr
	order     []OrderKey
	limit     Expr
	offset    Expr
	count     bool
	returning *Returning
	require   Expr
}

// clauses reads those of the allowed clauses that follow, in any order, into c. ends says what
// else could have followed.
func (p *parser) clauses(c *clauses, allowed clause) (ends string, err error) {
	for {
		word, bit := p.clauseHere(allowed)
		if bit == 0 {
			return c.more + c.leftOf(allowed) + theEnd, nil
		}
		at := p.tok.pos
		if bit == clauseLater {
			return "", p.later(at, word)
		}
		if c.given&bit != 0 {
			return "", p.invalid(at, "%s is given twice", word)
		}
		c.given |= bit
		if c.given&clauseCount != 0 && c.given&clausesOfRows != 0 {
			return "", p.invalid(at, "count takes where alone; select, order, limit and offset are for rows")
		}
		p.advance()
		if err := p.clause(c, bit); err != nil {
			return "", err
		}
	}
}

// clauseHere is the allowed clause whose word is the current token.
func (p *parser) clauseHere(allowed clause) (string, clause) {
	if p.tok.kind != kindName {
		return "", 0
	}
	for i := range clauseWords {
		if w := &clauseWords[i]; w.bit&allowed != 0 && p.tok.is(w.word) {
			return w.word, w.bit
		}
	}
	return "", 0
}

// leftOf lists the clauses that may still follow, for the sentence that refuses what did.
func (c *clauses) leftOf(allowed clause) string {
	out := ""
	for _, w := range clauseWords {
		rows := w.bit == clauseCount && c.given&clausesOfRows != 0 || w.bit&clausesOfRows != 0 && c.count
		if w.bit&allowed != 0 && c.given&w.bit == 0 && w.bit != clauseLater && !rows {
			out += w.word + ", "
		}
	}
	if out == "" {
		return ""
	}
	return out[:len(out)-2] + " or "
}

// clause reads what follows the word of a clause.
func (p *parser) clause(c *clauses, bit clause) (err error) {
	c.more = ""
	switch bit {
	case clauseSelect:
		c.selected, err = p.selectItems()
		c.more = moreItems(c.selected)
	case clauseWhere:
		c.where, err = p.expression("a condition behind where")
		c.more = "an operator, "
	case clauseOrder:
		c.order, err = p.orderKeys()
		c.more = "asc, desc, a comma, "
	case clauseLimit:
		c.limit, err = p.bound("limit")
	case clauseOffset:
		c.offset, err = p.bound("offset")
	case clauseCount:
		if p.tok.kind == '(' {
			return p.unexpected("the clause count alone; as a column it is select count(*)")
		}
		c.count = true
	case clauseReturning:
		c.returning = &Returning{}
		c.returning.Items, err = p.selectItems()
		c.more = moreItems(c.returning.Items)
	case clauseRequire:
		c.require, err = p.bound("require")
	}
	return err
}

// moreItems says how a list of items could go on.
func moreItems(items []SelectItem) string {
	if items == nil {
		return ""
	}
	return "as, an operator, a comma, "
}

// fromWanted is what is wanted behind the items of a leading select.
func fromWanted(items []SelectItem) string {
	if items == nil {
		return "from"
	}
	return "as, an operator, a comma or from"
}

// get reads `C clauses`, or with selectFirst the whole of `select items from C clauses`.
func (p *parser) get(selectFirst bool) (Statement, string, error) {
	st := &Get{}
	var c clauses
	var err error
	if selectFirst {
		p.advance()
		c.given = clauseSelect
		if c.selected, err = p.selectItems(); err != nil {
			return nil, "", err
		}
		if err = p.wantWord("from", fromWanted(c.selected)); err != nil {
			return nil, "", err
		}
	}
	if st.Collection, err = p.collection(); err != nil {
		return nil, "", err
	}
	ends, err := p.clauses(&c, getClauses)
	if err != nil {
		return nil, "", err
	}
	st.Select, st.Where, st.Order = c.selected, c.where, c.order
	st.Limit, st.Offset, st.Count = c.limit, c.offset, c.count
	return st, ends, nil
}

// set reads `C {...} clauses`.
func (p *parser) set() (Statement, string, error) {
	st := &Set{}
	var c clauses
	var err error
	if st.Collection, err = p.collection(); err != nil {
		return nil, "", err
	}
	if p.tok.kind != '{' {
		return nil, "", p.unexpected("{ and the fields to set")
	}
	at := p.tok.pos
	if st.Items, err = p.items(); err != nil {
		return nil, "", err
	}
	if len(st.Items) == 0 {
		return nil, "", p.invalid(at, "set wants a field to set, found {}")
	}
	ends, err := p.clauses(&c, changeClauses)
	if err != nil {
		return nil, "", err
	}
	st.Where, st.Order, st.Limit, st.Returning, st.Require = c.where, c.order, c.limit, c.returning, c.require
	return st, ends, nil
}

// del reads `C clauses`.
func (p *parser) del() (Statement, string, error) {
	st := &Delete{}
	var c clauses
	var err error
	if st.Collection, err = p.collection(); err != nil {
		return nil, "", err
	}
	ends, err := p.clauses(&c, changeClauses)
	if err != nil {
		return nil, "", err
	}
	st.Where, st.Order, st.Limit, st.Returning, st.Require = c.where, c.order, c.limit, c.returning, c.require
	return st, ends, nil
}

// selectItems reads `*`, which is nil, or a list of items no two of which have one key.
func (p *parser) selectItems() ([]SelectItem, error) {
	if p.tok.kind == '*' {
		p.advance()
		if p.tok.kind == ',' {
			return nil, p.invalid(p.tok.pos, "* is all fields and stands alone")
		}
		return nil, nil
	}
	var out []SelectItem
	for {
		item, err := p.selectItem()
		if err != nil {
			return nil, err
		}
		for i := range out {
			if out[i].As == item.As {
				return nil, p.invalid(item.Pos, "%s is selected twice; name one with as", shorten(item.As))
			}
		}
		out = append(out, item)
		if len(out) > maxSelected {
			return nil, p.invalid(item.Pos, "at most %d items are selected", maxSelected)
		}
		if !p.takeKind(',') {
			return out, nil
		}
	}
}

// maxSelected bounds a select list, each of whose keys is compared with all others.
const maxSelected = 1024

// aggregates are the functions over rows.
var aggregates = [...]string{"count", "sum", "avg", "min", "max"}

// selectItem reads `expression [as name]`.
func (p *parser) selectItem() (SelectItem, error) {
	item := SelectItem{Pos: p.tok.pos}
	if p.tok.kind == '*' {
		return item, p.invalid(p.tok.pos, "* is all fields and stands alone")
	}
	if p.peek().kind == '(' && p.tok.anyOf(aggregates[:]...) {
		return item, p.later(p.tok.pos, "the aggregate "+strings.ToLower(p.tok.text))
	}
	var err error
	if item.Expr, err = p.expression("a field, path or expression"); err != nil {
		return item, err
	}
	if !p.take("as") {
		item.As = outputKey(item.Expr)
		return item, nil
	}
	switch p.tok.kind {
	case kindName:
		item.As = p.tok.text
		p.advance()
		return item, nil
	case kindText:
		item.As = string(p.text().B)
		return item, nil
	}
	return item, p.unexpected("a name behind as")
}

// orderKeys reads `[by] path [asc|desc], ...`.
func (p *parser) orderKeys() ([]OrderKey, error) {
	// `by` before a name is SQL's word; before anything else it is a field.
	if p.tok.is("by") && p.peek().kind == kindName {
		p.advance()
	}
	var out []OrderKey
	for {
		path, err := p.path("a field or path to order by")
		if err != nil {
			return nil, err
		}
		key := OrderKey{Expr: p.paths.one(path)}
		if p.tok.is("collate") {
			return nil, p.later(p.tok.pos, "collate")
		}
		if p.take("desc") {
			key.Desc = true
		} else {
			p.take("asc")
		}
		out = append(out, key)
		if !p.takeKind(',') {
			return out, nil
		}
	}
}

// bound reads the whole number or parameter of a limit, offset or require.
func (p *parser) bound(of string) (Expr, error) {
	switch p.tok.kind {
	case kindParam:
		return p.param()
	case kindInt:
		at := p.tok.pos
		v, err := p.integer(false)
		if err != nil {
			return nil, err
		}
		p.advance()
		return p.literals.one(Literal{Value: doc.Value{Kind: doc.Int, N: uint64(v)}, Pos: at}), nil
	}
	return nil, p.unexpected("a whole number from 0 or a parameter behind " + of)
}
