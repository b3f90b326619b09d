package syntax

import (
	"strconv"

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
	clauseGroup
	clauseHaving
	clauseLookup
	clauseRequired // of a lookup
	clauseNear
	clauseMatch
	clauseRerank
	clauseFuse

	searchClauses = clauseNear | clauseMatch | clauseRerank | clauseFuse
	groupClauses  = clauseGroup | clauseHaving
	levelClauses  = clauseSelect | clauseWhere | clauseOrder | clauseLimit | clauseOffset | clauseCount | clauseLookup | clauseRequired
	getClauses    = levelClauses&^clauseRequired | groupClauses | searchClauses | clauseRequire
	changeClauses = clauseWhere | clauseOrder | clauseLimit | clauseReturning | clauseRequire

	// These do not fit a count, which has no rows.
	clausesOfRows = clauseSelect | groupClauses | searchClauses | clauseOrder | clauseLimit | clauseOffset
)

var clauseWords = [...]struct {
	word string
	bit  clause
}{
	{"select", clauseSelect},
	{"where", clauseWhere},
	{"group", clauseGroup},
	{"having", clauseHaving},
	{"near", clauseNear},
	{"match", clauseMatch},
	{"rerank", clauseRerank},
	{"fuse", clauseFuse},
	{"order", clauseOrder},
	{"limit", clauseLimit},
	{"offset", clauseOffset},
	{"count", clauseCount},
	{"returning", clauseReturning},
	{"require", clauseRequire},
	{"required", clauseRequired},
	{"lookup", clauseLookup},
}

// apart are pairs of clauses that exclude each other.
var apart = [...][2]clause{
	{clauseCount, clausesOfRows},
	{groupClauses | clauseLookup, searchClauses},
	{clauseNear, clauseRerank},
	{clauseNear | clauseRerank | clauseFuse, clauseOrder},
	{clauseRerank, clauseFuse},
}

// clauses are the clauses read after a collection's name.
type clauses struct {
	given     clause
	selected  []SelectItem
	where     Expr
	group     *Name
	having    Expr
	near      *Near
	match     *Match
	rerank    *Rerank
	fuse      *Fuse
	order     []OrderKey
	limit     Expr
	offset    Expr
	count     bool
	required  bool
	returning *Returning
	require   Expr
}

// rest is how a statement could continue after its last clause.
type rest struct {
	given, allowed clause
	more           string // how that clause itself could continue
}

// wanted lists the possible continuations, for the error about another one; end is what ends the statement.
func (r rest) wanted(end string) string {
	out := r.more
	left := r.allowed &^ r.given
	for _, a := range apart {
		if r.given&a[0] != 0 {
			left &^= a[1]
		}
		if r.given&a[1] != 0 {
			left &^= a[0]
		}
	}
	for _, w := range clauseWords {
		if w.bit&left != 0 {
			out += w.word + ", "
		}
	}
	if out == "" {
		return end
	}
	return out[:len(out)-2] + " or " + end
}

// clauses reads those of the allowed clauses that follow, in any order, into c. It stops before a lookup,
// after which clauses belong to the lookup.
func (p *parser) clauses(c *clauses, allowed clause) error {
	p.rest = rest{given: c.given, allowed: allowed}
	for {
		word, bit := p.clauseHere(allowed)
		if bit == 0 || bit == clauseLookup {
			return nil
		}
		at := p.tok.pos
		if c.given&bit != 0 {
			return p.invalid(at, "%s is given twice", word)
		}
		c.given |= bit
		if c.given&clauseCount != 0 && c.given&clausesOfRows != 0 {
			return p.invalid(at, "count takes where alone; select, group, having, near, match, rerank, fuse, order, limit and offset are for rows")
		}
		p.advance()
		if err := p.clause(c, bit, at); err != nil {
			return err
		}
		p.rest.given = c.given
	}
}

// clauseHere returns the allowed clause whose word is the current token.
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

// clause reads what follows the word of a clause, whose place is at.
func (p *parser) clause(c *clauses, bit clause, at Pos) (err error) {
	p.rest.more = ""
	switch bit {
	case clauseSelect:
		c.selected, err = p.selectItems()
		p.rest.more = moreItems(c.selected)
	case clauseWhere:
		c.where, err = p.expression("a condition after where")
		p.rest.more = "an operator, "
	case clauseNear:
		c.near, err = p.near(at)
	case clauseMatch:
		c.match, err = p.match(at)
	case clauseRerank:
		c.rerank, err = p.rerank(at)
	case clauseFuse:
		c.fuse, err = p.fuse(at)
	case clauseOrder:
		c.order, err = p.orderKeys()
		p.rest.more = "asc, desc, a comma, "
	case clauseGroup:
		c.group, err = p.groupKey()
	case clauseHaving:
		c.having, err = p.havingCondition()
		p.rest.more = "an operator, "
	case clauseLimit:
		c.limit, err = p.bound("limit", 0)
	case clauseOffset:
		c.offset, err = p.bound("offset", 0)
	case clauseCount:
		if p.tok.kind == '(' {
			return p.unexpected("the clause count alone; as a column it is select count(*)")
		}
		c.count = true
	case clauseRequired:
		c.required = true
	case clauseReturning:
		c.returning, err = p.returning()
	case clauseRequire:
		c.require, err = p.bound("require", 0)
	}
	return err
}

// moreItems returns how a list of items could continue.
func moreItems(items []SelectItem) string {
	if items == nil {
		return ""
	}
	return "as, an operator, a comma, "
}

// fromWanted returns what is expected after the items of a leading select.
func fromWanted(items []SelectItem) string {
	if items == nil {
		return "from"
	}
	return "as, an operator, a comma or from"
}

// get reads `C clauses`, after get.
func (p *parser) get() (*Get, error) { return p.getWith(&clauses{}) }

// selectFrom reads `items from C clauses`, after select.
func (p *parser) selectFrom() (*Get, error) {
	c := clauses{given: clauseSelect}
	var err error
	if c.selected, err = p.selectItems(); err != nil {
		return nil, err
	}
	if err = p.wantWord("from", fromWanted(c.selected)); err != nil {
		return nil, err
	}
	return p.getWith(&c)
}

func (p *parser) getWith(c *clauses) (*Get, error) {
	name, err := p.collection()
	if err != nil {
		return nil, err
	}
	if err = p.clauses(c, getClauses); err != nil {
		return nil, err
	}
	levels, err := p.lookups(c, name)
	if err != nil {
		return nil, err
	}
	st := &Get{
		Collection: name, Select: c.selected, Where: c.where, Group: c.group, Having: c.having, Order: c.order,
		Near: c.near, Match: c.match, Rerank: c.rerank, Fuse: c.fuse,
		Limit: c.limit, Offset: c.offset, Count: c.count, Require: c.require, Lookups: levels,
	}
	if err := p.checkLookups(st); err != nil {
		return nil, err
	}
	if err := p.checkSearch(st); err != nil {
		return nil, err
	}
	return st, p.checkGrouped(st)
}

// selectItems reads `*`, which is nil, or a list of items with distinct keys.
func (p *parser) selectItems() ([]SelectItem, error) {
	if p.tok.kind == '*' {
		p.advance()
		if p.tok.kind == ',' {
			return nil, p.invalid(p.tok.pos, "* selects all fields and has to be the only item")
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

const (
	// maxSelected bounds a select list, each of whose keys is compared with all others.
	maxSelected = 1024
	// maxOrdered bounds the keys of an order likewise. A sort stores something for each of them and each row.
	maxOrdered = maxSelected
)

// selectItem reads `expression [as name]`.
func (p *parser) selectItem() (SelectItem, error) {
	item := SelectItem{Pos: p.tok.pos}
	if p.tok.kind == '*' {
		return item, p.invalid(p.tok.pos, "* selects all fields and has to be the only item")
	}
	var err error
	if p.atAggregate() {
		item.Expr, err = p.aggregate()
		if _, bind := p.operator(); err == nil && bind != bindNone {
			err = p.invalid(p.tok.pos, "an aggregate has to be a whole item of a select list, found %s after it", &p.tok)
		}
	} else {
		item.Expr, err = p.expression("a field, path or expression")
	}
	if err != nil {
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
	return item, p.unexpected("a name after as")
}

// orderKeys reads `[by] path [collate C] [asc|desc], ...`, whose keys have distinct paths or collations: a
// repeated key would only compare values that are equal.
func (p *parser) orderKeys() ([]OrderKey, error) {
	// `by` followed by a name is SQL's word; followed by anything else it is a field.
	if p.tok.is("by") && p.peek().kind == kindName {
		p.advance()
	}
	var out []OrderKey
	var texts []string
	for {
		if len(out) == maxOrdered {
			return nil, p.invalid(p.tok.pos, "an order has at most %d keys", maxOrdered)
		}
		key, err := p.orderKey()
		if err != nil {
			return nil, err
		}
		if p.take("collate") {
			if key.Collate, err = p.collation(); err != nil {
				return nil, err
			}
		}
		if p.take("desc") {
			key.Desc = true
		} else {
			p.take("asc")
		}
		if p.tok.is("collate") {
			return nil, p.invalid(p.tok.pos, "a key has one collation, before its direction: order name collate tr desc")
		}
		text := keyText(key.Expr)
		for i := range out {
			if texts[i] == text && out[i].Collate == key.Collate {
				return nil, p.invalid(key.Expr.Position(), "order names %s twice", shorten(text))
			}
		}
		out, texts = append(out, key), append(texts, text)
		if !p.takeKind(',') {
			return out, nil
		}
	}
}

// orderKey reads the expression of an order's key: a path, or an aggregate in a grouped get.
func (p *parser) orderKey() (OrderKey, error) {
	if p.atAggregate() {
		a, err := p.aggregate()
		return OrderKey{Expr: a}, err
	}
	path, err := p.path("a field or path to order by")
	return OrderKey{Expr: p.paths.one(path)}, err
}

// bound reads a whole number, at least least, or a parameter, as of a limit.
func (p *parser) bound(of string, least int64) (Expr, error) {
	switch p.tok.kind {
	case kindParam:
		return p.param()
	case kindInt:
		at := p.tok.pos
		v, err := p.integer(false)
		if err != nil {
			return nil, err
		}
		if v < least {
			return nil, p.invalid(at, "%s is %d at least, found %s", of, least, shorten(p.tok.text))
		}
		p.advance()
		return p.literals.one(Literal{Value: doc.Value{Kind: doc.Int, N: uint64(v)}, Pos: at}), nil
	}
	return nil, p.unexpected("a whole number from " + strconv.FormatInt(least, 10) + " or a parameter after " + of)
}
