package syntax

import (
	"fenec/engine/collation"
	"fenec/engine/doc"
)

// Pos is a place in a statement's text: line and column from 1, columns counted in characters.
// The zero Pos is no place.
type Pos struct{ Line, Column int }

// Position returns p. It makes a node that embeds its place an Expr.
func (p Pos) Position() Pos { return p }

// Name is a collection's, a field's or an output's name with its place.
type Name struct {
	Text string
	Pos
}

// Statement is one parsed statement, always a pointer: *CreateCollection, *DropCollection,
// *CreateIndex, *AddField, *DropField, *RenameField, *Put, *Get, *Set, *Delete, *Collections,
// *Describe, *Compact or *Explain.
// String returns its canonical FenecQL, which parses to the same tree except for places.
type Statement interface {
	String() string
	statement()
}

// CreateCollection is `create collection [if not exists] C (fields)`. There is at least one field
// and no duplicate name.
type CreateCollection struct {
	Name        Name
	IfNotExists bool
	Fields      []FieldDef
}

// FieldDef declares one field. Collate and Index are zero if none is declared.
type FieldDef struct {
	Name     Name
	Type     doc.Type
	Required bool
	Collate  collation.Collation
	Index    doc.Index
}

// DropCollection is `drop collection [if exists] C`.
type DropCollection struct {
	Name     Name
	IfExists bool
}

// CreateIndex is `create index [if not exists] on C (field | path) @index`, with or without the parentheses.
type CreateIndex struct {
	Collection  Name
	IfNotExists bool
	On          Path
	Index       doc.Index
}

// Put is `put C ...`, or `insert [into] C ...` if Insert is set. Its documents are Rows, or the
// JSON object or list of objects in parameter number Param (from 1; 0 if Rows are given).
type Put struct {
	Collection Name
	Insert     bool
	Rows       []Object
	Param      int
	IfAbsent   bool       // of an insert: a row that exists is not an error
	Else       []Item     // with IfAbsent: what is set in the existing row, as Set.Items; nil for nothing
	Returning  *Returning // of an insert; nil for a count
	Pos                   // of the rows or the parameter
}

// Object is one document of a put: fields and paths with their values, none given twice or
// inside another one.
type Object struct {
	Items []Item
	Pos
}

// Item is one `key: value`. A quoted key is a path of one part; a document's that reads as a path
// ("meta.rank") is that path.
type Item struct {
	Key   Path
	Value Expr
}

// Get is every `get` and `select ... from`.
type Get struct {
	Collection Name
	Select     []SelectItem // nil for all fields
	Where      Expr         // nil if none
	Group      *Name        // the field to group by, one of Select; nil if none
	Having     Expr         // nil if none, always so without aggregates and Group
	Order      []OrderKey
	Limit      Expr  // a *Literal holding an int of 0 or more, or a *Param; nil if none
	Offset     Expr  // as Limit
	Near       *Near // nil if none, like the next three
	Match      *Match
	Rerank     *Rerank  // with Match and without Near
	Fuse       *Fuse    // with Match and Near, which it joins
	Lookups    []Lookup // each of the rows of the one before it, the first of this get's; MaxLookups at most
	Count      bool     // with no Select, Group, Having, Order, Limit or Offset
	Require    Expr     // as Limit: how many rows it must have, or count with Count
}

// Lookup is `lookup C on child [= parent] [required] clauses`: it adds to each row of the level above the
// documents of C whose field On equals that row's field Parent. No collection occurs twice in a chain. With a
// count each lookup is required and has none of Select, Order, Limit and Offset.
type Lookup struct {
	Collection Name
	On         Name
	Parent     *Name // nil for the id
	Required   bool  // drops rows of the level above that have no document in this one
	Select     []SelectItem
	Where      Expr
	Order      []OrderKey
	Limit      Expr
	Offset     Expr
}

// Grouped reports whether the answer's rows are groups of documents: Select then holds *Aggregates and
// the field of Group, nothing else.
func (st *Get) Grouped() bool { return st.Group != nil || aggregateOf(st.Select) != nil }

// SelectItem is one output. As is its key in the answer: the name given, else the path's text,
// else the expression in canonical spelling. Keys are unique.
type SelectItem struct {
	Expr Expr
	As   string
	Pos
}

// OrderKey is one key of an order; Expr is a *Path, or in a grouped get an *Aggregate.
type OrderKey struct {
	Expr    Expr
	Collate collation.Collation // 0 if none is named
	Desc    bool
}

// Near is `near F vector [ef N] [exact]`: it orders the rows by how near their vector in F is to Vector. It excludes an
// order and, without a Fuse, a Match.
type Near struct {
	Field  Name
	Vector Expr // a *ListExpr of number *Literals, a text *Literal or a *Param
	EF     Expr // as Limit, and not 0; nil if not given, as in the others below
	Exact  bool
	Pos    // of the word, as in the others below
}

// Match is `match F text`: it finds the rows whose text in F has a word of Text, best first.
type Match struct {
	Field Name
	Text  Expr // a text *Literal or a *Param
	Pos
}

// Rerank is `rerank F vector [candidates N]`: it orders the best of a match by how near their vector in F is to Vector.
type Rerank struct {
	Field      Name
	Vector     Expr // as Near.Vector
	Candidates Expr // as Near.EF
	Pos
}

// Fuse is `fuse [k N] [candidates N]`: it combines the rows of a match and a near by reciprocal rank fusion.
type Fuse struct {
	K          Expr // as Limit
	Candidates Expr // as Near.EF
	Pos
}

// Set is `set C {...}`. Where, Order, Limit and Require are nil if not given; Limit and
// Require hold what Get.Limit holds.
type Set struct {
	Collection Name
	Items      []Item // at least one, none given twice or inside another
	Where      Expr
	Order      []OrderKey
	Limit      Expr
	Returning  *Returning
	Require    Expr
}

// Delete is `del C`, with Set's clauses.
type Delete struct {
	Collection Name
	Where      Expr
	Order      []OrderKey
	Limit      Expr
	Returning  *Returning
	Require    Expr
}

// Returning makes an insert, a set or a delete return the rows it touched; nil Items are all fields.
type Returning struct{ Items []SelectItem }

// Collections is `collections`.
type Collections struct{}

// Describe is `describe C`.
type Describe struct{ Collection Name }

// Compact is `compact` of the whole file, or of one collection if Collection is given.
type Compact struct{ Collection *Name }

// Explain is `explain get ...`.
type Explain struct{ Get *Get }

func (*CreateCollection) statement() {}
func (*DropCollection) statement()   {}
func (*CreateIndex) statement()      {}
func (*Put) statement()              {}
func (*Get) statement()              {}
func (*Set) statement()              {}
func (*Delete) statement()           {}
func (*Collections) statement()      {}
func (*Describe) statement()         {}
func (*Compact) statement()          {}
func (*Explain) statement()          {}

// Expr is one expression, always a pointer: *Literal, *Param, *Path, *ListExpr, *ObjectExpr,
// *Unary, *Binary, *Logic, *Case, *Call, *Aggregate or, after in, *InnerGet. Its position is its first character, or for an
// operator between operands (Binary, Logic, `is null`) that of the operator.
type Expr interface{ Position() Pos }

// Literal is a constant: null, bool, int, float, decimal or text. An int is exact; a number with
// a fraction or an exponent is a float if the float's shortest form is the same number, else
// a decimal with its digits.
type Literal struct {
	Value doc.Value
	Pos
}

// Param is `$N`, from 1.
type Param struct {
	N int
	Pos
}

// Path is a field, or a field and the keys that lead into its value: 1 to 64 parts.
type Path struct {
	Parts []string
	Pos
}

// ListExpr is `[a, b]`.
type ListExpr struct {
	Items []Expr
	Pos
}

// ObjectExpr is `{k: v, "k": v}`; each key is a path of one part, and keys are unique.
type ObjectExpr struct {
	Items []Item
	Pos
}

// Unary is Not, Neg, IsNull or IsNotNull of X.
type Unary struct {
	Op Op
	X  Expr
	Pos
}

// Binary is a comparison or arithmetic. For In, Y is a *ListExpr, a *Param or an *InnerGet. No operand of a
// comparison is the literal null.
type Binary struct {
	Op   Op
	X, Y Expr
	Pos
}

// Logic is a flat chain of two or more terms joined by And or Or, none of them a Logic of the same
// operator, regardless of parentheses in the text.
type Logic struct {
	Op    Op
	Terms []Expr
	Pos
}

// Case is `case when ... then ... else ... end`; Else is the literal null if not written.
type Case struct {
	Whens []When
	Else  Expr
	Pos
}

// When is one arm of a Case.
type When struct{ Cond, Then Expr }

// Call is a function of the language by its lower-case name, with as many arguments as it takes.
type Call struct {
	Name string
	Args []Expr
	Pos
}

// Aggregate is a function over the documents of a group: count, sum, avg, min or max of a field, count of a field's
// distinct values, or count(*), for which Arg is nil. It can only be a whole item of a select, a key of an order or an
// operand in a having.
type Aggregate struct {
	Name     string
	Distinct bool // of count with an Arg
	Arg      *Name
	Pos
}

// InnerGet is the `(get ...)` after an in: a get that selects one value per row and has no count and no require.
type InnerGet struct {
	Get *Get
	Pos // of the parenthesis
}

// Op is an operator.
type Op uint8

// The operators.
const (
	Eq        Op = iota + 1 // =
	Ne                      // !=
	Lt                      // <
	Le                      // <=
	Gt                      // >
	Ge                      // >=
	In                      // in
	Has                     // has: a list contains
	Contains                // ~: a text contains
	And                     // and
	Or                      // or
	Not                     // not
	Add                     // +
	Sub                     // -
	Mul                     // *
	Div                     // /
	Mod                     // %
	Neg                     // - before an operand
	IsNull                  // is null
	IsNotNull               // is not null
)
