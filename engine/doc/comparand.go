package doc

// Comparand converts v to what values of the type are compared with. It returns the same as Convert, except that a
// number compared with numbers keeps its exact value if the type would round it or cannot hold it. The same applies to
// the elements of a list.
func (t Type) Comparand(v Value, what string) (Value, error) {
	switch {
	case v.Kind == Null, v.Kind == Int && t.numeric():
		return v, nil
	case t.numeric():
		number := v.Number()
		if f := number.Float(); !number.IsNumber() || number.Kind == Float && f-f != 0 {
			return Value{}, t.expected(v, what)
		}
		return number, nil
	case t.Kind == TypeList && (Type{Kind: t.Elem}).numeric():
		raw, err := t.appendList(nil, v, what, Type.appendComparand)
		return Raw(raw).Value(), err
	}
	return t.Convert(v, what)
}

// numeric reports whether the type's values are numbers.
func (t Type) numeric() bool { return t.Kind == TypeInt || t.Kind == TypeFloat }

// appendComparand appends the encoding of what Comparand returns to dst.
func (t Type) appendComparand(dst []byte, v Value, what string) ([]byte, error) {
	v, err := t.Comparand(v, what)
	if err != nil {
		return nil, err
	}
	return Append(dst, v), nil
}
