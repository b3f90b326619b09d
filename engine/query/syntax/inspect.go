package syntax

// Inspect calls fn with x and every expression in it, including those of an inner get's conditions, outermost first. x may
// be nil.
func Inspect(x Expr, fn func(Expr)) {
	if x == nil {
		return
	}
	fn(x)
	switch x := x.(type) {
	case *ListExpr:
		inspectAll(x.Items, fn)
	case *ObjectExpr:
		for _, item := range x.Items {
			Inspect(item.Value, fn)
		}
	case *Unary:
		Inspect(x.X, fn)
	case *Binary:
		Inspect(x.X, fn)
		Inspect(x.Y, fn)
	case *Logic:
		inspectAll(x.Terms, fn)
	case *Case:
		for _, when := range x.Whens {
			Inspect(when.Cond, fn)
			Inspect(when.Then, fn)
		}
		Inspect(x.Else, fn)
	case *Call:
		inspectAll(x.Args, fn)
	case *InnerGet:
		Inspect(x.Get.Where, fn)
		Inspect(x.Get.Having, fn)
	}
}

func inspectAll(xs []Expr, fn func(Expr)) {
	for _, x := range xs {
		Inspect(x, fn)
	}
}
