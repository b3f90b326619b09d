package syntax

var opNames = [...]string{
	Eq: "=", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", In: "in", Has: "has", Contains: "~",
	And: "and", Or: "or", Not: "not",
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%", Neg: "-",
	IsNull: "is null", IsNotNull: "is not null",
}

// operandOf describes what is expected after each operator.
var operandOf = func() (out [len(opNames)]string) {
	for op, name := range opNames {
		out[op] = "a value after " + name
	}
	out[And] = "a condition after and"
	out[Or] = "a condition after or"
	return out
}()

// String returns the operator as it is written.
func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return ""
}
