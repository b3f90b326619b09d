package doc

import (
	"math"
	"strings"
	"testing"

	"fenec/engine/fail"
)

var (
	vector3  = Type{Kind: TypeVector, Dim: 3}
	half3    = Type{Kind: TypeVector, Dim: 3, F16: true}
	sparse10 = Type{Kind: TypeSparse, Dim: 10}
)

func listOf(values ...Value) Value {
	raw, at := OpenList(nil)
	for _, v := range values {
		raw = Append(raw, v)
	}
	return closed(raw, at)
}

// typeOf returns the type of a name.
func typeOf(t *testing.T, name string) Type {
	for k := TypeBool; k < TypeList; k++ {
		for _, typ := range []Type{{Kind: k}, {Kind: TypeList, Elem: k}} {
			if typ.String() == name && typ.known() {
				return typ
			}
		}
	}
	for _, typ := range []Type{vector3, half3, sparse10} {
		if typ.String() == name && typ.known() {
			return typ
		}
	}
	t.Fatalf("no type is called %s", name)
	return Type{}
}

func TestTypeNames(t *testing.T) {
	for _, name := range []string{"bool", "int", "float", "text", "bytes", "timestamp", "json", "[bool]", "[int]", "[float]", "[text]", "[bytes]", "[timestamp]", "[json]", "vector<3>", "vector<3, f16>", "sparse<10>"} {
		typeOf(t, name)
	}
	for _, typ := range []Type{{}, {Kind: TypeList}, {Kind: TypeList, Elem: TypeList}, {Kind: TypeInt, Elem: TypeInt}, {Kind: TypeSparse + 1}, {Kind: TypeVector}, {Kind: TypeSparse, Dim: 3, F16: true}, {Kind: TypeVector, Dim: MaxDim + 1}, {Kind: TypeSparse, Dim: MaxSparseDim + 1}} {
		if typ.known() {
			t.Errorf("%+v passes for a type", typ)
		}
	}
}

func untyped(s string) Value { return Value{Kind: Untyped, B: []byte(s)} }

func text(s string) Value { return TextValue([]byte(s)) }

func TestValuesOfATypeAreTaken(t *testing.T) {
	for _, tc := range []struct {
		typ  string
		v    Value
		want string
	}{
		{"bool", BoolValue(true), `true`},
		{"bool", untyped("false"), `false`},
		{"int", IntValue(math.MinInt64), `-9223372036854775808`},
		{"int", FloatValue(5), `5`},
		{"int", FloatValue(-1 << 63), `-9223372036854775808`},
		{"int", decimalOf("1e3"), `1000`},
		{"int", Value{Kind: Decimal, B: []byte("9007199254740993.0")}, `9007199254740993`},
		{"int", untyped("5"), `5`},
		{"int", untyped("5.0"), `5`},
		{"int", Value{}, `null`},
		{"float", IntValue(3), `3`},
		{"float", FloatValue(math.Copysign(0, -1)), `0`},
		{"float", decimalOf("0.10000000000000000000001"), `0.1`},
		{"float", IntValue(math.MaxInt64), `9223372036854776000`},
		{"float", untyped("-2.5e3"), `-2500`},
		{"text", text("é"), `"é"`},
		{"text", untyped("5"), `"5"`},
		{"text", untyped(""), `""`},
		{"bytes", text("AAEC/w=="), `"AAEC/w=="`},
		{"bytes", text("AAEC/w"), `"AAEC/w=="`},
		{"bytes", untyped(""), `""`},
		{"bytes", Value{Kind: Bytes, B: []byte{0xff}}, `"/w=="`},
		{"timestamp", text("2024-05-01T10:00:00+02:00"), `"2024-05-01T08:00:00Z"`},
		{"timestamp", IntValue(-1), `"1969-12-31T23:59:59.999Z"`},
		{"timestamp", FloatValue(1e3), `"1970-01-01T00:00:01Z"`},
		{"timestamp", untyped("2024-05-01"), `"2024-05-01T00:00:00Z"`},
		{"timestamp", untyped("1000"), `"1970-01-01T00:00:01Z"`},
		{"timestamp", TimestampValue(0), `"1970-01-01T00:00:00Z"`},
		{"json", untyped(`{"b":1,"a":[2]}`), `{"a":[2],"b":1}`},
		{"json", untyped(`{"b":1`), `"{\"b\":1"`},
		{"json", untyped(`null`), `null`},
		{"json", TimestampValue(0), `"1970-01-01T00:00:00Z"`},
		{"json", Value{Kind: Bytes, B: []byte{0xff}}, `"/w=="`},
		{"json", FloatValue(math.Copysign(0, -1)), `0`},
		{"[int]", encode(t, `[1,2.0,3e0]`).Value(), `[1,2,3]`},
		{"[int]", encode(t, `[]`).Value(), `[]`},
		{"[int]", untyped(`[1,2]`), `[1,2]`},
		{"[timestamp]", encode(t, `["2024-05-01",0]`).Value(), `["2024-05-01T00:00:00Z","1970-01-01T00:00:00Z"]`},
		{"[json]", encode(t, `[1,null,{"a":"b"}]`).Value(), `[1,null,{"a":"b"}]`},
		{"vector<3>", encode(t, `[1,-0.0,0.1]`).Value(), `[1,0,0.1]`},
		{"vector<3>", encode(t, `[0.30000001192092893,16777217,1e-46]`).Value(), `[0.3,16777216,0]`},
		{"vector<3>", encode(t, `[3.4028235e38,-1e-45,1.00000017881393432617187499]`).Value(), `[3.4028235e+38,-1e-45,1.0000001]`},
		{"vector<3>", encode(t, `[1.00000017881393432617187501,9223372036854775809,1e3]`).Value(), `[1.0000002,9223372000000000000,1000]`},
		{"vector<3>", text("[1,2,3]"), `[1,2,3]`},
		{"vector<3>", text("[-0,-0.0,-1e-60]"), `[0,0,0]`},
		{"vector<3>", untyped(" [ 1 , -2.5e0 ,3]\n"), `[1,-2.5,3]`},
		{"vector<3>", madeVector(false, []float32{1, 2, 3}), `[1,2,3]`},
		{"vector<3>", madeVector(true, []float32{1, 2, 0.1}), `[1,2,0.099975586]`},
		{"vector<3>", Value{}, `null`},
		{"vector<3, f16>", encode(t, `[0.1,65504,-1e-9]`).Value(), `[0.099975586,65504,0]`},
		{"vector<3, f16>", text("[65519.99,-6e-8,2049]"), `[65504,-5.9604645e-8,2048]`},
		{"vector<3, f16>", madeVector(false, []float32{1, 2, 0.3}), `[1,2,0.30004883]`},
		{"vector<3, f16>", madeVector(true, []float32{1, 2, 0.3}), `[1,2,0.30004883]`},
		{"sparse<10>", text("{1:0.5,10:-2}/10"), `"{1:0.5,10:-2}/10"`},
		{"sparse<10>", untyped(" { 7 : 1 , 3 : 0.1 , 5 : 0 , 4:-1e-50 } / 10 "), `"{3:0.1,7:1}/10"`},
		{"sparse<10>", text("{}/10"), `"{}/10"`},
		{"sparse<10>", text("{2:0}/10"), `"{}/10"`},
		{"sparse<10>", madeSparse(10, "{2:1}/10"), `"{2:1}/10"`},
		{"json", madeVector(false, []float32{1, 0.1, 3e38}), `[1,0.1,3e+38]`},
		{"json", madeSparse(10, "{2:1}/10"), `"{2:1}/10"`},
		{"[float]", encode(t, `[]`).Value(), `[]`},
	} {
		t.Run(tc.typ+" takes "+describe(tc.v), func(t *testing.T) {
			typ := typeOf(t, tc.typ)
			raw, err := typ.Append(nil, tc.v, "field f")
			if err != nil {
				t.Fatal(err)
			}
			if got := string(AppendJSON(nil, raw)); got != tc.want {
				t.Errorf("stored as %s, want %s", got, tc.want)
			}
			if !wholeValue(raw) {
				t.Error("what is stored is not valid")
			}
			v, err := typ.Convert(tc.v, "field f")
			if tc.v.Kind == Untyped && tc.typ == "json" {
				return
			}
			if err != nil || !Equal(v, Raw(raw).Value()) {
				t.Errorf("as a constant it is %s, %v", describe(v), err)
			}
		})
	}
}

func TestValuesOfAnotherTypeAreRefused(t *testing.T) {
	for _, tc := range []struct {
		typ  string
		v    Value
		want string
	}{
		{"bool", IntValue(1), `field f: expected bool, got number 1`},
		{"bool", untyped("yes"), `field f: expected bool, got text "yes"`},
		{"int", text("abc"), `field f: expected int, got text "abc"`},
		{"int", text("5"), `field f: expected int, got text "5"`},
		{"int", untyped("abc"), `field f: expected int, got text "abc"`},
		{"int", untyped(""), `field f: expected int, got text ""`},
		{"int", untyped("5.5"), `field f: expected int, got text "5.5"`},
		{"int", FloatValue(2.5), `field f: expected int, got number 2.5`},
		{"int", FloatValue(1 << 63), `field f: expected int, got number 9223372036854776000, which is out of range for 64 bits`},
		{"int", decimalOf("9223372036854775808"), `field f: expected int, got number 9223372036854775808, which is out of range for 64 bits`},
		{"int", decimalOf("-1e400"), `field f: expected int, got number -1e+400, which is out of range for 64 bits`},
		{"int", FloatValue(math.NaN()), `field f: expected int, got a number that is not finite`},
		{"int", BoolValue(true), `field f: expected int, got bool true`},
		{"int", TimestampValue(0), `field f: expected int, got timestamp 1970-01-01T00:00:00Z`},
		{"float", text("1"), `field f: expected float, got text "1"`},
		{"float", decimalOf("1e400"), `field f: expected float, got number 1e+400, which is out of range`},
		{"float", FloatValue(math.Inf(1)), `field f: expected float, got a number that is not finite`},
		{"float", untyped("NaN"), `field f: expected float, got text "NaN"`},
		{"text", IntValue(1), `field f: expected text, got number 1`},
		{"text", text("a\xff"), `field f: expected text, got invalid UTF-8`},
		{"text", text(strings.Repeat("é", 30) + "\xff"), `field f: expected text, got invalid UTF-8`},
		{"bytes", text("A"), `field f: expected bytes as base64 text, got text "A"`},
		{"bytes", text("AA\nA="), `field f: expected bytes as base64 text, got text "AA\nA="`},
		{"bytes", text("AB=="), `field f: expected bytes as base64 text, got text "AB=="`},
		{"bytes", IntValue(1), `field f: expected bytes, got number 1`},
		{"timestamp", text("soon"), `field f: expected timestamp as ISO-8601 text or milliseconds, got text "soon"`},
		{"timestamp", FloatValue(0.5), `field f: expected timestamp as ISO-8601 text or milliseconds, got number 0.5`},
		{"timestamp", text("1000"), `field f: expected timestamp as ISO-8601 text or milliseconds, got text "1000"`},
		{"json", FloatValue(math.Inf(1)), `field f: expected json, got a number that is not finite`},
		{"json", text("\xff"), `field f: expected json, got invalid UTF-8`},
		{"[int]", IntValue(1), `field f: expected [int], got number 1`},
		{"[int]", untyped("1,2"), `field f: expected [int], got text "1,2"`},
		{"[int]", encode(t, `[1,null]`).Value(), `field f: expected [int], got null as element 2`},
		{"[int]", encode(t, `[1,"a"]`).Value(), `an element of field f: expected int, got text "a"`},
		{"[text]", encode(t, `{}`).Value(), `field f: expected [text], got an object`},
		{"text", encode(t, `[]`).Value(), `field f: expected text, got a list`},
		{"vector<3>", encode(t, `[1,2]`).Value(), `field f: expected vector<3>, got a list of 2 numbers`},
		{"vector<3>", encode(t, `[1]`).Value(), `field f: expected vector<3>, got a list of 1 number`},
		{"vector<3>", encode(t, `[]`).Value(), `field f: expected vector<3>, got a list of 0 numbers`},
		{"vector<3>", text("[1,2,3,4]"), `field f: expected vector<3>, got a list of 4 numbers`},
		{"vector<3>", text("[]"), `field f: expected vector<3>, got a list of 0 numbers`},
		{"vector<3>", madeVector(false, []float32{1, 2}), `field f: expected vector<3>, got a vector of 2 numbers`},
		{"vector<3>", encode(t, `[1,"2",3]`).Value(), `field f: expected vector<3>, got text "2" as number 2`},
		{"vector<3>", encode(t, `[1,2,null]`).Value(), `field f: expected vector<3>, got null as number 3`},
		{"vector<3>", encode(t, `[[1,2,3]]`).Value(), `field f: expected vector<3>, got a list as number 1`},
		{"vector<3>", encode(t, `[1,2,1e39]`).Value(), `field f: expected vector<3>, got 1e+39 as number 3, which is past the range of f32`},
		{"vector<3>", encode(t, `[1,-1e400,3]`).Value(), `field f: expected vector<3>, got -1e+400 as number 2, which is past the range of f32`},
		{"vector<3>", encode(t, `[3.4028236e38,1,1]`).Value(), `field f: expected vector<3>, got 3.4028236e+38 as number 1, which is past the range of f32`},
		{"vector<3>", listOf(FloatValue(math.NaN()), IntValue(1), IntValue(1)), `field f: expected vector<3>, got a number that is not finite as number 1`},
		{"vector<3>", listOf(IntValue(1), FloatValue(math.Inf(1)), IntValue(1)), `field f: expected vector<3>, got a number that is not finite as number 2`},
		{"vector<3>", text("[1,2,NaN]"), `field f: expected vector<3>, got text "[1,2,NaN]", whose element 3 is not a number`},
		{"vector<3>", text("[1,2,]"), `field f: expected vector<3>, got text "[1,2,]", whose element 3 is not a number`},
		{"vector<3>", text("[1,,2]"), `field f: expected vector<3>, got text "[1,,2]", whose element 2 is not a number`},
		{"vector<3>", text("[1,2,1e39]"), `field f: expected vector<3>, got 1e39 as number 3, which is past the range of f32`},
		{"vector<3>", text("[1,2,3"), `field f: expected vector<3>, got text "[1,2,3", which does not end with ]`},
		{"vector<3>", text("[1,2,3]4"), `field f: expected vector<3>, got text "[1,2,3]4", which does not end with ]`},
		{"vector<3>", text("[1 2 3]"), `field f: expected vector<3>, got text "[1 2 3]", which does not end with ]`},
		{"vector<3>", text("1,2,3"), `field f: expected vector<3>, got text "1,2,3"`},
		{"vector<3>", untyped(""), `field f: expected vector<3>, got text ""`},
		{"vector<3>", IntValue(1), `field f: expected vector<3>, got number 1`},
		{"vector<3>", encode(t, `{}`).Value(), `field f: expected vector<3>, got an object`},
		{"vector<3>", madeSparse(3, "{1:1}/3"), `field f: expected vector<3>, got a sparse vector of 3 dimensions`},
		{"vector<3, f16>", encode(t, `[1,65520,3]`).Value(), `field f: expected vector<3, f16>, got 65520 as number 2, which is past the range of f16`},
		{"vector<3, f16>", text("[-7e4,1,3]"), `field f: expected vector<3, f16>, got -70000 as number 1, which is past the range of f16`},
		{"vector<3, f16>", text("[-7e4,1e39,3]"), `field f: expected vector<3, f16>, got 1e39 as number 2, which is past the range of f16`},
		{"vector<3, f16>", madeVector(true, []float32{1}), `field f: expected vector<3, f16>, got a vector of 1 number`},
		{"sparse<10>", text("{1:2}"), `field f: expected sparse<10> as text {index:weight,...}/10, got text "{1:2}"`},
		{"sparse<10>", text("{1:2,}/10"), `field f: expected sparse<10> as text {index:weight,...}/10, got text "{1:2,}/10"`},
		{"sparse<10>", text("{1.5:2}/10"), `field f: expected sparse<10> as text {index:weight,...}/10, got text "{1.5:2}/10"`},
		{"sparse<10>", text("{1:NaN}/10"), `field f: expected sparse<10> as text {index:weight,...}/10, got text "{1:NaN}/10"`},
		{"sparse<10>", text("{1:2}/10 x"), `field f: expected sparse<10> as text {index:weight,...}/10, got text "{1:2}/10 x"`},
		{"sparse<10>", encode(t, `{"1":2}`).Value(), `field f: expected sparse<10> as text {index:weight,...}/10, got an object`},
		{"sparse<10>", encode(t, `[1,2]`).Value(), `field f: expected sparse<10> as text {index:weight,...}/10, got a list`},
		{"sparse<10>", text("{1:2}/11"), `field f: expected sparse<10>, got text "{1:2}/11", which has 11 dimensions`},
		{"sparse<10>", text("{1:2}/1"), `field f: expected sparse<10>, got text "{1:2}/1", which has 1 dimension`},
		{"sparse<10>", text("{0:2}/10"), `field f: expected sparse<10>, got index 0, which is not from 1 to 10`},
		{"sparse<10>", text("{11:2}/10"), `field f: expected sparse<10>, got index 11, which is not from 1 to 10`},
		{"sparse<10>", text("{-1:0}/10"), `field f: expected sparse<10>, got index -1, which is not from 1 to 10`},
		{"sparse<10>", text("{3:1,2:1,3:0}/10"), `field f: expected sparse<10>, got the index 3 twice`},
		{"sparse<10>", text("{3:-1e39}/10"), `field f: expected sparse<10>, got -1e39 at index 3, which is past the range of f32`},
		{"sparse<10>", madeSparse(3, "{1:1}/3"), `field f: expected sparse<10>, got a sparse vector of 3 dimensions`},
		{"int", text(strings.Repeat("é", 30)), `field f: expected int, got text "` + strings.Repeat("é", 20) + `..."`},
	} {
		t.Run(tc.typ+" refuses "+describe(tc.v), func(t *testing.T) {
			typ := typeOf(t, tc.typ)
			_, err := typ.Append(nil, tc.v, "field f")
			if err == nil || err.Error() != tc.want || fail.KindOf(err) != fail.Invalid {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if _, err = typ.Convert(tc.v, "field f"); err == nil || err.Error() != tc.want {
				t.Errorf("as a constant: got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestAJSONValueIsPlainAllTheWayDown(t *testing.T) {
	raw, at := OpenObject(nil)
	raw = Append(AppendKey(raw, "when"), TimestampValue(1))
	raw = AppendKey(raw, "list")
	raw, inner := OpenList(raw)
	raw = Append(raw, Value{Kind: Bytes, B: []byte("x")})
	raw = Append(raw, FloatValue(math.Copysign(0, -1)))
	raw = Append(raw, untyped("1"))
	raw, err := Close(raw, inner)
	if err != nil {
		t.Fatal(err)
	}
	v := closed(raw, at)
	stored, err := Type{Kind: TypeJSON}.Append(nil, v, "field f")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(AppendJSON(nil, stored)), `{"list":["eA==",0,"1"],"when":"1970-01-01T00:00:00.001Z"}`; got != want || !wholeValue(stored) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAJSONValuePutTogetherIsHeldToItsDepth(t *testing.T) {
	v := encode(t, `{"a":1}`).Value()
	for range MaxNesting - 1 {
		raw, at := OpenList(nil)
		v = closed(Append(raw, v), at)
	}
	if _, err := (Type{Kind: TypeJSON}).Append(nil, v, "field f"); err != nil {
		t.Errorf("%d levels: %v", MaxNesting, err)
	}
	raw, at := OpenList(nil)
	v = closed(Append(raw, v), at)
	if _, err := (Type{Kind: TypeJSON}).Append(nil, v, "field f"); err == nil || !strings.Contains(err.Error(), "field f is nested more than 64 deep") {
		t.Errorf("%d levels: got %v", MaxNesting+1, err)
	}
}
