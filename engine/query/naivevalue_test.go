package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// containsFold tries every place.
func containsFold(s, sub string) bool {
	runes, sub := []rune(oneI.Replace(s)), oneI.Replace(sub)
	n := utf8.RuneCountInString(sub)
	for i := 0; i+n <= len(runes); i++ {
		if strings.EqualFold(string(runes[i:i+n]), sub) {
			return true
		}
	}
	return false
}

// fitsNaive is like, by a regular expression.
func fitsNaive(s, pattern string) bool {
	var re strings.Builder
	opens, closes, escaped, runes := false, false, false, []rune(oneI.Replace(pattern))
	for i, r := range runes {
		closes = false
		switch {
		case !escaped && r == '\\' && i+1 < len(runes):
			escaped = true
			continue
		case !escaped && (r == '*' || r == '%'):
			opens, closes = opens || i == 0, true
			re.WriteString(".*")
		default:
			re.WriteString(regexp.QuoteMeta(string(r)))
		}
		escaped = false
	}
	text := re.String()
	if !opens || closes {
		text += ".*"
	}
	if !closes || opens {
		text = ".*" + text
	}
	return regexp.MustCompile("(?is)^" + text + "$").MatchString(oneI.Replace(s))
}

// oneI writes every i, with its dot or without, as one letter.
var oneI = strings.NewReplacer("I\u0307", "i", "i\u0307", "i", "İ\u0307", "i", "ı\u0307", "i", "I", "i", "İ", "i", "ı", "i")

// rat is a number's exact value, nil for anything else.
func rat(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	case moment:
		return new(big.Rat).SetInt64(int64(v))
	}
	return nil
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case int64, float64:
		return 2
	case string:
		return 3
	case []any:
		return 4
	case map[string]any:
		return 5
	}
	return 6
}

// order is the total order of values.
func order(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch x := a.(type) {
	case nil:
		return 0
	case bool:
		return cmp.Compare(bit(x), bit(b.(bool)))
	case string:
		return strings.Compare(x, b.(string))
	case []any:
		return slices.CompareFunc(x, b.([]any), order)
	case map[string]any:
		y := b.(map[string]any)
		kx, ky := keys(x), keys(y)
		for i := 0; i < len(kx) && i < len(ky); i++ {
			if c := strings.Compare(kx[i], ky[i]); c != 0 {
				return c
			}
			if c := order(x[kx[i]], y[ky[i]]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(kx), len(ky))
	}
	return rat(a).Cmp(rat(b))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func arithmeticNaive(op syntax.Op, a, b any) (any, error) {
	if a == nil || b == nil {
		return nil, nil
	}
	x, y := rat(a), rat(b)
	if x == nil || y == nil {
		return nil, errNaive
	}
	_, ta := a.(moment)
	_, tb := b.(moment)
	_, fa := a.(float64)
	_, fb := b.(float64)
	switch {
	case ta && tb && op != syntax.Sub, tb && !ta && op != syntax.Add, (ta || tb) && op != syntax.Add && op != syntax.Sub, (ta || tb) && (fa || fb):
		return nil, errNaive
	case fa || fb:
		return floatNaive(op, a, b)
	}
	r := new(big.Int)
	switch op {
	case syntax.Add:
		r.Add(x.Num(), y.Num())
	case syntax.Sub:
		r.Sub(x.Num(), y.Num())
	case syntax.Mul:
		r.Mul(x.Num(), y.Num())
	default:
		if y.Sign() == 0 {
			return nil, errNaive
		}
		if op == syntax.Div {
			r.Quo(x.Num(), y.Num())
		} else {
			r.Rem(x.Num(), y.Num())
		}
	}
	if !r.IsInt64() {
		return nil, errNaive
	}
	if ta != tb {
		return moment(r.Int64()), nil
	}
	return r.Int64(), nil
}

func floatNaive(op syntax.Op, a, b any) (any, error) {
	f := func(v any) float64 {
		if n, ok := v.(int64); ok {
			return float64(n)
		}
		return v.(float64)
	}
	x, y := f(a), f(b)
	var r float64
	switch op {
	case syntax.Add:
		r = x + y
	case syntax.Sub:
		r = x - y
	case syntax.Mul:
		r = x * y
	case syntax.Div:
		r = x / y
	case syntax.Mod:
		r = math.Mod(x, y)
	}
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return nil, errNaive
	}
	return r, nil
}

// spelled is a value as the answer's JSON spells it.
func spelled(v any) string {
	var b bytes.Buffer
	writeText(&b, v)
	return b.String()
}

func writeText(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case moment:
		b.WriteString(`"` + string(doc.AppendTimestamp(nil, int64(v))) + `"`)
	case float64:
		b.Write(doc.AppendFloat(nil, v))
	case string:
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			panic(err)
		}
		b.Truncate(b.Len() - 1)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range keys(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, k)
			b.WriteByte(':')
			writeText(b, v[k])
		}
		b.WriteByte('}')
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
}
