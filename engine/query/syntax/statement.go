package syntax

const statementNames = "a statement (get, put, insert, set, del, create, drop, alter, explain, describe, collections, compact)"

// statement reads the whole text.
func (p *parser) statement() (Statement, error) {
	st, err := p.verb()
	if err != nil {
		return nil, err
	}
	if p.takeKind(';') && p.tok.kind != kindEnd {
		return nil, p.unexpected("nothing after the semicolon")
	}
	if p.tok.kind != kindEnd {
		return nil, p.unexpected(p.rest.wanted("the end of the statement"))
	}
	return st, nil
}

// verb reads a statement by its first word.
func (p *parser) verb() (st Statement, err error) {
	switch {
	case p.take("get"):
		return p.get()
	case p.take("select"):
		return p.selectFrom()
	case p.take("explain"):
		return p.explain()
	case p.take("put"):
		return p.put(false)
	case p.take("insert"):
		return p.put(true)
	case p.take("set"):
		return p.set()
	case p.take("del"):
		return p.del()
	case p.take("create"):
		return p.create()
	case p.take("drop"):
		return p.drop()
	case p.take("collections"):
		return &Collections{}, nil
	case p.take("describe"):
		c, err := p.collection()
		return &Describe{Collection: c}, err
	case p.take("compact"):
		return p.compact()
	case p.take("alter"):
		return p.alter()
	}
	return nil, p.unexpected(statementNames)
}

func (p *parser) collection() (Name, error) { return p.name("a collection's name") }

func (p *parser) explain() (Statement, error) {
	switch {
	case p.take("get"):
		st, err := p.get()
		return &Explain{Get: st}, err
	case p.take("select"):
		st, err := p.selectFrom()
		return &Explain{Get: st}, err
	}
	return nil, p.unexpected("a get to explain")
}

func (p *parser) compact() (Statement, error) {
	if p.tok.kind == kindEnd || p.tok.kind == ';' {
		return &Compact{}, nil
	}
	c, err := p.name("a collection's name or the end of the statement")
	return &Compact{Collection: &c}, err
}

func (p *parser) drop() (Statement, error) {
	if err := p.wantWord("collection", "collection after drop"); err != nil {
		return nil, err
	}
	st := &DropCollection{}
	var err error
	if p.tok.is("if") && p.peek().is("exists") {
		p.advance()
		p.advance()
		st.IfExists = true
	}
	st.Name, err = p.collection()
	return st, err
}

func (p *parser) create() (Statement, error) {
	switch {
	case p.take("collection"):
		return p.createCollection()
	case p.take("index"):
		return p.createIndex()
	}
	return nil, p.unexpected("collection or index after create")
}

// ifNotExists reads the three words, if they are here.
func (p *parser) ifNotExists() (bool, error) {
	if !p.tok.is("if") || !p.peek().is("not") {
		return false, nil
	}
	p.advance()
	p.advance()
	return true, p.wantWord("exists", "exists after if not")
}

func (p *parser) createCollection() (Statement, error) {
	st := &CreateCollection{}
	var err error
	if st.IfNotExists, err = p.ifNotExists(); err != nil {
		return nil, err
	}
	if st.Name, err = p.collection(); err != nil {
		return nil, err
	}
	if err = p.want('(', "( and the collection's fields"); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for {
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		if seen[f.Name.Text] {
			return nil, p.invalid(f.Name.Pos, "field %s is declared twice", f.Name.Text)
		}
		seen[f.Name.Text] = true
		st.Fields = append(st.Fields, f)
		if p.takeKind(',') {
			continue
		}
		return st, p.want(')', "a comma and the next field, or )")
	}
}

// field reads `name type [required] [collate C] [@index]`.
func (p *parser) field() (f FieldDef, err error) {
	if f.Name, err = p.name("a field's name"); err != nil {
		return f, err
	}
	if err = p.notValue(f.Name); err != nil {
		return f, err
	}
	if f.Type, err = p.fieldType(); err != nil {
		return f, err
	}
	for p.tok.kind != ',' && p.tok.kind != ')' {
		known, err := p.property(&f)
		switch {
		case err != nil:
			return f, err
		case !known:
			return f, p.unexpected("required, collate, an @index, a comma or )")
		}
	}
	return f, nil
}

// notValue fails if a field's name is a literal.
func (p *parser) notValue(n Name) error {
	switch n.Text {
	case "true", "false", "null":
		return p.invalid(n.Pos, "%s is a value and cannot be a field's name", n.Text)
	}
	return nil
}

// property reads one of the words after a field's type. It returns false if there is none.
func (p *parser) property(f *FieldDef) (known bool, err error) {
	switch {
	case p.tok.is("required") && f.Required:
		return true, p.invalid(p.tok.pos, "field %s is required already", f.Name.Text)
	case p.tok.kind == '@' && f.Index.Kind != 0:
		return true, p.invalid(p.tok.pos, "field %s has an index already", f.Name.Text)
	case p.tok.is("collate") && f.Collate != 0:
		return true, p.invalid(p.tok.pos, "field %s has a collation already", f.Name.Text)
	case p.take("required"):
		f.Required = true
	case p.tok.kind == '@':
		f.Index, err = p.index()
	case p.take("collate"):
		f.Collate, err = p.collation()
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) createIndex() (Statement, error) {
	st := &CreateIndex{}
	var err error
	if st.IfNotExists, err = p.ifNotExists(); err != nil {
		return nil, err
	}
	if err = p.wantWord("on", "on and a collection's name"); err != nil {
		return nil, err
	}
	if st.Collection, err = p.collection(); err != nil {
		return nil, err
	}
	parentheses := p.takeKind('(')
	if st.On, err = p.path("the field or path to index"); err != nil {
		return nil, err
	}
	if parentheses {
		if err = p.want(')', ") after the field or path to index"); err != nil {
			return nil, err
		}
	}
	st.Index, err = p.index()
	return st, err
}

// put reads `C {...}`, `C [{...}, ...]` or `C $1`, with an optional into if insert is set.
func (p *parser) put(insert bool) (Statement, error) {
	st := &Put{Insert: insert}
	if insert && p.tok.is("into") && p.peek().kind == kindName {
		p.advance()
	}
	var err error
	if st.Collection, err = p.collection(); err != nil {
		return nil, err
	}
	st.Pos = p.tok.pos
	switch p.tok.kind {
	case kindParam:
		x, err := p.param()
		if err != nil {
			return nil, err
		}
		st.Param = x.N
	case '{':
		row, err := p.row()
		if err != nil {
			return nil, err
		}
		st.Rows = []Object{row}
	case '[':
		p.advance()
		if st.Rows, err = p.rows(); err != nil {
			return nil, err
		}
	default:
		return nil, p.unexpected("a document {...}, a list of them or a parameter")
	}
	if insert {
		return st, p.insertClauses(st)
	}
	if p.tok.is("if") && p.peek().is("absent") {
		return nil, p.invalid(p.tok.pos, "if absent is for an insert; a put replaces the document of its id")
	}
	return st, nil
}

// insertClauses reads `[if absent [else set {...}]] [returning items]`.
func (p *parser) insertClauses(st *Put) (err error) {
	p.rest.more = "if absent, returning, "
	if p.take("if") {
		if err := p.wantWord("absent", "absent after if"); err != nil {
			return err
		}
		st.IfAbsent = true
		p.rest.more = "else set, returning, "
		if p.take("else") {
			if err := p.wantWord("set", "set after else"); err != nil {
				return err
			}
			if st.Else, err = p.setItems(); err != nil {
				return err
			}
			p.rest.more = "returning, "
		}
	}
	if p.take("returning") {
		st.Returning, err = p.returning()
	}
	return err
}

// rows reads the documents after [.
func (p *parser) rows() ([]Object, error) {
	out := []Object{}
	if p.takeKind(']') {
		return out, nil
	}
	for {
		if p.tok.kind != '{' {
			return nil, p.unexpected("a document {...}")
		}
		row, err := p.row()
		if err != nil {
			return nil, err
		}
		out = append(out, row)
		if p.takeKind(',') {
			continue
		}
		return out, p.want(']', "a comma and the next document, or ]")
	}
}

// row reads the fields and paths of a document.
func (p *parser) row() (Object, error) {
	at := p.tok.pos
	items, err := p.items()
	return Object{Items: items, Pos: at}, err
}
