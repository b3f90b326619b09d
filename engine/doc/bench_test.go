package doc

import (
	"testing"
)

// note is the document of five fields that the figures are about.
var noteTypes = []Type{{Kind: TypeText}, {Kind: TypeInt}, {Kind: TypeFloat}, {Kind: TypeTimestamp}, {Kind: TypeBool}}

var noteValues = []Value{text("Reykjavik in winter"), IntValue(2024), FloatValue(12.5), TimestampValue(1_714_557_600_000), BoolValue(true)}

const noteJSON = `{"title":"Reykjavik in winter","year":2024,"price":12.5,"created":"2024-05-01T10:00:00Z","open":true}`

func buildNote(t testing.TB, b *Builder, dst []byte) []byte {
	b.Reset(len(noteTypes))
	for slot, typ := range noteTypes {
		if err := b.Set(slot, typ, noteValues[slot], "field"); err != nil {
			t.Fatal(err)
		}
	}
	return b.AppendTo(dst, 1)
}

func appendNote(dst []byte, d Document) []byte {
	for slot, key := range [...]string{`{"title":`, `,"year":`, `,"price":`, `,"created":`, `,"open":`} {
		dst = AppendJSON(append(dst, key...), d.Field(slot))
	}
	return append(dst, '}')
}

func TestHotPathsAllocateNothing(t *testing.T) {
	var b Builder
	buf := buildNote(t, &b, nil)
	d := Document(buf)
	out := appendNote(nil, d)
	if string(out) != noteJSON {
		t.Fatalf("got %s, want %s", out, noteJSON)
	}
	object := encode(t, `{"meta":{"source":{"rank":5}},"unsorted":{"b":1,"a":"x\n"},"big":1e400}`)
	encoded := make([]byte, 0, 1024)
	keys := []string{"meta", "source", "rank"}
	decimal, float := decimalOf("0.1000000000000000055511151231257827021181583404541015625"), FloatValue(0.1)
	at := text("2024-05-01T10:00:00Z")
	sink := 0
	for name, run := range map[string]func(){
		"a document is built": func() { buf = buildNote(t, &b, buf[:0]) },
		"a document is copied and one field changed": func() {
			b.Reset(5)
			b.Copy(d)
			b.SetRaw(1, d.Field(1))
			encoded = b.AppendTo(encoded[:0], 2)
		},
		"fields are read": func() {
			for slot := range 6 {
				sink += len(d.Field(slot).Value().B)
			}
		},
		"a path is read":               func() { sink += len(object.Path(keys)) },
		"JSON is written":              func() { out = appendNote(out[:0], d) },
		"an object is written as JSON": func() { encoded = AppendJSON(encoded[:0], object) },

		"a decimal and a float that are equal are compared": func() { sink += Compare(decimal, float) },
		"a decimal is hashed":                               func() { sink += int(Hash(decimal) & 1) },
		"an object is hashed":                               func() { sink += int(Hash(object.Value()) & 1) },
		"sort keys are made":                                func() { sink += int(SortKey(decimal)&1 + SortKey(noteValues[0])&1) },
		"a constant is converted":                           func() { v, _ := noteTypes[1].Convert(FloatValue(5), "f"); sink += int(v.N) },
		"a timestamp is read": func() {
			v, _ := noteTypes[3].Convert(at, "f")
			sink += int(v.N & 1)
		},
	} {
		if n := testing.AllocsPerRun(100, run); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if sink == 0 {
		t.Error("nothing was read")
	}
}

func BenchmarkDocument(b *testing.B) {
	var builder Builder
	buf := buildNote(b, &builder, nil)
	d := Document(buf)
	b.Run("build five fields", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = buildNote(b, &builder, buf[:0])
		}
	})
	b.Run("read an int field", func(b *testing.B) {
		sum := int64(0)
		for b.Loop() {
			n, _ := d.Field(1).Int()
			sum += n
		}
	})
	b.Run("write five fields as JSON", func(b *testing.B) {
		b.ReportAllocs()
		out := make([]byte, 0, 256)
		for b.Loop() {
			out = appendNote(out[:0], d)
		}
	})
	b.Run("check where one begins", func(b *testing.B) {
		for b.Loop() {
			if _, err := DocumentAt(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validate", func(b *testing.B) {
		for b.Loop() {
			if err := Validate(d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	big := []byte(manyKeys(1000, true))
	for name, in := range map[string][]byte{"five fields": []byte(noteJSON), "a thousand keys out of order": big} {
		b.Run("read "+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			dst := make([]byte, 0, 2*len(in))
			for b.Loop() {
				if _, err := ParseJSON(dst[:0], in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, f := range map[string]float64{"a price": 12.34, "a score": 0.8374659283746, "a whole": 1e9} {
		b.Run("write "+name, func(b *testing.B) {
			var buf [32]byte
			for b.Loop() {
				AppendFloat(buf[:0], f)
			}
		})
	}
	for name, s := range map[string]string{"short text": "winter", "long text": "Reykjavik in winter is dark, and its summer bright.", "Turkish text": "Güneşli bir gün, çok güzel."} {
		b.Run("write "+name, func(b *testing.B) {
			buf := make([]byte, 0, 256)
			for b.Loop() {
				buf = AppendQuoted(buf[:0], []byte(s))
			}
		})
	}
	b.Run("write a timestamp", func(b *testing.B) {
		var buf [64]byte
		for b.Loop() {
			AppendTimestamp(buf[:0], 1_714_557_600_123)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	for name, pair := range map[string][2]Value{
		"ints":        {IntValue(1), IntValue(2)},
		"texts":       {text("Reykjavik"), text("Reykjavík")},
		"int, float":  {IntValue(1), FloatValue(1.5)},
		"two decimal": {decimalOf("1e400"), decimalOf("12345678901234567890.5")},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Compare(pair[0], pair[1])
			}
		})
	}
}
