package importer

import (
	"strings"
	"testing"
)

func TestTypesAreInferredFromEveryValue(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, key, want string
	}{
		"one kind a field, in the order first seen": {
			file: "a.ndjson", text: `{"s":"x","i":1,"f":1.5,"b":true,"at":"2024-05-01T10:00:00Z","o":{"k":1},"l":["a"]}`,
			want: "s text, i int, f float, b bool, at timestamp, o json, l [text]",
		},
		"an int and a fraction are a float": {
			file: "a.ndjson", text: "{\"n\":1}\n{\"n\":2.5}\n{\"n\":3}", want: "n float",
		},
		"an integer past 64 bits is json, which keeps its digits": {
			file: "a.ndjson", text: "{\"n\":1}\n{\"n\":12345678901234567890}", want: "n json",
		},
		"a time and a text are a text": {
			file: "a.ndjson", text: "{\"n\":\"2024-05-01T10:00:00Z\"}\n{\"n\":\"soon\"}", want: "n text",
		},
		"a null says nothing": {
			file: "a.ndjson", text: "{\"n\":null}\n{\"n\":7}\n{\"m\":null}", want: "n int, m text",
		},
		"kinds that do not go together are json": {
			file: "a.ndjson", text: "{\"n\":1}\n{\"n\":\"x\"}", want: "n json",
		},
		"lists join by their elements": {
			file: "a.ndjson", text: "{\"a\":[],\"b\":[1],\"c\":[1],\"d\":[[1]],\"e\":[null],\"f\":[]}\n{\"a\":[true],\"b\":[0.5],\"c\":[\"x\"],\"f\":[]}",
			want: "a [bool], b [float], c json, d json, e json, f [text]",
		},
		"the id and the key are no fields": {
			file: "a.ndjson", text: `{"k":2,"n":3}`, key: "k", want: "n int",
		},
		"cells are read as what they look like": {
			file: "a.csv", text: "i,f,b,at,s,z,e\n1,1.5,TRUE,2024-05-01T10:00:00+02:00,x,007,\n-2,1e3,false,2024-05-01T10:00:00Z,\"a \"\"b\"\"\",1,\n",
			want: "i int, f float, b bool, at timestamp, s text, z text, e text",
		},
		"cells of different kinds are text, and so are digits past 64 bits": {
			file: "a.csv", text: "a,b\n1,12345678901234567890\ntrue,1\n", want: "a text, b text",
		},
		"a line that is bad says nothing": {
			file: "a.ndjson", text: "{\"n\":1}\nnope\n", want: "n int",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := openInput(strings.NewReader(c.text), c.file, Guess)
			if err != nil {
				t.Fatal(err)
			}
			sample, err := in.sample(sampleRecords, sampleBytes)
			if err != nil {
				t.Fatal(err)
			}
			got, err := infer("things", identity{key: c.key}, in.header, sample)
			if want := "create collection if not exists things (" + c.want + ")"; err != nil || got != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
}

func TestNamesThatAreNoneAreRefused(t *testing.T) {
	in, err := openInput(strings.NewReader(`{"Installed-Size": 1}`), "a.ndjson", Guess)
	if err != nil {
		t.Fatal(err)
	}
	sample, err := in.sample(sampleRecords, sampleBytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := infer("c", identity{}, nil, sample); err == nil || !strings.Contains(err.Error(), `invalid field name "Installed-Size"`) {
		t.Errorf("error %v", err)
	}
	for name, want := range map[string]bool{"a": true, "_a1": true, "größe": true, "तिथि": true, "": false, "1a": false, "a b": false, "a.b": false, "a;drop": false} {
		if IsName(name) != want {
			t.Errorf("IsName(%q) is %v", name, !want)
		}
	}
}

func TestDataWithoutAGoodLineIsToldWhatIsWrongWithIt(t *testing.T) {
	in, err := openInput(strings.NewReader("{\n  \"a\": 1\n}\n"), "pretty.json", NDJSON)
	if err != nil {
		t.Fatal(err)
	}
	sample, err := in.sample(sampleRecords, sampleBytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := infer("c", identity{}, nil, sample); err == nil || !strings.Contains(err.Error(), "line 1: invalid JSON: unexpected end") {
		t.Errorf("error %v", err)
	}
}

func TestACellIsReadByTheTypeOfItsField(t *testing.T) {
	for _, c := range []struct{ fieldType, cell, want string }{
		{"int", "42", `42`},
		{"int", " 42 ", `42`},
		{"int", "4x", `"4x"`},
		{"int", "007", `"007"`},
		{"int", "9223372036854775807", `9223372036854775807`},
		{"float", "1e3", `1e3`},
		{"float", "NaN", `"NaN"`},
		{"bool", "True", `true`},
		{"bool", "yes", `"yes"`},
		{"text", "42", `"42"`},
		{"text", "a \"b\"\n\\", `"a \"b\"\n\\"`},
		{"timestamp", "2024-05-01", `"2024-05-01"`},
		{"timestamp", "1714557600000", `1714557600000`},
		{"timestamp", "1.5", `"1.5"`},
		{"json", `{"a": 1}`, `{"a": 1}`},
		{"json", `{a}`, `"{a}"`},
		{"[int]", `[1, 2]`, `[1, 2]`},
		{"bytes", "AAEC", `"AAEC"`},
		{"", "1", `"1"`},
	} {
		if got := string(cellValue(c.cell, c.fieldType)); got != c.want {
			t.Errorf("%q for a field of type %q is %s, want %s", c.cell, c.fieldType, got, c.want)
		}
	}
}

func TestTheKeyBecomesTheID(t *testing.T) {
	byKey, kept := identity{key: "k"}, identity{idAs: "code"}
	for _, c := range []struct {
		ids               identity
		object, want, err string
	}{
		{byKey, `{"a":1,"k":7,"b":{"k":2}}`, `{"a":1,"id":7,"b":{"k":2}}`, ""},
		{byKey, `{"a":1}`, "", "has no field k, which is the key"},
		{byKey, `{"":1}`, "", "has no field k, which is the key"},
		{byKey, `{"k":null}`, "", "has null in k, which is the key"},
		{byKey, `{"k":1,"id":2}`, "", "has a field id as well as the key k; --id-as FIELD imports it under another name"},
		{identity{key: "id"}, `{"id":2,"a":1}`, `{"id":2,"a":1}`, ""},
		{identity{key: "id"}, `{"a":1}`, "", "has no field id, which is the key"},
		{identity{key: "id"}, `{"id":null}`, "", "has null in id, which is the key"},
		{kept, `{"id":"x-1","a":1}`, `{"code":"x-1","a":1}`, ""},
		{kept, `{"a":1,"":null}`, `{"a":1,"":null}`, ""},
		{kept, `{"id":"x-1","code":1}`, "", "has a field code already, so --id-as code cannot use that name for the id"},
		{identity{"k", "code"}, `{"id":"x","k":3}`, `{"code":"x","id":3}`, ""},
		{identity{"k", "k"}, `{"id":"x","k":3}`, `{"k":"x","id":3}`, ""},
		{identity{}, `{"id":null,"a":1}`, `{"id":null,"a":1}`, ""},
	} {
		got, err := c.ids.object([]byte(c.object))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", c.object, err, c.err)
			}
		case err != nil || string(got) != c.want:
			t.Errorf("%s became %s, %v, want %s", c.object, got, err, c.want)
		}
	}
}

func TestTheColumnOfAKeyBecomesTheID(t *testing.T) {
	for _, c := range []struct {
		ids           identity
		columns, want string
		err           string
	}{
		{identity{}, "id,a", "id,a", ""},
		{identity{key: "k"}, "k,a", "id,a", ""},
		{identity{key: "k", idAs: "code"}, "k,id", "id,code", ""},
		{identity{key: "k", idAs: "k"}, "k,id", "id,k", ""},
		{identity{idAs: "code"}, "a,id", "a,code", ""},
		{identity{key: "K"}, "k,a", "", "has no column K, which --key names; its columns are k, a"},
		{identity{key: "id"}, "a,b", "", "has no column id, which --key names; its columns are a, b"},
		{identity{key: "k"}, "k,id", "", "has a column id as well as the key k; --id-as FIELD imports it under another name"},
		{identity{idAs: "a"}, "a,id", "", "has a column a already, so --id-as a cannot use that name for the id"},
	} {
		got, err := c.ids.header(strings.Split(c.columns, ","))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%+v of %s: error %v, want %s", c.ids, c.columns, err, c.err)
			}
		case err != nil || strings.Join(got, ",") != c.want:
			t.Errorf("%+v of %s became %s, %v, want %s", c.ids, c.columns, got, err, c.want)
		}
	}
	got, err := fromCells([]string{"id", "n", "e"}, []string{"7", "x", ""}, "k", map[string]string{"n": "text"})
	if want := `{"id":7,"n":"x"}`; err != nil || string(got) != want {
		t.Errorf("cells became %s, %v, want %s", got, err, want)
	}
	if _, err := fromCells([]string{"id", "n"}, []string{"", "x"}, "k", nil); err == nil {
		t.Error("a row without its key was accepted")
	}
}
