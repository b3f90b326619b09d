package doc

import (
	"strings"
	"testing"

	"fenec/engine/fail"

	"pgregory.net/rapid"
)

func TestPathsReadIntoObjects(t *testing.T) {
	raw := encode(t, `{"a":{"b":{"c":1,"":2}},"l":[{"c":3}],"n":null,"z":"t"}`)
	for path, want := range map[string]string{
		"a.b.c": "1", "a.b.": "2", "a.b": `{"":2,"c":1}`, "n": "null", "z": `"t"`, "l": `[{"c":3}]`,
		"a.x": "absent", "l.c": "absent", "z.c": "absent", "n.c": "absent", "aa": "absent", "zz": "absent",
	} {
		got := "absent"
		if r := raw.Path(strings.Split(path, ".")); r != nil {
			got = string(AppendJSON(nil, r))
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestSettingAPath(t *testing.T) {
	for _, tc := range []struct{ name, base, path, value, want string }{
		{"in nothing", `null`, "a.b", `1`, `{"a":{"b":1}}`},
		{"over what is there", `{"a":{"b":2,"c":3},"d":4}`, "a.b", `[1]`, `{"a":{"b":[1],"c":3},"d":4}`},
		{"before all keys", `{"b":2}`, "a", `1`, `{"a":1,"b":2}`},
		{"between keys", `{"a":2,"c":3}`, "b", `1`, `{"a":2,"b":1,"c":3}`},
		{"after all keys", `{"a":2}`, "b.c", `1`, `{"a":2,"b":{"c":1}}`},
		{"through a null", `{"a":null}`, "a.b", `1`, `{"a":{"b":1}}`},
		{"to null", `{"a":1}`, "a", `null`, `{"a":null}`},
		{"through a text", `{"a":{"b":"t"}}`, "a.b.c", `1`, `field f.a.b holds text "t", so nothing can be set at "c" in it`},
		{"in a list", `[1]`, "0", `1`, `field f holds a list, so nothing can be set at "0" in it`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, err := AppendWithPath(nil, encode(t, tc.base), strings.Split(tc.path, "."), encode(t, tc.value), "field f")
			if err != nil {
				if err.Error() != tc.want || fail.KindOf(err) != fail.Invalid {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if got := string(AppendJSON(nil, raw)); got != tc.want || !wholeValue(raw) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAnObjectPutTogetherWithAKeyTwiceIsRefused(t *testing.T) {
	raw, at := OpenObject(nil)
	for _, key := range []string{"b", "a", "b"} {
		raw = Append(AppendKey(raw, key), IntValue(1))
	}
	if _, err := Close(raw, at); err == nil || err.Error() != `the key "b" is given twice in one object` {
		t.Errorf("got %v", err)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int{`[]`: 0, `[1,[2,3],"x"]`: 3, `{}`: 0, `{"a":1,"b":[]}`: 2, `"abc"`: 0, `null`: 0} {
		if got := encode(t, text).Count(); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func TestEncodedValuesReadAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(2).Draw(t, "value")
		raw := Raw(Append([]byte("before"), v)[len("before"):])
		if got := raw.Value(); got.Kind != v.Kind || Compare(got, v) != 0 || raw.Kind() != v.Kind {
			t.Fatalf("%s reads as %s", describe(v), describe(got))
		}
		if size(append(raw[:len(raw):len(raw)], "after"...)) != len(raw) {
			t.Fatalf("%s says it has %d bytes, it has %d", describe(v), size(raw), len(raw))
		}
		for n := range min(len(raw), 300) {
			if size(raw[:n]) != 0 {
				t.Fatalf("%d of the %d bytes of %s pass for all", n, len(raw), describe(v))
			}
			_ = raw[:n].Value() // must not panic
		}
	})
}

func TestTypedReadsRefuseOtherKinds(t *testing.T) {
	values := []Value{IntValue(1), FloatValue(1), TimestampValue(1), text("1"), {}, BoolValue(true)}
	for i, v := range values {
		raw := Raw(Append(nil, v))
		_, isInt := raw.Int()
		_, isFloat := raw.Float()
		_, isTimestamp := raw.Timestamp()
		_, isText := raw.Text()
		for j, is := range []bool{isInt, isFloat, isTimestamp, isText, raw.IsNull()} {
			if is != (i == j) {
				t.Errorf("%s passes for %s: %t", describe(v), describe(values[j]), is)
			}
		}
	}
}
