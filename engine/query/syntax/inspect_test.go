package syntax

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInspectFindsEveryExpression(t *testing.T) {
	condition := strings.Join([]string{
		"f1 = lower(f2)", "not (f3 is null)", "f4 in [f5, f6 + -f7]", "case when f8 then f9 else f10 end = len(f11)",
		"f12 in (get c select f13 where f14 = now())", "f15 ~ 'x' or f16 has f17", "f18 = {k: f19}",
	}, " and ")
	x, err := ParseCondition(condition)
	if err != nil {
		t.Fatal(err)
	}
	var fields, calls []string
	Inspect(x, func(x Expr) {
		switch x := x.(type) {
		case *Path:
			fields = append(fields, x.Parts[0])
		case *Call:
			calls = append(calls, x.Name)
		}
	})
	for i := 1; i <= 19; i++ {
		if name := fmt.Sprint("f", i); i != 13 && !slices.Contains(fields, name) { // f13 is no condition
			t.Errorf("%s is not found, among %v", name, fields)
		}
	}
	if got := strings.Join(calls, " "); got != "lower len now" {
		t.Errorf("the calls found are %s", got)
	}
	Inspect(nil, func(Expr) { t.Error("nothing has an expression") })
}
