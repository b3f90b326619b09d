package doc

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encode is a JSON text as an encoded value.
func encode(t testing.TB, text string) Raw {
	t.Helper()
	raw, err := ParseJSON(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return raw
}

func TestDocumentKeepsWhatWasSet(t *testing.T) {
	var b Builder
	b.Reset(5)
	for slot, f := range []struct {
		typ  Type
		v    Value
		want string
	}{
		{Type{Kind: TypeText}, TextValue([]byte("Ärger")), `"Ärger"`},
		{Type{Kind: TypeInt}, FloatValue(1000), `1000`},
		{Type{Kind: TypeTimestamp}, TextValue([]byte("2024-05-01T12:00:00.5+02:00")), `"2024-05-01T10:00:00.500Z"`},
		{Type{Kind: TypeJSON}, encode(t, `{"b":[1,2.50,{"x":null}],"a":"\u00e9"}`).Value(), `{"a":"é","b":[1,2.5,{"x":null}]}`},
	} {
		if err := b.Set(slot, f.typ, f.v, "field"); err != nil {
			t.Fatal(err)
		}
		d, err := DocumentAt(append(b.AppendTo(nil, 42), "more"...))
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(d); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendJSON(nil, d.Field(slot))); got != f.want {
			t.Errorf("got %s, want %s", got, f.want)
		}
		if d.ID() != 42 || d.Slots() != 5 || d.Field(4) != nil || d.Field(5) != nil {
			t.Errorf("id %d, slots %d", d.ID(), d.Slots())
		}
	}
}
