package syntax

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"fenec/engine/doc"

	"pgregory.net/rapid"
)

// The generators make every tree that text can say, and no other: terms of a chain are no chain of
// the same operator, comparisons have no null operand, and keys do not overlap.

// trickyNames are words that the grammar has a use for somewhere.
var trickyNames = []string{
	"id", "a", "_", "été", "count", "order", "by", "key", "select", "where", "limit", "offset", "from", "as", "asc", "desc",
	"in", "is", "has", "not", "case", "when", "then", "else", "end", "and", "or", "get", "set", "into", "if", "exists", "on",
	"required", "returning", "require", "Not", "By", "near", "lookup", "match", "rerank", "fuse", "ef", "exact", "k", "candidates",
	"collate", "und", "f16", "vector", "chars", "now", "lower", "norm", "index", "collection",
	"distinct", "absent",
}

var drawName = rapid.SampledFrom(trickyNames)

func notConstant(name string) bool {
	_, ok := constant(&token{kind: kindName, text: name})
	return !ok
}

func drawPath(t *rapid.T) Path {
	return Path{Parts: rapid.SliceOfN(drawName, 1, 3).Filter(func(p []string) bool { return len(p) > 1 || notConstant(p[0]) }).Draw(t, "path")}
}

func drawLiteral(t *rapid.T) *Literal {
	v := doc.Value{}
	switch rapid.IntRange(0, 5).Draw(t, "literal") {
	case 0:
		v = doc.BoolValue(rapid.Bool().Draw(t, "bool"))
	case 1:
		v = doc.IntValue(rapid.Int64().Draw(t, "int"))
	case 2:
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }).Draw(t, "float")
		v, _ = doc.ParseNumber(strconv.AppendFloat(nil, f, 'e', -1, 64)) // which may be an int64
	case 3:
		digits := rapid.StringMatching(`-?[1-9][0-9]{18,30}\.[0-9]{5,20}[1-9]`).Draw(t, "decimal")
		v, _ = doc.ParseNumber([]byte(digits))
	case 4:
		v = doc.TextValue([]byte(rapid.String().Filter(func(s string) bool { return strings.ToValidUTF8(s, "") == s }).Draw(t, "text")))
	}
	return &Literal{Value: v}
}

func drawItems(t *rapid.T, depth int, document bool, least int) []Item {
	n := rapid.IntRange(least, 3).Draw(t, "items")
	out := []Item{}
	for i := range n {
		var key Path
		switch {
		case document && rapid.Bool().Draw(t, "as path"):
			key = drawPath(t)
		case rapid.Bool().Draw(t, "as text"):
			key = Path{Parts: []string{rapid.SampledFrom([]string{"", "no name", "é\n\"", "1", "a.", ".", "a..b", "-"}).Draw(t, "text")}}
		default:
			key = Path{Parts: []string{drawName.Draw(t, "name")}}
		}
		key.Parts[0] = prefixed(key.Parts[0], i)
		out = append(out, Item{Key: key, Value: drawExpr(t, depth)})
	}
	return out
}

// prefixed makes the keys of one object differ in their first part.
func prefixed(name string, i int) string {
	if IsName(name) {
		return fmt.Sprintf("%s_%d", name, i)
	}
	return fmt.Sprintf("%d %s", i, name)
}

func drawExprs(t *rapid.T, depth, least, most int) []Expr {
	var out []Expr
	for range rapid.IntRange(least, most).Draw(t, "how many") {
		out = append(out, drawExpr(t, depth))
	}
	return out
}

// drawOperand draws an operand of a comparison.
func drawOperand(t *rapid.T, depth int) Expr {
	x := drawExpr(t, depth)
	if l, ok := x.(*Literal); ok && l.Value.Kind == doc.Null {
		return &Param{N: 1}
	}
	return x
}

func drawExpr(t *rapid.T, depth int) Expr {
	kinds := 10
	if depth <= 0 {
		kinds = 2
	}
	switch depth--; rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		p := drawPath(t)
		return &p
	case 1:
		return drawLiteral(t)
	case 2:
		return &Param{N: rapid.IntRange(1, maxParam).Draw(t, "param")}
	case 3:
		return &ListExpr{Items: drawExprs(t, depth, 0, 3)}
	case 4:
		return &ObjectExpr{Items: drawItems(t, depth, false, 0)}
	case 5:
		return &Unary{Op: rapid.SampledFrom([]Op{Not, Neg, IsNull, IsNotNull}).Draw(t, "unary"), X: drawExpr(t, depth)}
	case 6:
		op := rapid.SampledFrom([]Op{Eq, Ne, Lt, Le, Gt, Ge, Has, Contains}).Draw(t, "comparison")
		return &Binary{Op: op, X: drawOperand(t, depth), Y: drawOperand(t, depth)}
	case 7:
		op := rapid.SampledFrom([]Op{Add, Sub, Mul, Div, Mod}).Draw(t, "arithmetic")
		return &Binary{Op: op, X: drawExpr(t, depth), Y: drawExpr(t, depth)}
	case 8:
		if depth >= 1 && rapid.IntRange(0, 3).Draw(t, "inner get") == 0 {
			return &Binary{Op: In, X: drawOperand(t, depth), Y: drawInner(t, depth)}
		}
		if rapid.Bool().Draw(t, "in a parameter") {
			return &Binary{Op: In, X: drawOperand(t, depth), Y: &Param{N: 3}}
		}
		return &Binary{Op: In, X: drawOperand(t, depth), Y: &ListExpr{Items: drawExprs(t, depth, 0, 3)}}
	case 9:
		logic := &Logic{Op: rapid.SampledFrom([]Op{And, Or}).Draw(t, "logic")}
		for _, x := range drawExprs(t, depth, 2, 4) {
			logic.add(x)
		}
		return logic
	default:
		if rapid.Bool().Draw(t, "call") {
			f := functions[rapid.IntRange(0, len(functions)-1).Draw(t, "function")]
			most := f.most
			if most < 0 {
				most = 3
			}
			return &Call{Name: f.name, Args: drawExprs(t, depth, f.least, most)}
		}
		c := &Case{Else: drawExpr(t, depth)}
		for range rapid.IntRange(1, 3).Draw(t, "arms") {
			c.Whens = append(c.Whens, When{Cond: drawExpr(t, depth), Then: drawExpr(t, depth)})
		}
		return c
	}
}

func drawInner(t *rapid.T, depth int) *InnerGet {
	path := drawPath(t)
	st := &Get{Collection: drawNamed(t), Select: []SelectItem{{Expr: &path, As: outputKey(&path)}}, Order: drawOrder(t), Limit: drawBound(t)}
	if rapid.Bool().Draw(t, "filtered") {
		st.Where = drawExpr(t, depth-1)
	}
	return &InnerGet{Get: st}
}

func drawSelect(t *rapid.T) []SelectItem {
	var out []SelectItem
	for i := range rapid.IntRange(0, 3).Draw(t, "selected") {
		item := SelectItem{Expr: drawExpr(t, 2)}
		item.As = outputKey(item.Expr)
		if i > 0 || rapid.Bool().Draw(t, "as") {
			item.As = prefixed(item.As, i)
		}
		out = append(out, item)
	}
	return out
}

func drawMaybe(t *rapid.T) Expr {
	if rapid.Bool().Draw(t, "none") {
		return nil
	}
	return drawExpr(t, 4)
}

func drawBound(t *rapid.T) Expr {
	switch rapid.IntRange(0, 2).Draw(t, "bound") {
	case 0:
		return nil
	case 1:
		return &Param{N: 2}
	}
	return &Literal{Value: doc.IntValue(rapid.Int64Range(0, math.MaxInt64).Draw(t, "n"))}
}

func drawOrder(t *rapid.T) []OrderKey {
	var out []OrderKey
	for range rapid.IntRange(0, 2).Draw(t, "keys") {
		p := drawPath(t)
		if len(out) > 0 && keyText(out[0].Expr) == keyText(&p) {
			continue // which is refused twice
		}
		out = append(out, OrderKey{Expr: &p, Collate: drawCollation(t), Desc: rapid.Bool().Draw(t, "desc")})
	}
	return out
}

func drawGet(t *rapid.T) *Get {
	st := &Get{Collection: drawNamed(t), Where: drawMaybe(t), Require: drawBound(t)}
	drawLookups(t, st)
	if len(st.Lookups) == 0 {
		switch rapid.IntRange(0, 2).Draw(t, "what") {
		case 0:
			drawGroups(t, st)
			return st
		case 1:
			drawSearch(t, st)
			return st
		}
	}
	if st.Count = rapid.Bool().Draw(t, "count"); st.Count {
		for i := range st.Lookups {
			l := &st.Lookups[i]
			*l = Lookup{Collection: l.Collection, On: l.On, Parent: l.Parent, Where: l.Where, Required: true}
		}
	} else {
		st.Select, st.Order, st.Limit, st.Offset = drawSelect(t), drawOrder(t), drawBound(t), drawBound(t)
	}
	return st
}

func drawAggregate(t *rapid.T) *Aggregate {
	out := &Aggregate{Name: rapid.SampledFrom(aggregates[:]).Draw(t, "aggregate")}
	if out.Name != "count" || rapid.Bool().Draw(t, "of a field") {
		arg := drawNamed(t)
		out.Arg = &arg
		out.Distinct = out.Name == "count" && rapid.Bool().Draw(t, "distinct")
	}
	return out
}

// drawGroups makes st a get of groups.
func drawGroups(t *rapid.T, st *Get) {
	add := func(x Expr) {
		item := SelectItem{Expr: x, As: prefixed(outputKey(x), len(st.Select))}
		st.Select = append(st.Select, item)
	}
	if rapid.Bool().Draw(t, "key") {
		key := drawNamed(t)
		st.Group = &key
		add(&Path{Parts: []string{key.Text}})
	}
	for range rapid.IntRange(1, 3).Draw(t, "aggregates") {
		add(drawAggregate(t))
	}
	if rapid.Bool().Draw(t, "having") {
		st.Having = &Binary{Op: Gt, X: drawAggregate(t), Y: &Binary{Op: Add, X: drawAggregate(t), Y: drawExpr(t, 2)}}
	}
	st.Order, st.Limit, st.Offset = drawOrder(t), drawBound(t), drawBound(t)
	if rapid.Bool().Draw(t, "by an aggregate") {
		st.Order = append(st.Order, OrderKey{Expr: drawAggregate(t), Desc: true})
	}
}

func drawLookups(t *rapid.T, st *Get) {
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "lookups") {
		l := Lookup{
			Collection: Name{Text: prefixed(st.Collection.Text, i)}, On: drawNamed(t), Required: rapid.Bool().Draw(t, "required"),
			Select: drawSelect(t), Order: drawOrder(t), Limit: drawBound(t), Offset: drawBound(t),
		}
		if rapid.Bool().Draw(t, "parent") {
			parent := drawNamed(t)
			l.Parent = &parent
		}
		if rapid.Bool().Draw(t, "filtered") {
			l.Where = drawExpr(t, 2)
		}
		st.Lookups = append(st.Lookups, l)
	}
}

func drawNamed(t *rapid.T) Name { return Name{Text: drawName.Draw(t, "name")} }

func drawReturning(t *rapid.T) *Returning {
	if rapid.Bool().Draw(t, "silent") {
		return nil
	}
	return &Returning{Items: drawSelect(t)}
}

// drawField draws the declaration of a field that may be null.
func drawField(t *rapid.T, i int) FieldDef {
	f := FieldDef{Name: Name{Text: prefixed(drawName.Draw(t, "field"), i)}, Collate: drawCollation(t)}
	f.Type.Kind = rapid.SampledFrom(types[:]).Draw(t, "type").kind
	switch f.Type.Kind {
	case doc.TypeVector:
		f.Type.Dim, f.Type.F16 = rapid.IntRange(1, doc.MaxDim).Draw(t, "dimensions"), rapid.Bool().Draw(t, "half")
	case doc.TypeSparse:
		f.Type.Dim = rapid.IntRange(1, doc.MaxSparseDim).Draw(t, "dimensions")
	default:
		if rapid.Bool().Draw(t, "list") {
			f.Type = doc.Type{Kind: doc.TypeList, Elem: f.Type.Kind}
		}
	}
	if rapid.Bool().Draw(t, "indexed") {
		f.Index = drawIndex(t)
	}
	return f
}

func drawStatement(t *rapid.T) Statement {
	switch rapid.IntRange(0, 13).Draw(t, "statement") {
	case 0:
		st := &CreateCollection{Name: drawNamed(t), IfNotExists: rapid.Bool().Draw(t, "if")}
		for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
			f := drawField(t, i)
			f.Required = rapid.Bool().Draw(t, "required")
			st.Fields = append(st.Fields, f)
		}
		return st
	case 1:
		return &DropCollection{Name: drawNamed(t), IfExists: rapid.Bool().Draw(t, "if")}
	case 2:
		return &CreateIndex{Collection: drawNamed(t), IfNotExists: rapid.Bool().Draw(t, "if"), On: drawPath(t), Index: drawIndex(t)}
	case 3:
		st := &Put{Collection: drawNamed(t), Insert: rapid.Bool().Draw(t, "insert")}
		if st.Insert {
			st.Returning = drawReturning(t)
			if st.IfAbsent = rapid.Bool().Draw(t, "if absent"); st.IfAbsent && rapid.Bool().Draw(t, "else") {
				st.Else = drawItems(t, 3, true, 1)
			}
		}
		if rapid.Bool().Draw(t, "by parameter") {
			st.Param = 7
			return st
		}
		st.Rows = []Object{}
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			st.Rows = append(st.Rows, Object{Items: drawItems(t, 3, true, 0)})
		}
		return st
	case 4:
		return drawGet(t)
	case 5:
		return &Set{
			Collection: drawNamed(t), Items: drawItems(t, 3, true, 1), Where: drawMaybe(t), Order: drawOrder(t),
			Limit: drawBound(t), Returning: drawReturning(t), Require: drawBound(t),
		}
	case 6:
		return &Delete{Collection: drawNamed(t), Where: drawMaybe(t), Order: drawOrder(t), Limit: drawBound(t), Returning: drawReturning(t), Require: drawBound(t)}
	case 7:
		return &Explain{Get: drawGet(t)}
	case 8:
		return &Describe{Collection: drawNamed(t)}
	case 9:
		if rapid.Bool().Draw(t, "one") {
			c := drawNamed(t)
			return &Compact{Collection: &c}
		}
		return &Compact{}
	case 10:
		return &AddField{Collection: drawNamed(t), Field: drawField(t, 0)}
	case 11:
		return &DropField{Collection: drawNamed(t), Field: drawNamed(t)}
	case 12:
		return &RenameField{Collection: drawNamed(t), Field: drawNamed(t), To: Name{Text: drawName.Filter(notConstant).Draw(t, "to")}}
	default:
		return &Collections{}
	}
}
