package syntax

import (
	"strconv"

	"fenec/engine/collation"
	"fenec/engine/doc"
)

func (st *CreateCollection) String() string {
	b := append([]byte(nil), "create collection "...)
	if st.IfNotExists {
		b = append(b, "if not exists "...)
	}
	b = append(append(b, st.Name.Text...), " ("...)
	for i := range st.Fields {
		b = st.Fields[i].append(comma(b, i))
	}
	return string(append(b, ')'))
}

func (f *FieldDef) append(b []byte) []byte {
	b = append(append(b, f.Name.Text...), ' ')
	b = append(b, f.Type.String()...)
	if f.Required {
		b = append(b, " required"...)
	}
	b = appendCollate(b, f.Collate)
	if f.Index.Kind != 0 {
		b = append(append(b, ' '), f.Index.String()...)
	}
	return b
}

func appendCollate(b []byte, c collation.Collation) []byte {
	if c == collation.None {
		return b
	}
	return append(append(b, " collate "...), c.String()...)
}

func (st *DropCollection) String() string {
	if st.IfExists {
		return "drop collection if exists " + st.Name.Text
	}
	return "drop collection " + st.Name.Text
}

func (st *CreateIndex) String() string {
	b := append([]byte(nil), "create index "...)
	if st.IfNotExists {
		b = append(b, "if not exists "...)
	}
	b = append(append(b, "on "...), st.Collection.Text...)
	b = append(append(append(b, " ("...), st.On.text()...), ") "...)
	return string(append(b, st.Index.String()...))
}

func (st *Put) String() string {
	b := []byte("put ")
	if st.Insert {
		b = []byte("insert into ")
	}
	b = st.appendRows(append(append(b, st.Collection.Text...), ' '))
	if st.IfAbsent {
		b = append(b, " if absent"...)
	}
	if st.Else != nil {
		b = appendPairs(append(b, " else set "...), st.Else)
	}
	return string(appendReturning(b, st.Returning))
}

func (st *Put) appendRows(b []byte) []byte {
	switch {
	case st.Param > 0:
		return appendParam(b, st.Param)
	case len(st.Rows) == 1:
		return appendPairs(b, st.Rows[0].Items)
	}
	b = append(b, '[')
	for i := range st.Rows {
		b = appendPairs(comma(b, i), st.Rows[i].Items)
	}
	return append(b, ']')
}

func (st *Get) String() string {
	b := append([]byte("get "), st.Collection.Text...)
	if st.Select != nil {
		b = appendSelect(append(b, " select "...), st.Select)
	}
	b = appendClause(b, " where ", st.Where)
	if st.Group != nil {
		b = append(append(b, withBy(" group ", st.Group.Text)...), st.Group.Text...)
	}
	b = appendClause(b, " having ", st.Having)
	b = st.appendSearch(b)
	b = appendOrder(b, st.Order)
	b = appendClause(b, " limit ", st.Limit)
	b = appendClause(b, " offset ", st.Offset)
	if st.Count {
		b = append(b, " count"...)
	}
	b = appendClause(b, " require ", st.Require)
	for i := range st.Lookups {
		b = st.Lookups[i].append(b)
	}
	return string(b)
}

func (st *Set) String() string {
	b := append(append([]byte("set "), st.Collection.Text...), ' ')
	b = appendPairs(b, st.Items)
	return string(appendChange(b, st.Where, st.Order, st.Limit, st.Returning, st.Require))
}

func (st *Delete) String() string {
	b := append([]byte("del "), st.Collection.Text...)
	return string(appendChange(b, st.Where, st.Order, st.Limit, st.Returning, st.Require))
}

func appendChange(b []byte, where Expr, order []OrderKey, limit Expr, returning *Returning, require Expr) []byte {
	b = appendClause(b, " where ", where)
	b = appendOrder(b, order)
	b = appendClause(b, " limit ", limit)
	return appendClause(appendReturning(b, returning), " require ", require)
}

func appendReturning(b []byte, r *Returning) []byte {
	if r == nil {
		return b
	}
	return appendSelect(append(b, " returning "...), r.Items)
}

func (*Collections) String() string { return "collections" }

func (st *Describe) String() string { return "describe " + st.Collection.Text }

func (st *Compact) String() string {
	if st.Collection == nil {
		return "compact"
	}
	return "compact " + st.Collection.Text
}

func (st *Explain) String() string { return "explain " + st.Get.String() }

// comma appends the separator before element i of a list.
func comma(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ", "...)
}

func appendClause(b []byte, word string, x Expr) []byte {
	if x == nil {
		return b
	}
	return appendExpr(append(b, word...), x, bindNone)
}

func appendSelect(b []byte, items []SelectItem) []byte {
	if items == nil {
		return append(b, '*')
	}
	for i := range items {
		x := &items[i]
		b = appendExpr(comma(b, i), x.Expr, bindNone)
		if x.As != outputKey(x.Expr) {
			b = appendKey(append(b, " as "...), x.As)
		}
	}
	return b
}

// outputKey returns the key of an item without as.
func outputKey(x Expr) string {
	switch x := x.(type) {
	case *Path:
		return x.text()
	case *Aggregate:
		if x.Arg == nil {
			return x.Name
		}
	}
	return string(appendExpr(nil, x, bindNone))
}

func appendOrder(b []byte, order []OrderKey) []byte {
	for i, key := range order {
		text := keyText(key.Expr)
		if i == 0 {
			b = append(b, withBy(" order ", text)...)
		}
		b = appendCollate(append(comma(b, i), text...), key.Collate)
		if key.Desc {
			b = append(b, " desc"...)
		}
	}
	return b
}

// keyText returns a key of an order as it is written.
func keyText(x Expr) string {
	if path, ok := x.(*Path); ok {
		return path.text()
	}
	return x.(*Aggregate).String()
}

// withBy returns the word of a clause, followed by a by if the field after it is called by.
func withBy(clause, name string) string {
	if word := (&token{kind: kindName, text: name}); word.is("by") {
		return clause + "by "
	}
	return clause
}

func appendParam(b []byte, n int) []byte { return strconv.AppendInt(append(b, '$'), int64(n), 10) }

// appendKey writes a key as a name if it is one.
func appendKey(b []byte, key string) []byte {
	if IsName(key) {
		return append(b, key...)
	}
	return doc.AppendQuoted(b, bytesOf(key))
}

func appendPairs(b []byte, items []Item) []byte {
	b = append(b, '{')
	for i := range items {
		b = comma(b, i)
		if key := &items[i].Key; len(key.Parts) == 1 {
			b = appendKey(b, key.Parts[0])
		} else {
			b = append(b, key.text()...)
		}
		b = appendExpr(append(b, ": "...), items[i].Value, bindNone)
	}
	return append(b, '}')
}

// bindOf returns how tightly the operator at the root of x binds; an expression without one binds tightest.
func bindOf(x Expr) int {
	switch x := x.(type) {
	case *Logic:
		if x.Op == Or {
			return bindOr
		}
		return bindAnd
	case *Unary:
		switch x.Op {
		case Not:
			return bindNot
		case Neg:
			return bindSign
		}
		return bindCompare
	case *Binary:
		switch x.Op {
		case Add, Sub:
			return bindSum
		case Mul, Div, Mod:
			return bindProduct
		}
		return bindCompare
	}
	return bindSign + 1
}

// appendExpr writes x as the operand of an operator that binds as tightly as least, in parentheses
// if x binds looser.
func appendExpr(b []byte, x Expr, least int) []byte {
	bind := bindOf(x)
	if bind < least {
		return append(appendExpr(append(b, '('), x, bindNone), ')')
	}
	switch x := x.(type) {
	case *Literal:
		return appendLiteral(b, x.Value)
	case *Param:
		return appendParam(b, x.N)
	case *Path:
		return appendPath(b, x)
	case *ListExpr:
		return append(appendList(append(b, '['), x.Items), ']')
	case *ObjectExpr:
		return appendPairs(b, x.Items)
	case *Unary:
		return appendUnary(b, x)
	case *Binary:
		left := bind
		if bind == bindCompare { // comparisons do not chain
			left++
		}
		b = appendExpr(b, x.X, left)
		b = append(append(append(b, ' '), x.Op.String()...), ' ')
		return appendExpr(b, x.Y, bind+1)
	case *Logic:
		for i, term := range x.Terms {
			if i > 0 {
				b = append(append(append(b, ' '), x.Op.String()...), ' ')
			}
			b = appendExpr(b, term, bind+1)
		}
		return b
	case *Case:
		return appendCase(b, x)
	case *Call:
		return append(appendList(append(append(b, x.Name...), '('), x.Args), ')')
	case *Aggregate:
		return append(b, x.String()...)
	case *InnerGet:
		return append(append(append(b, '('), x.Get.String()...), ')')
	}
	return b
}

// appendPath writes a path. A field called like a word that begins an operand is in parentheses.
func appendPath(b []byte, x *Path) []byte {
	if len(x.Parts) == 1 {
		if word := (&token{kind: kindName, text: x.Parts[0]}); word.anyOf("not", "case") {
			return append(append(append(b, '('), x.Parts[0]...), ')')
		}
	}
	return append(b, x.text()...)
}

func appendList(b []byte, items []Expr) []byte {
	for i, x := range items {
		b = appendExpr(comma(b, i), x, bindNone)
	}
	return b
}

func appendUnary(b []byte, x *Unary) []byte {
	switch x.Op {
	case Not:
		b = append(b, "not "...)
		if path, ok := x.X.(*Path); ok && len(path.Parts) == 1 {
			// After not, a field called like one of these would read as an operator and not as the field.
			if word := (&token{kind: kindName, text: path.Parts[0]}); word.anyOf("is", "in", "has", "and", "or") {
				return append(append(append(b, '('), path.Parts[0]...), ')')
			}
		}
		return appendExpr(b, x.X, bindNot)
	case Neg:
		b = append(b, '-')
		switch y := x.X.(type) {
		case *Unary:
			if y.Op == Neg { // two minuses together would begin a comment
				b = append(b, ' ')
			}
		case *Literal:
			if y.Value.IsNumber() { // without parentheses it would be a negative constant
				return append(appendLiteral(append(b, '('), y.Value), ')')
			}
		}
		return appendExpr(b, x.X, bindSign)
	}
	b = appendExpr(b, x.X, bindSum)
	return append(append(b, ' '), x.Op.String()...)
}

func appendCase(b []byte, x *Case) []byte {
	b = append(b, "case"...)
	for _, arm := range x.Whens {
		b = appendExpr(append(b, " when "...), arm.Cond, bindNone)
		b = appendExpr(append(b, " then "...), arm.Then, bindNone)
	}
	b = appendExpr(append(b, " else "...), x.Else, bindNone)
	return append(b, " end"...)
}

// appendLiteral writes a constant so that it parses to the same kind.
func appendLiteral(b []byte, v doc.Value) []byte {
	start := len(b)
	switch v.Kind {
	case doc.Bool:
		return strconv.AppendBool(b, v.Bool())
	case doc.Int:
		return strconv.AppendInt(b, v.Int(), 10)
	case doc.Float:
		b = strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case doc.Decimal:
		b = append(b, v.B...)
	case doc.Text:
		return doc.AppendQuoted(b, v.B)
	default:
		return append(b, "null"...)
	}
	for _, c := range b[start:] {
		if c == '.' || c == 'e' || c == 'E' {
			return b
		}
	}
	return append(b, ".0"...)
}
