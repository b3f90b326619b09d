package doc

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"fenec/engine/fail"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestJSONIsWrittenCanonically(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"keys come in order", `{"b":1,"a":{"d":2,"c":3}}`, `{"a":{"c":3,"d":2},"b":1}`},
		{"spaces go", " [ 1 , { } , [ ] ]\n", `[1,{},[]]`},
		{"escapes become characters", `"\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\"`, `"é😀/\b\f\n\r\t\"\\"`},
		{"control characters stay escaped", `"\u0000\u001f\u007f"`, "\"\\u0000\\u001f\u007f\""},
		{"the largest int64", `9223372036854775807`, `9223372036854775807`},
		{"the smallest int64", `-9223372036854775808`, `-9223372036854775808`},
		{"past an int64 the digits stay", `9223372036854775808`, `9223372036854775808`},
		{"more digits than a float64 has stay", `3.14159265358979323846`, `3.14159265358979323846`},
		{"an int64 that is written as a fraction", `9007199254740993.0`, `9007199254740993`},
		{"an int64 that is the shortest form of a float64 beside it", `7000000000001e5`, `700000000000100000`},
		{"zeros that mean nothing go", `1.50`, `1.5`},
		{"a whole float", `3.0`, `3`},
		{"an exponent", `1e3`, `1000`},
		{"minus zero", `-0`, `0`},
		{"minus zero as a fraction", `-0.0`, `0`},
		{"zero with an exponent", `0e99999999999`, `0`},
		{"a large float", `1e21`, `1e+21`},
		{"a float just below", `1e20`, `100000000000000000000`},
		{"a small float", `1e-7`, `1e-7`},
		{"a float just above", `1e-6`, `0.000001`},
		{"past all floats", `1.5e+0400`, `1.5e+400`},
		{"too small for a float", `25e-400`, `2.5e-399`},
		{"a decimal with an exponent that is written plain", `12345678901234567890123e-3`, `12345678901234567890.123`},
		{"a small decimal", `0.000012345678901234567890`, `0.00001234567890123456789`},
		{"a decimal just above 1e-6", `0.0000012345678901234567890`, `0.000001234567890123456789`},
		{"a smaller decimal", `0.00000012345678901234567890`, `1.234567890123456789e-7`},
		{"a large decimal", `1234567890123456789e30`, `1.234567890123456789e+48`},
		{"a whole decimal", `1234567890123456789e2`, `123456789012345678900`},
		{"a text of 128 bytes", `"` + strings.Repeat("x", 128) + `"`, `"` + strings.Repeat("x", 128) + `"`},
		{"a text of 128 bytes with an escape", `"\u0078` + strings.Repeat("x", 127) + `"`, `"` + strings.Repeat("x", 128) + `"`},
		{"many keys", manyKeys(300, true), manyKeys(300, false)},
		{"as deep as it goes", strings.Repeat(`[`, MaxNesting) + strings.Repeat(`]`, MaxNesting), strings.Repeat(`[`, MaxNesting) + strings.Repeat(`]`, MaxNesting)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := encode(t, tc.in)
			if got := string(AppendJSON(nil, raw)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := encode(t, tc.want); !Equal(got.Value(), raw.Value()) {
				t.Errorf("%s reads back as something else", tc.want)
			}
			if !wholeValue(raw) {
				t.Error("what was read is not valid")
			}
		})
	}
}

func manyKeys(n int, reverse bool) string {
	var b strings.Builder
	for i := range n {
		k := 1000 + i
		if reverse {
			k = 1000 + n - 1 - i
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(strconv.Itoa(k)) + ":" + strconv.Itoa(k))
	}
	return "{" + b.String() + "}"
}

func TestBadJSONIsRefusedWithItsPlace(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", ``, "ends at byte 0: expected a value"},
		{"an open list", `[1,`, "ends at byte 3: expected a value"},
		{"an open object", `{"a"`, "ends at byte 4: expected a colon"},
		{"an open text", `"abc`, "expected the end of a string"},
		{"an open text after an escape", `"\nabc`, "expected the end of a string"},
		{"a comma too many", `[1,]`, `has ']' at byte 3: expected a value`},
		{"a comma too many in an object", `{"a":1,}`, `has '}' at byte 7: expected a key in quotes`},
		{"a key without quotes", `{a:1}`, `has 'a' at byte 1: expected a key in quotes`},
		{"two values", `1 2`, `has '2' at byte 2: expected nothing after the value`},
		{"a leading zero", `01`, "number at byte 0"},
		{"a plus", `+1`, `has '+' at byte 0`},
		{"a bare point", `1.`, "number at byte 0"},
		{"a bare minus", `[-]`, "number at byte 1"},
		{"a bare exponent", `1e`, "number at byte 0"},
		{"half a word", `tru`, "at byte 0: expected a value"},
		{"a longer word", `nulls`, `has 's' at byte 4`},
		{"a control character", "\"a\nb\"", `has '\n' at byte 2: expected an escape for a control character`},
		{"a control character after an escape", "\"\\ta\nb\"", `has '\n' at byte 4`},
		{"an unknown escape", `"\x"`, `has 'x' at byte 2`},
		{"a short escape", `"\u12"`, "expected a hexadecimal digit"},
		{"a lone high surrogate", `"\ud800"`, "half a surrogate pair"},
		{"a lone low surrogate", `"\udc00"`, "half a surrogate pair"},
		{"two high surrogates", `"\ud800\ud800"`, "half a surrogate pair"},
		{"invalid UTF-8", "\"a\xff\"", "invalid UTF-8 at byte 2"},
		{"an encoded surrogate", "\"\xed\xa0\x80\"", "invalid UTF-8 at byte 1"},
		{"invalid UTF-8 after an escape", "\"\\n\xc3\"", "invalid UTF-8 at byte 3"},
		{"a key given twice", `{"a":1,"a":2}`, `the key "a" is given twice`},
		{"a key given twice far apart", `{"a":1,"b":2,"a":3}`, `the key "a" is given twice`},
		{"a key given twice in two spellings", `{"b":1,"\u0061":2,"a":3}`, `the key "a" is given twice`},
		{"a level too deep", strings.Repeat(`[`, MaxNesting+1), "nested more than 64 deep at byte 64"},
		{"a level too deep in objects", strings.Repeat(`{"a":`, MaxNesting+1), "nested more than 64 deep"},
		{"an exponent past all decimals", `1e1000000000`, "the exponent of a decimal is at most"},
		{"an exponent past all ints", `1e99999999999999999999`, "the exponent of a decimal is at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, err := ParseJSON(nil, []byte(tc.in))
			if err == nil {
				t.Fatalf("was read as %s", AppendJSON(nil, raw))
			}
			if fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want %q in it", err, tc.want)
			}
		})
	}
}

func TestJSONRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(3).Filter(func(v Value) bool { return v.Kind != Float || canonicalFloat(Append(nil, v)) }).Draw(t, "value")
		plain, err := Type{Kind: TypeJSON}.Append(nil, v, "value")
		if err != nil {
			if strings.Contains(err.Error(), "not finite") {
				t.Skip("an infinity inside")
			}
			t.Fatal(err)
		}
		text := AppendJSON(nil, plain)
		back, err := ParseJSON([]byte("before"), text)
		if err != nil {
			t.Fatal(err)
		}
		// A computed float64 may read back as the int that is its shortest form, so the texts are compared.
		if again := AppendJSON(nil, back[len("before"):]); !bytes.Equal(again, text) {
			t.Fatalf("%s reads back as %s", text, again)
		}
		if !json.Valid(text) || !wholeValue(plain) {
			t.Fatalf("not valid: %s", text)
		}
	})
}

func TestFloatsAreWrittenAsJSWritesThem(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, f float64) {
		want := strconv.FormatFloat(f, 'f', -1, 64)
		if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
			want = strconv.FormatFloat(f, 'e', -1, 64)
			want = strings.Replace(strings.Replace(want, "e-0", "e-", 1), "e+0", "e+", 1)
		}
		if f == 0 {
			want = "0"
		}
		if got := string(AppendFloat(nil, f)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 0.1, 0.3, 1.1, 12.34, 99.999999, 999999999.999999, 0.1 + 0.2, 1e-6, 1e-7, 123456789012345, 1e15, 1e21, 1.0000005, 0.9999995, 5e-324} {
		check(t, f)
		check(t, -f)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64Range(-1e12, 1e12), func(n int64) float64 { return float64(n) / 1e6 })).Draw(t, "float"))
	})
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := string(AppendFloat(nil, f)); got != "null" {
			t.Errorf("got %s, want null", got)
		}
	}
}

func TestQuotedIsWhatTheLibraryReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.SliceOf(rapid.Byte()), drawText()).Draw(t, "text")
		quoted := AppendQuoted([]byte("x"), s)[1:]
		got, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		if want := bytes.ToValidUTF8(s, nil); bytes.Equal(s, want) && !bytes.Equal(got, s) {
			t.Fatalf("%s reads as %q, want %q", quoted, got, s)
		}
		if want := string([]rune(string(s))); string(got) != want {
			t.Fatalf("%s reads as %q, want %q", quoted, got, want)
		}
	})
}

// normal returns a number's sign, digits and exponent, without insignificant zeros, from its text alone.
func normal(text string) string {
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power)
	exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return sign + short + "e" + strconv.Itoa(exponent+len(digits)-len(short))
}

// tree returns a value as the library's types, with numbers in their normal form.
func tree(r Raw) any {
	switch v := r.Value(); v.Kind {
	case Null:
		return nil
	case Bool:
		return v.Bool()
	case Text:
		return string(v.B)
	case List:
		list := []any{}
		r.Elements(func(e Raw) bool { list = append(list, tree(e)); return true })
		return list
	case Object:
		object := map[string]any{}
		r.Entries(func(key []byte, e Raw) bool { object[string(key)] = tree(e); return true })
		return object
	case Float:
		return json.Number(normal(strconv.FormatFloat(v.Float(), 'e', -1, 64)))
	default:
		return json.Number(normal(string(AppendJSON(nil, r))))
	}
}

// normalize converts the numbers of a value that the library read to their normal form.
func normalize(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(normal(string(v)))
	case []any:
		for i := range v {
			v[i] = normalize(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalize(v[k])
		}
	}
	return v
}

// tooMuch reports whether valid JSON exceeds our limits of depth and exponent, which the library does not have.
func tooMuch(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if d.StackDepth() > MaxNesting {
			return true
		}
		if token.Kind() == '0' {
			mantissa, power, _ := strings.Cut(strings.ToLower(token.String()), "e")
			p, err := strconv.Atoi(power)
			if strings.Trim(mantissa, "-0.") != "" && power != "" && (err != nil || p > 900_000_000 || p < -900_000_000) {
				return true
			}
		}
	}
}

func TestDocumentsHoldValuesOfTheWholeDepth(t *testing.T) {
	for depth := MaxNesting; depth <= MaxNesting+3; depth++ {
		_, err := ParseDocuments(nil, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		if (err == nil) != (depth <= MaxNesting+2) {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,2.50,-0,1e400,9223372036854775808],"a":"\u00e9\ud83d\ude00x"}`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `[[[[]]]]`, `1e-7`, ` [ true , false , null ] `,
		`{"":{}}`, `-0.0`, `0.1e1`, `123456789012345678901234567890.5e-5`, `"\\\"\/\b"`, `{"z":1,"y":2,"x":3}`, "\ufeff1", `1e999999999999`, "\"\u2028\"", strings.Repeat("[", 65) + strings.Repeat("]", 65),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := ParseJSON(nil, text)
		valid := jsontext.Value(text).IsValid()
		documents, errDocuments := ParseDocuments(nil, text)
		if (err == nil) != (errDocuments == nil) && !(valid && tooMuch(text)) || err == nil && !bytes.Equal(raw, documents) {
			t.Fatalf("%q: as a value %v, as documents %v", text, err, errDocuments)
		}
		if valid && tooMuch(text) {
			return
		}
		if (err == nil) != valid {
			t.Fatalf("%q: valid is %t, got %v", text, valid, err)
		}
		if err != nil {
			if fail.KindOf(err) != fail.Invalid {
				t.Fatalf("%q: %v is not of kind invalid", text, err)
			}
			return
		}
		if !wholeValue(raw) {
			t.Fatalf("%q: encoded as what is not valid", text)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := tree(raw); !reflect.DeepEqual(normalize(want), got) { // a diff takes too long if lists are deeply nested
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
		out := AppendJSON(nil, raw)
		again, err := ParseJSON(nil, out)
		if err != nil || !Equal(Raw(again).Value(), Raw(raw).Value()) || !bytes.Equal(AppendJSON(nil, again), out) {
			t.Fatalf("%q: written as %s, which reads back as %s, %v", text, out, AppendJSON(nil, again), err)
		}
	})
}
