package doc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"fenec/engine/fail"

	"pgregory.net/rapid"
)

func TestDocumentKeepsWhatWasSet(t *testing.T) {
	var b Builder // one for all tests, as it is reused in practice
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "slots")
		b.Reset(n)
		want := make([]Raw, n)
		for range rapid.IntRange(0, 60).Draw(t, "sets") {
			if n == 0 {
				break
			}
			slot := rapid.IntRange(0, n-1).Draw(t, "slot")
			v := drawValue(1).Draw(t, "value")
			want[slot] = Append(nil, v)
			b.SetRaw(slot, want[slot])
			if v.Kind == Null {
				want[slot] = nil
			}
		}
		id := rapid.Int64().Draw(t, "id")
		out := append(b.AppendTo([]byte("before"), id), "after"...)
		d, err := DocumentAt(out[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		if d.ID() != id || d.Slots() != n || len(d) != b.Size() || len(d) != len(out)-len("beforeafter") {
			t.Fatalf("id %d slots %d length %d, want %d, %d and %d", d.ID(), d.Slots(), len(d), id, n, b.Size())
		}
		if trusted := At(out, uint64(len("before"))); !bytes.Equal(trusted, d) {
			t.Fatal("At and DocumentAt disagree")
		}
		var newer Builder
		newer.Reset(n + 3)
		newer.Copy(d)
		copied := Document(newer.AppendTo(nil, id))
		for slot := range n + 3 {
			var w Raw
			if slot < n {
				w = want[slot]
				if !bytes.Equal(b.Field(slot), w) {
					t.Fatalf("the builder has %x in slot %d, want %x", b.Field(slot), slot, w)
				}
			}
			if !bytes.Equal(d.Field(slot), w) || !bytes.Equal(copied.Field(slot), w) {
				t.Fatalf("slot %d has %x, its copy %x, want %x", slot, d.Field(slot), copied.Field(slot), w)
			}
		}
	})
}

// sampleDocument returns a document of three fields, the middle one null.
func sampleDocument(t testing.TB, long int) Document {
	var b Builder
	b.Reset(3)
	for slot, v := range []Value{IntValue(-2), {}, text(strings.Repeat("x", long))} {
		if err := b.Set(slot, Type{Kind: []TypeKind{TypeInt, TypeBool, TypeText}[slot]}, v, "field"); err != nil {
			t.Fatal(err)
		}
	}
	return b.AppendTo(nil, 258)
}

func TestVectorsKeepTheirFormat(t *testing.T) {
	for want, v := range map[string]Value{
		"0b080000803fcdcccc3d": madeVector(false, []float32{1, 0.1}),
		"0c04003c662e":         madeVector(true, []float32{1, 0.1}),
		"0d140a000000010000000000004007000000" + "cdcccc3d": madeSparse(10, "{1:2,7:0.1}/10"),
	} {
		if got := hex.EncodeToString(Append(nil, v)); got != want {
			t.Errorf("%s is encoded as %s, want %s", describe(v), got, want)
		}
	}
}

func TestDocumentKeepsItsFormat(t *testing.T) {
	const want = "22000000" + "0201000000000000" + "14001d001d00" + "2200" + "03feffffffffffffff" + "0603787878"
	if got := hex.EncodeToString(sampleDocument(t, 3)); got != want {
		t.Errorf("encoded as\n%s, want\n%s", got, want)
	}
	wide := sampleDocument(t, 70_000)
	const head = "99110180" + "0201000000000000" + "1c00000025000000" + "2500000099110100" + "03feffffffffffffff" + "06f0a20478"
	if got := hex.EncodeToString(wide[:len(head)/2]); got != head {
		t.Errorf("a wide one begins\n%s, want\n%s", got, head)
	}
	for _, long := range []int{65_490, 65_495, 65_496, 65_497, 65_498, 65_499, 65_500, 65_501, 65_510} {
		d, err := DocumentAt(sampleDocument(t, long))
		if err != nil {
			t.Fatal(err)
		}
		if content, ok := d.Field(2).Text(); !ok || len(content) != long || d.Slots() != 3 || d.Field(1) != nil || d.Field(3) != nil {
			t.Errorf("a text of %d bytes reads as one of %d", long, len(content))
		}
	}
}

func TestNullsTakeNoRoomAndClearASlot(t *testing.T) {
	var b Builder
	b.Reset(1)
	for _, null := range []func() error{
		func() error { return b.Set(0, Type{Kind: TypeInt}, Value{}, "f") },
		func() error { return b.Set(0, Type{Kind: TypeJSON}, untyped("null"), "f") },
		func() error { b.SetRaw(0, nil); return nil },
		func() error { b.SetRaw(0, Raw{tagNull}); return nil },
	} {
		b.SetRaw(0, Append(nil, IntValue(1)))
		if err := null(); err != nil {
			t.Fatal(err)
		}
		if d := Document(b.AppendTo(nil, 1)); d.Field(0) != nil || len(d) != tableAt+4 {
			t.Errorf("got %x", d)
		}
	}
}

func TestARefusedValueLeavesTheSlotAsItWas(t *testing.T) {
	var b Builder
	b.Reset(2)
	b.SetRaw(0, Append(nil, IntValue(1)))
	if err := b.Set(0, Type{Kind: TypeList, Elem: TypeInt}, encode(t, `[1,"x"]`).Value(), "field f"); err == nil {
		t.Fatal("was taken")
	}
	b.SetRaw(1, Append(nil, IntValue(2)))
	d := Document(b.AppendTo(nil, 1))
	if n, _ := d.Field(0).Int(); n != 1 {
		t.Errorf("got %d, want 1", n)
	}
	if n, _ := d.Field(1).Int(); n != 2 {
		t.Errorf("got %d, want 2", n)
	}
}

func TestADocumentPastItsLimitIsRefused(t *testing.T) {
	var b Builder
	b.Reset(2)
	half := Raw(appendContent(nil, tagText, make([]byte, MaxDocument/2)))
	b.SetRaw(0, half)
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	if err := b.Set(1, Type{Kind: TypeText}, half.Value(), "field"); fail.KindOf(err) != fail.TooLarge {
		t.Errorf("got %v", err)
	}
	b.SetRaw(1, half)
	if err := b.Check(); fail.KindOf(err) != fail.TooLarge || err.Error() != "a document holds 64 MiB at most" {
		t.Errorf("got %v", err)
	}
}

func TestDamagedDocumentsAreRefused(t *testing.T) {
	good := sampleDocument(t, 3)
	change := func(at int, b byte) func() []byte {
		return func() []byte { d := bytes.Clone(good); d[at] = b; return d }
	}
	for name, bad := range map[string]func() []byte{
		"nothing":                             func() []byte { return nil },
		"a byte too few":                      func() []byte { return good[:len(good)-1] },
		"a length of nothing":                 change(0, 0),
		"a length past the end":               change(0, byte(len(good)+1)),
		"a length past all limits":            change(3, 0x7f),
		"wide offsets where they are not":     change(3, 0x80),
		"an odd table":                        change(tableAt, 21),
		"a table of nothing":                  change(tableAt, 0),
		"a table that begins before its head": change(tableAt, tableAt),
		"a table past the end":                change(tableAt+1, 1),
		"offsets that fall":                   change(tableAt+4, 20),
		"an end that is not the document's":   change(tableAt+6, 33),
	} {
		if _, err := DocumentAt(bad()); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: got %v, want damage", name, err)
		}
	}
	for name, bad := range map[string]func() []byte{
		"an unknown tag":               change(20, 99),
		"a null that takes room":       change(20, tagNull),
		"a text longer than its slot":  change(30, 4),
		"a text shorter than its slot": change(30, 2),
		"invalid UTF-8":                change(31, 0xff),
	} {
		d, err := DocumentAt(bad())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := Validate(d); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: got %v, want damage", name, err)
		}
	}
}

func TestWhatNoWriterWritesIsNotValid(t *testing.T) {
	container := func(tag byte, body ...byte) Raw {
		return append(binary.LittleEndian.AppendUint32([]byte{tag}, uint32(len(body))), body...)
	}
	deep := Raw{tagTrue}
	for range MaxNesting + 2 {
		deep = container(tagList, deep...)
	}
	for name, raw := range map[string]Raw{
		"a length in more bytes than it needs":  {tagText, 0x81, 0x00, 'x'},
		"a key length in more than it needs":    container(tagObject, 0x81, 0x00, 'a', tagNull),
		"keys out of order":                     container(tagObject, 1, 'b', tagNull, 1, 'a', tagNull),
		"a key twice":                           container(tagObject, 1, 'a', tagNull, 1, 'a', tagNull),
		"a key that is no UTF-8":                container(tagObject, 1, 0xff, tagNull),
		"half an entry":                         container(tagObject, 1, 'a'),
		"half an element":                       container(tagList, tagInt, 1, 2),
		"untyped text":                          {tagUntyped, 1, 'a'},
		"a decimal that is an int":              {tagDecimal, 1, '5'},
		"a decimal in another spelling":         append(Raw{tagDecimal, 6}, "10e399"...),
		"a float that is no number":             Append(nil, Value{Kind: Float, N: 0x7ff8000000000001}),
		"more after the value":                  {tagTrue, tagTrue},
		"a length that overflows":               {tagText, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"nothing":                               {},
		"too deep":                              deep,
		"a vector of nothing":                   {tagVector, 0},
		"a vector of three bytes":               {tagVector, 3, 0, 0, 0},
		"a vector with a NaN":                   {tagVector, 4, 0, 0, 0xc0, 0x7f},
		"a vector with an infinity":             {tagVector, 4, 0, 0, 0x80, 0x7f},
		"a vector with a -0":                    {tagVector, 4, 0, 0, 0, 0x80},
		"a vector of half an f16":               {tagHalfVector, 1, 0},
		"a vector with an f16 infinity":         {tagHalfVector, 4, 0, 0x3c, 0, 0x7c},
		"a vector with an f16 -0":               {tagHalfVector, 2, 0, 0x80},
		"a vector of too many dimensions":       appendContent(nil, tagHalfVector, make([]byte, 2*MaxDim+2)),
		"a sparse vector without dimensions":    {tagSparse, 3, 1, 0, 0},
		"a sparse vector of no dimensions":      {tagSparse, 4, 0, 0, 0, 0},
		"a sparse vector of half a weight":      {tagSparse, 8, 5, 0, 0, 0, 1, 0, 0, 0},
		"a sparse vector with a weight of 0":    {tagSparse, 12, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		"a sparse vector with a NaN":            {tagSparse, 12, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0xc0, 0x7f},
		"a sparse vector with an index of 0":    {tagSparse, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f},
		"a sparse vector with an index past it": {tagSparse, 12, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0x80, 0x3f},
		"a sparse vector with an index twice": {
			tagSparse, 20, 5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 3, 0, 0, 0, 0, 0, 0x80, 0x3f,
		},
	} {
		if wholeValue(raw) {
			t.Errorf("%s passes for a value", name)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(sampleDocument(f, 3)))
	var b Builder
	b.Reset(4)
	b.SetRaw(0, encode(f, `{"a":[1,2.5,1e400,"x"],"b":{"c":null}}`))
	b.SetRaw(1, Append(nil, TimestampValue(1)))
	b.SetRaw(2, Append(nil, Value{Kind: Bytes, B: []byte{1, 2}}))
	b.SetRaw(3, Append(nil, madeVector(true, []float32{1, 0.5})))
	f.Add(b.AppendTo(nil, 7))
	b.SetRaw(0, Append(nil, madeVector(false, []float32{1, 0.1})))
	b.SetRaw(1, Append(nil, madeSparse(10, "{1:2,7:0.1}/10")))
	wide := b.AppendTo(nil, 7)
	f.Add(append(wide, wide...))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := DocumentAt(data)
		if err != nil {
			return
		}
		valid := Validate(d) == nil
		var again Builder
		again.Reset(d.Slots())
		for slot := range d.Slots() + 1 {
			r := d.Field(slot)
			v := r.Value()
			out := AppendJSON(nil, r)
			Compare(v, v)
			Hash(v)
			SortKey(v)
			r.Path([]string{"a", "b"})
			if slot < d.Slots() {
				again.SetRaw(slot, r)
			}
			if !valid {
				continue
			}
			if _, err := ParseJSON(nil, out); err != nil && !strings.Contains(err.Error(), "nested") {
				t.Fatalf("slot %d is written %s, which does not read: %v", slot, out, err)
			}
			if stored, err := (Type{Kind: TypeJSON}).Append(nil, v, "f"); err == nil && !r.IsNull() && !wholeValue(stored) {
				t.Fatalf("slot %d is stored as %x", slot, stored)
			}
		}
		if copied := Document(again.AppendTo(nil, d.ID())); valid && d.Slots() == copied.Slots() {
			for slot := range d.Slots() {
				if !bytes.Equal(copied.Field(slot), d.Field(slot)) {
					t.Fatalf("slot %d is copied as %x, was %x", slot, copied.Field(slot), d.Field(slot))
				}
			}
		}
	})
}
