package syntax

// AddField is `alter collection C add field F type [collate C] [@index]`. The field is never required.
type AddField struct {
	Collection Name
	Field      FieldDef
}

// DropField is `alter collection C drop field F`.
type DropField struct {
	Collection Name
	Field      Name
}

// RenameField is `alter collection C rename field F to G`.
type RenameField struct {
	Collection Name
	Field      Name
	To         Name
}

func (*AddField) statement()    {}
func (*DropField) statement()   {}
func (*RenameField) statement() {}

func (st *AddField) String() string {
	return string(st.Field.append([]byte("alter collection " + st.Collection.Text + " add field ")))
}

func (st *DropField) String() string {
	return "alter collection " + st.Collection.Text + " drop field " + st.Field.Text
}

func (st *RenameField) String() string {
	return "alter collection " + st.Collection.Text + " rename field " + st.Field.Text + " to " + st.To.Text
}

// alter reads the statement after the word.
func (p *parser) alter() (Statement, error) {
	if err := p.wantWord("collection", "collection after alter"); err != nil {
		return nil, err
	}
	c, err := p.collection()
	if err != nil {
		return nil, err
	}
	verb := p.tok
	switch {
	case p.take("add"), p.take("drop"), p.take("rename"):
	default:
		return nil, p.unexpected("add, drop or rename")
	}
	if err := p.wantWord("field", "field after "+verb.text); err != nil {
		return nil, err
	}
	switch {
	case verb.is("add"):
		return p.addField(c)
	case verb.is("drop"):
		f, err := p.wholeField()
		return &DropField{Collection: c, Field: f}, err
	}
	st := &RenameField{Collection: c}
	if st.Field, err = p.wholeField(); err != nil {
		return nil, err
	}
	if err := p.wantWord("to", "to and the field's new name"); err != nil {
		return nil, err
	}
	st.To, err = p.newField()
	return st, err
}

// addField reads the field's declaration.
func (p *parser) addField(c Name) (Statement, error) {
	st := &AddField{Collection: c}
	var err error
	if st.Field.Name, err = p.newField(); err != nil {
		return nil, err
	}
	if st.Field.Type, err = p.fieldType(); err != nil {
		return nil, err
	}
	for p.tok.kind != kindEnd && p.tok.kind != ';' {
		if p.tok.is("required") {
			return nil, p.invalid(p.tok.pos, "a field added later cannot be required: the documents there are have none")
		}
		known, err := p.property(&st.Field)
		switch {
		case err != nil:
			return nil, err
		case !known:
			return nil, p.unexpected("collate, an @index or the end of the statement")
		}
	}
	return st, nil
}

// newField reads the new name of a field.
func (p *parser) newField() (Name, error) {
	n, err := p.wholeField()
	if err == nil {
		err = p.notValue(n)
	}
	return n, err
}

// wholeField reads the name of a field that is not the beginning of a path.
func (p *parser) wholeField() (Name, error) {
	n, err := p.name("a field's name")
	if err == nil && p.tok.kind == '.' {
		err = p.invalid(n.Pos, "alter takes a field's name, and not a path into %s", shorten(n.Text))
	}
	return n, err
}
