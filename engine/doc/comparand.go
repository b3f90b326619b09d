package doc

// Comparand is v as what values of the type are compared with. It is what Convert returns, but a number that meets
// numbers keeps its exact value where one of the type would be rounded, out of range or no such number. The same holds
// for the elements of a list.
func (t Type) Comparand(v Value, what string) (Value, error) {
	switch {
	case v.Kind == Null:
		return v, nil
	case t.numeric():
		number := v.Number()
		if f := number.Float(); !number.IsNumber() || number.Kind == Float && f-f != 0 {
			return Value{}, t.wants(v, what)
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

// appendComparand encodes what Comparand returns at the end of dst.
func (t Type) appendComparand(dst []byte, v Value, what string) ([]byte, error) {
	v, err := t.Comparand(v, what)
	if err != nil {
		return nil, err
	}
	return Append(dst, v), nil
}
